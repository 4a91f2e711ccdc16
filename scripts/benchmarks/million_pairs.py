"""A million pairs: time and RAM to read and encode them and to make the batches of an epoch."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.child_processes import answer, measure_in_child, peak_ram
from benchmarks.corpus import batches, prepare, read_lines
from benchmarks.options import OURS, Options
from benchmarks.rounds import figures, interleave

PAIRS, QUICK_PAIRS = 1_000_000, 50_000
UNITS = {
    "setup": "s to read and encode (lower is better)",
    "batches": "s to make the batches of an epoch (lower is better)",
    "peak": "peak RAM in MiB (lower is better)",
}


def measure(options: Options) -> list[dict[str, Any]]:
    """Read the corpus, repeated to a million pairs; return the rows of the table."""
    corpus = prepare(options)
    pairs = len(read_lines(corpus.train[0]))
    repeat = -(-(QUICK_PAIRS if options.quick else PAIRS) // pairs)
    settings = {"files": corpus.train, "tokenizer": corpus.tokenizer, "repeat": repeat}
    contestants = {OURS: partial(measure_in_child, "million_pairs", settings, options)}
    return figures(f"{repeat * pairs:,} pairs", UNITS, *interleave(contestants, rounds=1))


def read_pairs(settings: dict[str, Any]) -> dict[str, float]:
    """Measure in this process; return the numbers by the keys of `UNITS`."""
    files, tokenizer = list(map(Path, settings["files"])), Path(settings["tokenizer"])
    started = time.perf_counter()
    epoch = batches(files, tokenizer, settings["repeat"])
    next(epoch)
    ready = time.perf_counter()
    for _ in epoch:
        pass
    finished = time.perf_counter()
    return {"setup": ready - started, "batches": finished - ready, "peak": peak_ram()}


if __name__ == "__main__":
    answer(read_pairs)
