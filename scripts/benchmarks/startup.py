"""Start-up: what a person waits for, from the start of the process."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.child_processes import run
from benchmarks.options import ROOT
from benchmarks.rounds import Measure, figures, interleave
from benchmarks.training import logged

SENTENCE = "This is an example."
UNIT = "s (less is better)"
# What is measured, and the import that takes most of its time.
DECODE, IMPORT_TORCH = "translate decode, one sentence", "import torch"
FIT, IMPORT_LIGHTNING = "translate fit, to the first step", "import torch, lightning"


def units(rounds: int) -> int:
    """Return the steps of the progress bar."""
    return 1 + 4 * rounds


def measure(bench: Bench, rounds: int) -> dict[str, Any]:
    """Measure whole processes in turns. Ratios are to the import that each one needs."""
    bench.progress.now("process: training a model")
    decode = ["decode", SENTENCE, "--model", bench.checkpoint]
    bench.progress.done()
    timed: dict[str, Measure] = {
        DECODE: partial(translate_seconds, bench, decode, ROOT),
        IMPORT_TORCH: partial(seconds, bench, [sys.executable, "-c", IMPORT_TORCH], ROOT),
        FIT: partial(first_step, bench),
        IMPORT_LIGHTNING: partial(seconds, bench, [sys.executable, "-c", IMPORT_LIGHTNING], ROOT),
    }
    results, errors = interleave(bench.progress, timed, rounds)
    rows = []
    for ours, peer in ((DECODE, IMPORT_TORCH), (FIT, IMPORT_LIGHTNING)):
        pair = {name: results[name] for name in (ours, peer)}
        rows += figures("process", UNIT, "seconds", pair, errors, reference=ours)
    return {"settings": {"config": "configs/tiny.yaml"}, "figures": rows, "raw": results}


def seconds(bench: Bench, command: list[str | Path], checkout: Path, _: int) -> dict[str, float]:
    """Return the seconds from the start of a process to its end."""
    started = time.perf_counter()
    run(command, bench.options, bench.options.work / "logs" / "process.log", checkout)
    return {"seconds": time.perf_counter() - started}


def translate_seconds(
    bench: Bench, arguments: list[str | Path], checkout: Path, round_: int
) -> dict[str, float]:
    """Return the seconds that a whole command of this program takes."""
    return seconds(bench, [sys.executable, "-m", "translate", *arguments], checkout, round_)


def first_step(bench: Bench, round_: int) -> dict[str, float]:
    """Return the seconds from the start of `translate fit` to the first loss it logs.

    That is after one update. The logger stores the time of each value; the end of the process
    does not count.
    """
    options = bench.options
    runs = options.work / "first_step" / f"round_{round_}_{time.time_ns()}"
    command = [sys.executable, "-m", "translate", "fit", "--config", ROOT / "configs" / "tiny.yaml"]
    command += ["--runs", runs, "--trainer.max_steps", "1", "--trainer.log_every_n_steps", "1"]
    command += ["--trainer.limit_val_batches", "0", "--trainer.enable_checkpointing", "false"]
    started = time.time()
    run(command, options, options.work / "logs" / "first_step.log")
    losses = logged(next(runs.glob("*/version_*")), r"train/loss")
    return {"seconds": losses[0].wall_time - started}
