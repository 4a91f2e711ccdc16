"""Start-up: seconds from the start of a process to its result; and a million pairs."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import million_pairs
from benchmarks.child_processes import run
from benchmarks.fit import train_checkpoint
from benchmarks.options import ROOT, Options
from benchmarks.rounds import Measure, figures, interleave
from benchmarks.training import logged

SENTENCE = "This is an example."
UNITS = {"seconds": "s (lower is better)"}
# Each command, and the import that takes most of its time.
DECODE, IMPORT_TORCH = "translate decode, one sentence", "import torch"
FIT, IMPORT_LIGHTNING = "translate fit, to the first step", "import torch, lightning"


def measure(options: Options, rounds: int) -> dict[str, Any]:
    """Measure whole processes in turns. Each command is compared with the import that it needs."""
    decode = ["-m", "translate", "decode", SENTENCE, "--model", train_checkpoint(options)]
    contestants: dict[str, Measure] = {
        DECODE: partial(seconds, options, decode),
        IMPORT_TORCH: partial(seconds, options, ["-c", IMPORT_TORCH]),
        FIT: partial(first_step, options),
        IMPORT_LIGHTNING: partial(seconds, options, ["-c", IMPORT_LIGHTNING]),
    }
    results, errors = interleave(contestants, rounds)
    rows = []
    for ours, peer in ((DECODE, IMPORT_TORCH), (FIT, IMPORT_LIGHTNING)):
        pair = {name: results[name] for name in (ours, peer)}
        rows += figures("process", UNITS, pair, errors, reference=ours)
    return {"figures": [*rows, *million_pairs.measure(options)]}


def seconds(options: Options, arguments: list[object], checkout: Path = ROOT) -> dict[str, float]:
    """Return the seconds from the start of a Python process to its end."""
    started = time.perf_counter()
    run([sys.executable, *arguments], options, "process", checkout=checkout)
    return {"seconds": time.perf_counter() - started}


def first_step(options: Options) -> dict[str, float]:
    """Return the seconds from the start of `translate fit` to the loss after its first update.

    The logger stores the time of each value, so the seconds after the first update do not count.
    """
    runs = options.work / "first_step" / str(time.time_ns())
    command = [sys.executable, "-m", "translate", "fit", "--config", ROOT / "configs" / "tiny.yaml"]
    command += ["--runs", runs, "--trainer.max_steps", "1", "--trainer.log_every_n_steps", "1"]
    command += ["--trainer.limit_val_batches", "0", "--trainer.enable_checkpointing", "false"]
    started = time.time()
    run(command, options, "first_step")
    losses = logged(next(runs.glob("*/version_*")), r"train/loss.*")
    return {"seconds": losses[0].wall_time - started}
