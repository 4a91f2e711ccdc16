"""Checks of settings that neither the parser nor Lightning makes, or that Lightning makes late."""

from __future__ import annotations

from lightning.pytorch import Trainer

from translate.decoding.scoring import MAX_BEAM, MAX_LENGTH_PENALTY
from translate.errors import UsageError


def check_search(beam: int, length_penalty: float) -> list[str]:
    """Return what is wrong with the search settings of `test`, one message per fault."""
    faults = []
    if not 1 <= beam <= MAX_BEAM:
        faults.append(f"beam must be from 1 to {MAX_BEAM:,}, not {beam}")
    if not 0 <= length_penalty <= MAX_LENGTH_PENALTY:
        faults.append(
            f"length_penalty must be from 0 to {MAX_LENGTH_PENALTY}, not {length_penalty}"
        )
    return faults


def check_trainer(trainer: Trainer, batches: int | None = None) -> None:
    """Refuse what cannot train. `batches` per epoch are known once the data is read.

    Raises:
        UsageError: with all faults.
    """
    faults = []
    if trainer.world_size > 1:
        faults.append(
            f"training runs on one device, not {trainer.world_size}: set --trainer.devices 1"
        )
    limits = {
        "max_epochs": trainer.max_epochs,
        "max_steps": trainer.max_steps,
        "limit_train_batches": trainer.limit_train_batches,
    }
    faults += [f"nothing to train: trainer.{key} is 0" for key, x in limits.items() if x == 0]
    interval, every = trainer.val_check_interval, trainer.check_val_every_n_epoch
    if batches and isinstance(interval, int) and every is not None and interval > batches:
        faults.append(
            f"trainer.val_check_interval is {interval} batches, but an epoch has {batches}: "
            "set trainer.check_val_every_n_epoch to null to count across epochs"
        )
    if faults:
        raise UsageError("; ".join(faults))
