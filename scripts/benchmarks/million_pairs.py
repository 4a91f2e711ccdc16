"""A million pairs: seconds and RAM to read and encode them and to make the batches of an epoch."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.child_processes import answer, measure_in_child, ram_mib
from benchmarks.corpus import batches, prepare, read_lines
from benchmarks.options import OURS, Options
from benchmarks.rounds import figures, interleave

PAIRS, QUICK_PAIRS = 1_000_000, 50_000
UNITS = {
    "setup": "s to read and encode (less is better)",
    "batches": "s to make an epoch's batches (less is better)",
    "peak": "MiB of RAM at most (less is better)",
}


def measure(options: Options) -> list[dict[str, Any]]:
    """Measure once, in a process of its own; return the rows of the table."""
    corpus, count = prepare(options), QUICK_PAIRS if options.quick else PAIRS
    with tempfile.TemporaryDirectory(dir=options.work, prefix="pairs-") as folder:
        files = [_write_lines(side, Path(folder), count) for side in corpus.train]
        settings = {"files": files, "tokenizer": corpus.tokenizer}
        contestants = {OURS: partial(measure_in_child, "million_pairs", settings, options)}
        return figures(f"{count:,} pairs", UNITS, *interleave(contestants, rounds=1))


def _write_lines(side: Path, folder: Path, count: int) -> Path:
    """Repeat the lines of a file, with a number at the end, so that no two are the same."""
    file = folder / side.name
    with file.open("w", encoding="utf-8") as lines:
        for number, line in zip(range(count), cycle(read_lines(side)), strict=False):
            lines.write(f"{line} {number}\n")
    return file


def read_pairs(settings: dict[str, Any]) -> dict[str, float]:
    """Measure in this process."""
    started = time.perf_counter()
    epoch = batches(settings["files"], settings["tokenizer"])
    next(epoch)
    ready = time.perf_counter()
    for _ in epoch:
        pass
    finished = time.perf_counter()
    return {"setup": ready - started, "batches": finished - ready, "peak": ram_mib("VmHWM")}


if __name__ == "__main__":
    answer(read_pairs)
