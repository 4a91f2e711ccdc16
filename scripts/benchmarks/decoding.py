"""Decoding: greedy search, the same weights in every engine, text in and text out."""

from __future__ import annotations

import sys
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

ROUNDS, QUICK_ROUNDS = 7, 1
MAX_NEW = 80  # pieces; a multiple of a long translation, so that each output ends by itself
MAX_NEW_QUICK = 24  # a model after a short training may never end a translation
UNITS = {
    "batch": "output tokens/s, 128 at a time",
    "single": "ms per token, one at a time (less is better)",
}


def measure(options: Options, rounds: int) -> dict[str, Any]:
    """Measure all engines in turns."""
    folder, threads = options.work / "data", options.threads
    files = {"weights": folder / "weights.pt", "tokenizer": folder / "decoding.model"}
    folder.mkdir(parents=True, exist_ok=True)
    export(train_checkpoint(options), files["weights"], files["tokenizer"])
    marian = {"engine": "marian", **files}
    ctranslate2 = {"engine": "ctranslate2", "folder": options.work / "ctranslate2", **files}
    float32 = {**ctranslate2, "compute_type": "float32"}
    per_thread = {"batches": threads, "threads": 1}
    engines = {
        "MarianMTModel": marian,
        "MarianMTModel, one thread": {**marian, "threads": 1},
        "CTranslate2 float32, one batch per thread": {**float32, **per_thread},
        "CTranslate2 float32, all threads on one batch": {**float32, "batches": 1},
        "CTranslate2 int8, one batch per thread": {
            **ctranslate2, "compute_type": "int8", **per_thread
        },
    }  # fmt: skip
    contestants: dict[str, Measure] = {OURS: partial(translate, options, ROOT)}
    contestants |= {
        name: lambda engine=engine: decode(options, engine, python=peer_python(options))
        for name, engine in engines.items()
    }
    return finish(*interleave(contestants, rounds))


def translate(options: Options, checkout: Path) -> dict[str, Any]:
    """Measure this program in one of its versions."""
    engine = {"engine": "this_program", "checkpoint": train_checkpoint(options)}
    return decode(options, engine, checkout=checkout)


def decode(
    options: Options,
    engine: dict[str, Any],
    *,
    python: str | Path = sys.executable,
    checkout: Path = ROOT,
) -> dict[str, Any]:
    """Measure an engine."""
    quick = options.quick
    settings = {
        "sentences": prepare(options).test,
        "count": 256 if quick else 1000,
        "singles": 10 if quick else 50,
        "batch_size": 128,
        "max_new": MAX_NEW_QUICK if quick else MAX_NEW,
        **engine,
    }
    return measure_in_child("decoding_engines", settings, options, python=python, checkout=checkout)


def finish(results: Results, errors: dict[str, str]) -> dict[str, Any]:
    """Return the figures, and how many outputs of each engine are the same as this program's."""
    outputs = {name: [each.pop("outputs") for each in rounds] for name, rounds in results.items()}
    ours = (outputs.pop(OURS) or [[]])[0]
    identical = {}
    for name, (theirs, *_) in ((name, rounds) for name, rounds in outputs.items() if rounds):
        identical[name] = sum(map(eq, ours, theirs)) / len(theirs)
        say(f"{name}: {identical[name]:.1%} of the outputs are identical to this program's")
    return {"figures": figures("decoding", UNITS, results, errors), "identical": identical}
