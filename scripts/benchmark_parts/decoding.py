"""The decoding contest: greedy, the same weights in every engine, text in and text out."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

from benchmark_parts.children import Worker
from benchmark_parts.common import OURS, Bench, BenchmarkError
from benchmark_parts.rounds import figures, interleave

ALL_THREADS_A_BATCH = "all threads on one batch"
CONTESTANTS = (
    OURS,
    "MarianMTModel",
    "CTranslate2 float32",
    f"CTranslate2 float32, {ALL_THREADS_A_BATCH}",
    "CTranslate2 int8",
)
BATCH_SIZE = 128
MIN_LENGTH = 3  # pieces with end sign; below it nothing is translated
MAX_NEW = 80  # pieces; three times a long sentence, so that an output ends by itself
MAX_NEW_QUICK = 24  # a model that is hardly trained may not end at all
SCRIPT = "decode_worker"


class Started(NamedTuple):
    """An engine at work."""

    worker: Worker
    ids: list[list[int]]  # of all translations, end signs too
    fastest: dict[str, str]  # the way to use threads that it was fastest with


def units(rounds: int) -> int:
    """Steps of the progress bar."""
    return 1 + len(CONTESTANTS) * (1 + rounds)


def compete(bench: Bench, rounds: int) -> dict[str, Any]:
    """All engines in turns; JSON-able."""
    from benchmark_parts.weights import export
    from translate.errors import UserError

    options = bench.options
    bench.progress.now("decoding: training a model")
    checkpoint = bench.checkpoint
    folder = options.work / "data"
    folder.mkdir(parents=True, exist_ok=True)
    # A checkpoint brings its own tokenizer.
    tokenizer = folder / "decoding.model"
    try:
        config = export(checkpoint, folder / "weights.pt", tokenizer)
    except UserError as error:
        raise BenchmarkError(str(error)) from None
    max_new = MAX_NEW_QUICK if options.quick else MAX_NEW
    settings = {
        "threads": options.threads,
        "count": 256 if options.quick else 1000,
        "singles": 10 if options.quick else 50,
        "batch_size": BATCH_SIZE,
        "max_new": max_new,
    }
    files = {
        "checkpoint": checkpoint,
        "weights": folder / "weights.pt",
        "tokenizer": tokenizer,
        "sentences": bench.corpus.test,
        "folder": options.work / "ctranslate2",
    }
    bench.progress.done()
    with ExitStack() as stack:
        started, failures = _start(bench, {**settings, **files}, stack)
        contestants = {name: partial(_measure, each.worker) for name, each in started.items()}
        results, errors = interleave(bench, contestants, rounds)
    bench.progress.done(rounds * len(failures))
    results |= {name: [] for name in failures}
    outputs = {name: each.ids for name, each in started.items()}
    agreement = _agreement(outputs, max_new)
    notes = {
        name: f"{share:.1%} of the outputs identical to this program's"
        for name, share in agreement.items()
    }
    for name, note in notes.items():
        bench.progress.say(f"{name}: {note}")
    lengths = {name: sum(map(len, ids)) / len(ids) for name, ids in outputs.items()}
    if OURS in lengths and not MIN_LENGTH <= lengths[OURS] <= 0.75 * max_new:
        bench.progress.say(
            f"decoding: the model writes {lengths[OURS]:.1f} pieces a sentence, so it is hardly "
            "trained, and these figures mean little"
        )
    tables = (
        ("output tokens/s, 128 at a time", "batch"),
        ("ms a token, one at a time (less is better)", "single"),
    )
    return {
        "settings": {**settings, "model": config, **bench.corpus.describe()},
        "agreement": agreement,
        "threads_used_best": {name: each.fastest for name, each in started.items()},
        "mean_output_pieces": lengths,
        "figures": [
            row
            for unit, key in tables
            for row in figures("decoding", unit, key, results, errors | failures, notes)
        ],
        "raw": results,
    }


def _start(
    bench: Bench, settings: dict[str, Any], stack: ExitStack
) -> tuple[dict[str, Started], dict[str, str]]:
    """Load every engine, once, and let it translate everything; those that fail, with the error.

    That is the warm-up, and the proof that the weights are the same.
    """
    started, failures = {}, {}
    for name in CONTESTANTS:
        bench.progress.now(f"{name}: loading")
        try:
            python = bench.our_python if name == OURS else bench.peers.require()
            worker = Worker(python, SCRIPT, {**settings, "contestant": name}, bench.options)
            stack.enter_context(worker)
            worker.wait()
            first = worker.ask("outputs")
            started[name] = Started(worker, first["ids"], first["fastest"])
        except BenchmarkError as error:
            failures[name] = str(error)
            bench.progress.say(f"{name}: {error}")
        bench.progress.done()
    return started, failures


def _measure(worker: Worker, _: int) -> dict[str, Any]:
    batch, single = worker.ask("batch"), worker.ask("single")
    return {
        "batch": batch["tokens"] / batch["seconds"],
        "single": 1000 * single["seconds"] / single["tokens"],
        "details": {"batch": batch, "single": single},
    }


def _agreement(outputs: dict[str, list[list[int]]], max_new: int) -> dict[str, float]:
    """Share of sentences whose pieces are ours; at the limit the end signs may differ."""
    ours = outputs.get(OURS)
    if ours is None:
        return {}
    return {
        name: sum(a[:max_new] == b[:max_new] for a, b in zip(ours, theirs, strict=True)) / len(ours)
        for name, theirs in outputs.items()
        if name != OURS
    }
