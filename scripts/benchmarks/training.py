"""Training: target tokens per second, with end-of-sentence tokens and without padding.

For this program and JoeyNMT, the whole command is measured, with data loading and logging. For the
others, a plain loop over this program's batches is measured. The batches are already in RAM.
"""

from __future__ import annotations

import re
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import joeynmt
from benchmarks.child_processes import measure_in_child
from benchmarks.corpus import prepare, save_batches
from benchmarks.fit import fit
from benchmarks.options import OURS, ROOT, BenchmarkError, Options
from benchmarks.peers import peer_python
from benchmarks.rounds import Measure, figures, interleave

UNITS = {"speed": "target tokens/s"}


def measure(options: Options, rounds: int) -> dict[str, Any]:
    """Measure all contestants in turns."""
    interval, steps = _intervals(options)
    batches = options.work / "data" / "batches.pt"
    save_batches(prepare(options), batches, steps)
    settings = {"batches": batches, "interval": interval, "pieces": prepare(options).pieces}

    def loop(model: str) -> dict[str, float]:
        python = peer_python(options) if model == "MarianMTModel" else sys.executable
        shape = {**settings, "model": model}
        return _mean(measure_in_child("training_peers", shape, options, python=python)["speeds"])

    contestants: dict[str, Measure] = {
        OURS: partial(fit_speed, options, ROOT),
        "JoeyNMT": lambda: _mean(joeynmt.train(options, interval, steps)),
        "nn.Transformer": partial(loop, "nn.Transformer"),
        "MarianMTModel": partial(loop, "MarianMTModel"),
    }
    return {"figures": figures("training", UNITS, *interleave(contestants, rounds))}


def fit_speed(options: Options, checkout: Path, optimizer: str = "adamw") -> dict[str, float]:
    """Return the speed of a whole `translate fit` of a checkout."""
    interval, steps = _intervals(options)
    trainer = {"max_steps": steps, "max_epochs": -1, "log_every_n_steps": interval}
    model = {"optimizer": optimizer}
    run = fit(options, "training", trainer=trainer, model=model, checkout=checkout)
    return _mean([event.value for event in logged(run, r".*tokens_per_second")])


def logged(run: Path, pattern: str) -> list[Any]:
    """Return the TensorBoard events of the first scalar whose tag matches the pattern."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    tags = events.Tags()["scalars"]
    found = [tag for tag in tags if re.fullmatch(pattern, tag)]
    if not found:
        raise BenchmarkError(f"expected a scalar {pattern} in {run}, got {', '.join(tags)}")
    return events.Scalars(found[0])


def _intervals(options: Options) -> tuple[int, int]:
    """Return the steps between two logged speeds, and the steps of a whole run."""
    return (1, 3) if options.quick else (10, 40)


def _mean(speeds: list[float]) -> dict[str, float]:
    """Return the harmonic mean of the speeds. The first interval is warm-up and is left out."""
    if len(speeds) < 2:
        raise BenchmarkError(f"expected at least 2 measured intervals, got {len(speeds)}")
    return {"speed": statistics.harmonic_mean(speeds[1:])}
