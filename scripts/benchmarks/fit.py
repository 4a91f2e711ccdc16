"""`translate fit` in a child process, and what it logs."""

from __future__ import annotations

import re
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from benchmarks.child_processes import run
from benchmarks.corpus import prepare
from benchmarks.options import (
    LEARNING_RATE,
    ROOT,
    SEED,
    SHAPE,
    SMOOTHING,
    TOKENS_PER_SIDE,
    BenchmarkError,
    Options,
    say,
)


def fit(
    options: Options,
    name: str,
    *,
    trainer: dict[str, Any],
    model: dict[str, Any] | None = None,
    batch_tokens: int = 2 * TOKENS_PER_SIDE,
    checkout: Path = ROOT,
) -> Path:
    """Run `translate fit` with the common shape in float32, without validation; return the run's folder.

    Args:
        options: the command line.
        name: the folder in the work folder for config and run; an earlier run there is deleted.
        trainer: settings of the Trainer, for example how many steps.
        model: settings of the model beside those of the common shape.
        batch_tokens: padded tokens of a batch, both sides together.
        checkout: the source tree to run.
    """
    corpus = prepare(options)
    sides = {
        part: {"source": str(files[0]), "target": str(files[1])}
        for part, files in (("train", corpus.train), ("valid", corpus.valid))
    }
    defaults = {**SHAPE, "peak_learning_rate": LEARNING_RATE, "label_smoothing": SMOOTHING}
    speed = {"accelerator": "cpu", "precision": "32-true", "limit_val_batches": 0}
    config = {
        "seed_everything": SEED,
        "data": {**sides, "tokenizer": str(corpus.tokenizer), "batch_tokens": batch_tokens},
        "model": {**defaults, **(model or {})},
        "trainer": {**speed, **trainer},
    }
    folder = options.work / name
    runs = folder / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    command = [sys.executable, "-m", "translate", "fit", "--config", file, "--runs", runs]
    run(command, options, f"fit_{name}", checkout=checkout)
    return run_folder(runs)


def run_folder(runs: Path) -> Path:
    """Return the only run in a folder of runs."""
    return next(runs.glob("*/version_*"))


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


@cache
def train_checkpoint(options: Options) -> Path:
    """Return --checkpoint or train a model; post-norm, because MarianMTModel has nothing else.

    Long enough that its translations have realistic lengths; the quick one only learns to stop.
    With --against, the other checkout trains it, because new versions read old checkpoints.
    """
    if options.checkpoint:
        return options.checkpoint
    say("training a model for decoding")
    steps = {"max_steps": 150, "max_epochs": -1}
    epochs = {"max_epochs": 2 if options.multi30k else 1}  # data/tiny is repeated
    folder = fit(
        options, "model", model={"norm": "post"}, checkout=options.against or ROOT,
        trainer=steps if options.quick else epochs, batch_tokens=1024 if options.quick else 2048,
    )  # fmt: skip
    return folder / "checkpoints" / "last.ckpt"
