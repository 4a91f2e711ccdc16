"""Where a training step spends its time: the table of torch.profiler, by operation."""

from __future__ import annotations

from typing import Any

from benchmarks.child_processes import measure_in_child
from benchmarks.options import TOKENS_PER_SIDE, Options

ROUNDS = QUICK_ROUNDS = 1
LENGTH = 16  # pieces, about the mean of Multi30k


def measure(options: Options, rounds: int) -> dict[str, Any]:
    """Profile `rounds` times ten steps."""
    settings = {
        "rows": TOKENS_PER_SIDE // LENGTH, "length": LENGTH, "profile": True, "warmup": 2,
        "steps": 10 * rounds,
    }  # fmt: skip
    return {"text": measure_in_child("training_step", settings, options)["table"]}
