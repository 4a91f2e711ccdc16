"""Settings of the commands, and checks that neither the parser nor Lightning makes in time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lightning.pytorch import Trainer

from translate.decoding.scoring import LENGTH_PENALTY
from translate.errors import UsageError


@dataclass
class CommandSettings:
    """Settings of a command.

    Args:
        name: folder in `runs`; by default the name of the config file.
        runs: folder of all runs; by default runs/, or where the resumed run is.
        ckpt_path: checkpoint or run folder: the run to resume, or the model to use.
        beam: beam width of `test`; 1 means greedy search only.
        length_penalty: beam search in `test` compares log probability / pieces ** length_penalty.
    """

    name: str | None = None
    runs: Path | None = None
    ckpt_path: str | None = None
    beam: int = 5
    length_penalty: float = LENGTH_PENALTY


@dataclass
class TestSettings(CommandSettings):
    """Settings of `test`.

    Args:
        input: file of sentences to translate instead of data.test.
        reference: file of their reference translations, line by line.
    """

    input: Path | None = None
    reference: Path | None = None


def out_of_range(
    settings: Mapping[str, float],
    lowest: Mapping[str, float],
    highest: Mapping[str, float] | None = None,
) -> list[str]:
    """Return a message for each of `settings` that is below its lowest or above its highest."""
    faults = []
    for name, low in lowest.items():
        high = (highest or {}).get(name, math.inf)
        if not low <= settings[name] <= high:
            rule = f"{low} or more" if high == math.inf else f"from {low} to {high:,}"
            faults.append(f"{name} must be {rule}, not {settings[name]}")
    return faults


def check_trainer(trainer: Trainer, batches: int | None = None) -> None:
    """Refuse settings that cannot train. `batches` per epoch are known once the data is read.

    Raises:
        UsageError: invalid settings, all in one message.
    """
    faults = [
        f"nothing to train: trainer.{limit} is 0"
        for limit in ("max_epochs", "max_steps", "limit_train_batches")
        if getattr(trainer, limit) == 0
    ]
    if (devices := trainer.world_size) > 1:
        faults.append(f"training runs on one device, not {devices}: set --trainer.devices 1")
    if trainer.strategy.root_device.type == "mps":
        faults.append("training on Apple's MPS is not supported: set --trainer.accelerator cpu")
    interval = trainer.val_check_interval
    in_epoch = trainer.check_val_every_n_epoch is not None
    if batches and in_epoch and isinstance(interval, int) and interval > batches:
        faults.append(
            f"trainer.val_check_interval is {interval} batches, but an epoch has {batches}: "
            "set trainer.check_val_every_n_epoch to null to count across epochs"
        )
    if faults:
        raise UsageError("; ".join(faults))
