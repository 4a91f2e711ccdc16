"""Decoding: greedy search from text to text, with the same weights in every program (engine)."""

from __future__ import annotations

from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

from benchmarks.child_processes import measure_in_child
from benchmarks.corpus import prepare
from benchmarks.engine_weights import export
from benchmarks.fit import train_checkpoint
from benchmarks.options import OURS, ROOT, Options, say
from benchmarks.peers import peer_python
from benchmarks.rounds import Measure, Results, figures, interleave

# 80 pieces are much longer than any translation, so each translation ends before this limit. With
# --quick the limit is lower, because a model may never end a translation after a short training.
SIZE = {"batch_size": 128, "count": 1000, "singles": 50, "max_new": 80}
QUICK_SIZE = {"batch_size": 128, "count": 256, "singles": 10, "max_new": 24}
UNITS = {
    "batch": "output tokens/s, 128 at a time",
    "single": "ms per token, one at a time (lower is better)",
}


def measure(options: Options, rounds: int) -> dict[str, Any]:
    """Measure all engines in turns."""
    folder = options.work / "data"
    folder.mkdir(parents=True, exist_ok=True)
    files = {"weights": folder / "weights.pt", "tokenizer": folder / "decoding.model"}
    export(train_checkpoint(options), files["weights"], files["tokenizer"])
    marian = {"engine": "marian", **files}
    contestants: dict[str, Measure] = {
        OURS: partial(translate, options, ROOT),
        "MarianMTModel": partial(_decode, options, marian),
        "MarianMTModel, one thread": partial(_decode, options, {**marian, "threads": 1}),
    }
    per_thread = {"inter_threads": options.threads, "intra_threads": 1}
    on_one_batch = {"inter_threads": 1, "intra_threads": options.threads}
    for name, settings in {
        "float32, one batch per thread": {"compute_type": "float32", **per_thread},
        "float32, all threads on one batch": {"compute_type": "float32", **on_one_batch},
        "int8, one batch per thread": {"compute_type": "int8", **per_thread},
    }.items():
        engine = {"engine": "ctranslate2", "folder": options.work / "ctranslate2", **files}
        engine["ctranslate2"] = settings
        contestants[f"CTranslate2 {name}"] = partial(_decode, options, engine)
    return finish(*interleave(contestants, rounds))


def translate(options: Options, checkout: Path) -> dict[str, Any]:
    """Measure the version of this program in a checkout."""
    engine = {"engine": "this_program", "checkpoint": train_checkpoint(options)}
    return _decode(options, engine, checkout)


def _decode(
    options: Options, engine: dict[str, Any], checkout: Path | None = None
) -> dict[str, Any]:
    """Measure an engine; without a checkout it is one of the peers."""
    size = QUICK_SIZE if options.quick else SIZE
    settings = {"sentences": prepare(options).test, **size, **engine}
    if checkout:
        return measure_in_child("decoding_engines", settings, options, checkout=checkout)
    return measure_in_child("decoding_engines", settings, options, python=peer_python(options))


def finish(results: Results, errors: dict[str, str]) -> dict[str, Any]:
    """Return the figures, and the share of each engine's outputs that equal this program's."""
    outputs = {name: [each.pop("outputs") for each in rounds] for name, rounds in results.items()}
    ours = (outputs.pop(OURS) or [[]])[0]
    identical = {}
    for name, rounds in outputs.items():
        if rounds:
            identical[name] = sum(map(eq, ours, rounds[0])) / len(rounds[0])
            say(f"{name}: {identical[name]:.1%} of the outputs are identical to this program's")
    return {"figures": figures("decoding", UNITS, results, errors), "identical": identical}
