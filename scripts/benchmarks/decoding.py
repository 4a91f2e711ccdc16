"""Decoding: greedy search, the same weights in every engine, text in and text out."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.bench import Bench
from benchmarks.child_processes import Worker
from benchmarks.engine_weights import export
from benchmarks.options import OURS, ROOT, BenchmarkError, Options
from benchmarks.rounds import Measure, figures, interleave

CONTESTANTS = (
    OURS,
    "MarianMTModel",
    "CTranslate2 float32",
    "CTranslate2 float32, all threads on one batch",
    "CTranslate2 int8",
)
MAX_NEW = 80  # pieces; a multiple of a long translation, so that each output ends by itself
MAX_NEW_QUICK = 24  # a model after a short training may never end a translation
UNITS = {
    "batch": "output tokens/s, 128 at a time",
    "single": "ms per token, one at a time (less is better)",
}


class Engine(NamedTuple):
    """An engine that is loaded and warm."""

    worker: Worker
    outputs: list[list[int]]  # pieces of all translations, with end-of-sentence
    fastest: dict[str, str]  # the fastest use of threads for each command


def units(rounds: int) -> int:
    """Return the steps of the progress bar."""
    return 1 + len(CONTESTANTS) * (1 + rounds)


def settings_of(options: Options) -> dict[str, Any]:
    """Return how much every engine decodes."""
    return {
        "threads": options.threads,
        "count": 256 if options.quick else 1000,
        "singles": 10 if options.quick else 50,
        "batch_size": 128,
        "max_new": MAX_NEW_QUICK if options.quick else MAX_NEW,
    }


def measure(bench: Bench, rounds: int) -> dict[str, Any]:
    """Measure all engines in turns."""
    options = bench.options
    bench.progress.now("decoding: training a model")
    folder = options.work / "data"
    files = {
        "checkpoint": bench.checkpoint,
        "sentences": bench.corpus.test,
        "weights": folder / "weights.pt",
        "tokenizer": folder / "decoding.model",  # a checkpoint has its own
        "folder": options.work / "ctranslate2",
    }
    config = export(files["checkpoint"], files["weights"], files["tokenizer"])
    settings = settings_of(options)
    bench.progress.done()
    engines: dict[str, Engine] = {}
    failures: dict[str, str] = {}
    with ExitStack() as stack:
        for name in CONTESTANTS:
            bench.progress.now(f"{name}: loading")
            try:
                python = sys.executable if name == OURS else bench.peers.require()
                each = {**settings, **files, "contestant": name}
                engines[name] = load(stack, python, each, options)
            except BenchmarkError as error:
                failures[name] = str(error)
                bench.progress.say(f"{name}: {error}")
            bench.progress.done()
        contestants: dict[str, Measure] = {
            name: partial(speeds, engine.worker) for name, engine in engines.items()
        }
        results, errors = interleave(bench.progress, contestants, rounds)
    bench.progress.done(rounds * len(failures))
    results |= {name: [] for name in failures}
    shares = identical(engines, settings["max_new"])
    notes = {name: f"{share:.1%} of the outputs are identical" for name, share in shares.items()}
    for name, note in notes.items():
        bench.progress.say(f"{name}: {note}")
    length = mean_length(engines[OURS]) if OURS in engines else 0.0
    if OURS in engines and not 3 <= length <= 0.75 * settings["max_new"]:
        bench.progress.say(
            f"decoding: the model writes {length:.1f} pieces per sentence, so its training was too "
            "short for meaningful figures"
        )
    return {
        "settings": {**settings, "model": config, **bench.corpus.describe()},
        "identical_outputs": shares,
        "fastest_use_of_threads": {name: engine.fastest for name, engine in engines.items()},
        "mean_output_pieces": length,
        "figures": [
            row
            for key, unit in UNITS.items()
            for row in figures("decoding", unit, key, results, errors | failures, notes)
        ],
        "raw": results,
    }


def load(
    stack: ExitStack,
    python: str | Path,
    settings: dict[str, Any],
    options: Options,
    checkout: Path = ROOT,
) -> Engine:
    """Start an engine and let it translate everything once.

    That warms it up, and shows whether its weights are the same.
    """
    worker = Worker(python, "decoding_engines", settings, options, checkout)
    stack.enter_context(worker)
    first = worker.ask("outputs")
    return Engine(worker, first["ids"], first["fastest"])


def speeds(worker: Worker, _: int) -> dict[str, Any]:
    """Measure one round of an engine."""
    batch, single = worker.ask("batch"), worker.ask("single")
    return {
        "batch": batch["tokens"] / batch["seconds"],
        "single": 1000 * single["seconds"] / single["tokens"],
        "details": {"batch": batch, "single": single},
    }


def mean_length(engine: Engine) -> float:
    """Return the mean number of pieces per translation."""
    return sum(map(len, engine.outputs)) / len(engine.outputs)


def identical(engines: dict[str, Engine], max_new: int) -> dict[str, float]:
    """Return, per peer, the share of sentences with the same pieces as this program's.

    An output that reaches the limit may lack the end-of-sentence, so it is compared up to there.
    """
    if OURS not in engines:
        return {}
    ours = [ids[:max_new] for ids in engines[OURS].outputs]
    return {
        name: sum(a == b[:max_new] for a, b in zip(ours, engine.outputs, strict=True)) / len(ours)
        for name, engine in engines.items()
        if name != OURS
    }
