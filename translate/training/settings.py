"""What Lightning would accept and then do nothing with, or stop at in the middle of a run."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Trainer

from translate.decoding.scoring import MAX_BEAM, MAX_LENGTH_PENALTY
from translate.errors import UsageError
from translate.training.module import VALIDATION_METRICS


def check_early_stopping(settings: Any) -> list[str]:
    """What is wrong with `early_stopping`, one entry a fault."""
    mode = VALIDATION_METRICS.get(settings.monitor)
    if mode is None:
        return [
            f"early_stopping.monitor is {settings.monitor}, which no validation logs: "
            f"choose one of {', '.join(VALIDATION_METRICS)}"
        ]
    faults = []
    if settings.patience < 0:
        faults.append(f"early_stopping.patience must be 0 or more, not {settings.patience}")
    if settings.mode != mode:
        faults.append(
            f"early_stopping.mode must be {mode} for {settings.monitor}, not {settings.mode}"
        )
    return faults


def check_search(beam: int, length_penalty: float) -> list[str]:
    """What is wrong with the search of `test`, one entry a fault."""
    faults = []
    if not 1 <= beam <= MAX_BEAM:
        faults.append(f"beam must be from 1 to {MAX_BEAM:,}, not {beam}")
    if not 0 <= length_penalty <= MAX_LENGTH_PENALTY:
        faults.append(
            f"length_penalty must be from 0 to {MAX_LENGTH_PENALTY}, not {length_penalty}"
        )
    return faults


def check_trainer(trainer: Trainer, batches: int | None = None) -> None:
    """Refuse what cannot train. `batches` of an epoch are known once the data is read.

    Raises:
        UsageError: with all that is wrong.
    """
    faults = []
    if trainer.world_size > 1:
        faults.append(
            f"training runs on one device, not {trainer.world_size}: set --trainer.devices 1"
        )
    nothing = {
        "max_epochs": trainer.max_epochs,
        "max_steps": trainer.max_steps,
        "limit_train_batches": trainer.limit_train_batches,
    }
    faults += [
        f"nothing to train: trainer.{key} is 0" for key, value in nothing.items() if value == 0
    ]
    interval, every = trainer.val_check_interval, trainer.check_val_every_n_epoch
    if batches and isinstance(interval, int) and every is not None and interval > batches:
        faults.append(
            f"trainer.val_check_interval is {interval} batches, but an epoch has {batches}: "
            "set trainer.check_val_every_n_epoch to null to count across epochs"
        )
    if faults:
        raise UsageError("; ".join(faults))
