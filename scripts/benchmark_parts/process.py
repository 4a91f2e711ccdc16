"""The process contest: what a person waits for, from the start of the process."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmark_parts.children import run
from benchmark_parts.common import SCRIPTS, Bench, BenchmarkError
from benchmark_parts.rounds import figures, interleave

ROOT = SCRIPTS.parent
SENTENCE = "This is an example."


def units(rounds: int) -> int:
    """Steps of the progress bar."""
    return 1 + 4 * rounds


def compete(bench: Bench, rounds: int) -> dict[str, Any]:
    """Whole processes in turns; JSON-able. Ratios are to the import nobody can avoid."""
    bench.progress.now("process: training a model")
    checkpoint = bench.checkpoint
    bench.progress.done()
    python = sys.executable
    decode = [python, "-m", "translate", "decode", SENTENCE, "--model", checkpoint]
    timed = {
        "translate decode, one sentence": partial(_wall_time, bench, decode),
        "import torch": partial(_wall_time, bench, [python, "-c", "import torch"]),
        "translate fit, to the end of the first step": partial(_first_step, bench),
        "import torch, lightning": partial(
            _wall_time, bench, [python, "-c", "import torch, lightning"]
        ),
    }
    results, errors = interleave(bench, timed, rounds)
    rows = []
    for ours, peer in (list(timed)[:2], list(timed)[2:]):
        pair = {name: results[name] for name in (ours, peer)}
        rows += figures("process", "s (less is better)", "seconds", pair, errors, reference=ours)
    return {
        "settings": {"sentence": SENTENCE, "config": "configs/tiny.yaml"},
        "figures": rows,
        "raw": results,
    }


def _wall_time(bench: Bench, command: list[str | Path], _: int) -> dict[str, float]:
    """Seconds from the start of a process to its end."""
    started = time.perf_counter()
    run(command, bench.options, bench.options.work / "logs" / "process.log")
    return {"seconds": time.perf_counter() - started}


def _first_step(bench: Bench, round_: int) -> dict[str, float]:
    """Seconds from the start of `translate fit` to the first loss it logs, after one update.

    The logger stamps each value with the time; what the process does after it does not count.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = bench.options
    runs = options.work / "first_step" / f"round_{round_}_{time.time_ns()}"
    command = [sys.executable, "-m", "translate", "fit", "--config", ROOT / "configs" / "tiny.yaml"]
    command += ["--runs", runs, "--trainer.max_steps", "1", "--trainer.log_every_n_steps", "1"]
    command += ["--trainer.limit_val_batches", "0", "--trainer.enable_checkpointing", "false"]
    started = time.time()
    run(command, options, options.work / "logs" / "first_step.log")
    events = EventAccumulator(str(next(runs.glob("*/version_*"))))
    events.Reload()
    losses = events.Scalars("train/loss")
    if not losses:
        raise BenchmarkError(f"no loss was logged in {runs}")
    return {"seconds": losses[0].wall_time - started}
