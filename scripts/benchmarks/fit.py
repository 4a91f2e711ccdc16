"""Run `translate fit` in a child process, to measure its speed or to get a model for decoding."""

from __future__ import annotations

import json
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.child_processes import run
from benchmarks.corpus import prepare
from benchmarks.options import ROOT, SEED, SHAPE, TOKENS_PER_SIDE, TRAINING, Options, say


def fit(
    options: Options,
    name: str,
    *,
    trainer: dict[str, Any],
    model: dict[str, Any] | None = None,
    batch_tokens: int = 2 * TOKENS_PER_SIDE,
    checkout: Path = ROOT,
) -> Path:
    """Run `translate fit` of a checkout with the common shape in float32, without validation.

    `trainer` and `model` are additional settings; `batch_tokens` counts both sides. The run goes
    into the folder `name` of the work folder and replaces an earlier run. Returns the run's folder.
    """
    corpus = prepare(options)
    sides = {
        part: {"source": str(source), "target": str(target)}
        for part, (source, target) in (("train", corpus.train), ("valid", corpus.valid))
    }
    cpu = {"accelerator": "cpu", "precision": "32-true", "limit_val_batches": 0}
    config = {
        "seed_everything": SEED,
        "data": {**sides, "tokenizer": str(corpus.tokenizer), "batch_tokens": batch_tokens},
        "model": {**SHAPE, **TRAINING, **(model or {})},
        "trainer": {**cpu, **trainer},
    }
    folder = options.work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "config.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    command = [sys.executable, "-m", "translate", "fit", "--config", file, "--runs", folder]
    run(command, options, f"fit_{name}", checkout=checkout)
    return next(folder.glob("*/version_*"))


@cache
def train_checkpoint(options: Options) -> Path:
    """Return the file of --checkpoint, or train a model.

    The model is post-norm, because MarianMTModel supports nothing else. The training is long enough
    for translations of realistic length; with --quick the model only learns to end a translation.
    With --against, the other checkout trains the model, because new versions read old checkpoints.
    """
    if options.checkpoint:
        return options.checkpoint
    say("training a model for decoding")
    trainer = {"max_epochs": 2 if options.multi30k else 1}  # data/tiny is repeated
    if options.quick:
        trainer = {"max_epochs": -1, "max_steps": 150}
    return fit(
        options, "model", trainer=trainer, model={"norm": "post"}, checkout=options.against or ROOT,
        batch_tokens=1024 if options.quick else 2048,
    ) / "checkpoints" / "last.ckpt"  # fmt: skip
