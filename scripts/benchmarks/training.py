"""Training: target tokens per second; end-of-sentence tokens count, padding does not."""

from __future__ import annotations

import re
import statistics
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import joeynmt
from benchmarks.bench import Bench
from benchmarks.child_processes import Worker
from benchmarks.corpus import fit, save_batches
from benchmarks.options import OURS, ROOT, SHAPE, TOKENS_PER_SIDE, BenchmarkError, Options
from benchmarks.rounds import Measure, figures, interleave

CONTESTANTS = (OURS, "JoeyNMT", "nn.Transformer", "MarianMTModel")
NOTES = {
    OURS: "the whole `translate fit`: Lightning, data loading, logging",
    "JoeyNMT": "the whole `joeynmt train`; its own batches, which are not sorted by length",
    "nn.Transformer": "plain loop on this program's batches, ready in RAM",
    "MarianMTModel": "plain loop on this program's batches, ready in RAM",
}


def units(rounds: int) -> int:
    """Return the steps of the progress bar."""
    return 1 + len(CONTESTANTS) * rounds


def measure(bench: Bench, rounds: int) -> dict[str, Any]:
    """Measure all contestants in turns."""
    options = bench.options
    interval, steps = intervals(options)
    bench.progress.now("training: data")
    batches = options.work / "data" / "batches.pt"
    about = save_batches(bench.corpus, batches, steps)
    bench.progress.done()
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}

        def loop(name: str, _: int) -> dict[str, Any]:
            if name not in workers:
                python = bench.peers.require() if name == "MarianMTModel" else sys.executable
                settings = {
                    "contestant": name, "batches": batches, "interval": interval,
                    "pieces": bench.corpus.pieces, "threads": options.threads,
                }  # fmt: skip
                worker = Worker(python, "training_peers", settings, options)
                workers[name] = stack.enter_context(worker)
            return mean_speed(workers[name].ask("train")["speeds"])

        def other(_: int) -> dict[str, Any]:
            python = bench.peers.require()
            return mean_speed(joeynmt.train(python, bench.corpus, options, interval, steps))

        contestants: dict[str, Measure] = {
            OURS: lambda _: fit_speed(bench, ROOT),
            "JoeyNMT": other,
            "nn.Transformer": partial(loop, "nn.Transformer"),
            "MarianMTModel": partial(loop, "MarianMTModel"),
        }
        results, errors = interleave(bench.progress, contestants, rounds)
    budget = f"{TOKENS_PER_SIDE} padded tokens per side"
    return {
        "settings": {
            **SHAPE, **about, **bench.corpus.describe(), "steps": steps, "budget": budget
        },
        "figures": figures("training", "target tokens/s", "speed", results, errors, NOTES),
        "raw": results,
    }  # fmt: skip


def intervals(options: Options) -> tuple[int, int]:
    """Return the steps between two measured speeds, and the steps of a whole run."""
    return (1, 3) if options.quick else (10, 40)


def mean_speed(speeds: list[float]) -> dict[str, Any]:
    """Return the mean speed of all intervals but the first, which is the warm-up.

    The mean is harmonic, because all intervals have equally many steps.
    """
    if len(speeds) < 2:
        raise BenchmarkError(f"expected at least 2 measured intervals, got {len(speeds)}")
    return {"speed": statistics.harmonic_mean(speeds[1:]), "intervals": speeds}


def fit_speed(bench: Bench, checkout: Path, model: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the speed of a whole `translate fit` of a source tree."""
    interval, steps = intervals(bench.options)
    folder = fit(
        bench.corpus, bench.options, bench.options.work / "training", model=model,
        trainer={"max_steps": steps, "max_epochs": -1, "log_every_n_steps": interval},
        checkout=checkout,
    )  # fmt: skip
    return mean_speed([event.value for event in logged(folder, r"train/.*tokens_per_second")])


def logged(run: Path, pattern: str) -> list[Any]:
    """Return the TensorBoard events of the scalar whose tag matches the pattern.

    Raises:
        BenchmarkError: no such tag.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    tags = events.Tags()["scalars"]
    found = [tag for tag in tags if re.fullmatch(pattern, tag)]
    if not found:
        raise BenchmarkError(f"expected a scalar {pattern} in {run}, got {', '.join(tags)}")
    return events.Scalars(found[0])
