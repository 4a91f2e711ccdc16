"""Resume from a checkpoint: which one, what was done before it, and whether anything is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from translate.decoding.checkpoint import TrainedModel, find_model, load_checkpoint, version_number
from translate.errors import UsageError, UserError


def rewind_loops(loops: dict[str, Any]) -> None:
    """Set the state of Lightning's loops in a checkpoint to one that it resumes exactly.

    That is the state in which a validation saves: some batches are done, and their epoch has not
    ended. From checkpoints of other moments (the end of an epoch or of training, after a batch),
    Lightning repeats batches or loses an epoch.

    `checkpoint["loops"]` is not documented; these are its names in lightning 2.6. If they change,
    the tests in tests/training/test_resume.py fail.
    """
    state = loops["fit_loop"]
    for scope in ("total", "current"):
        epoch = state["epoch_progress"][scope]
        epoch["processed"] = epoch["completed"] = epoch["started"] - 1
        batch = state["epoch_loop.batch_progress"][scope]
        batch["ready"] = batch["started"] = batch["completed"] = batch["processed"]


@dataclass(frozen=True)
class Resumed:
    """The checkpoint from which a run is resumed."""

    path: Path
    trained: TrainedModel
    epochs: int  # complete ones
    updates: int
    optimizer: str

    @classmethod
    def read(cls, given: Path) -> Resumed:
        """Read the checkpoint that `given` means, a file or a folder.

        Raises:
            UserError: no such file, or one that cannot be resumed.
        """
        path = _last_checkpoint(given.expanduser())
        trained = load_checkpoint(path)
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        if not checkpoint.keys() >= {"training", "loops", "optimizer_states"}:
            raise UserError(
                f"{path}: this checkpoint can translate but not be resumed: it holds weights "
                "only, or an older version wrote it"
            )
        done = checkpoint["training"]
        return cls(path, trained, done["epochs"], done["updates"], done["optimizer"])

    def check_model(self, settings: Mapping[str, Any]) -> None:
        """Raise UsageError unless the settings describe the model in the checkpoint."""
        stored = {**asdict(self.trained.model.config), "optimizer": self.optimizer}
        changed = [
            f"{key} is {stored[key]} in the checkpoint, {value} in the config"
            for key, value in settings.items()
            if stored.get(key, value) != value
        ]
        if changed:
            raise UsageError(f"{self.path}: another model: {'; '.join(changed)}")

    def check_left(self, max_epochs: int | None, max_steps: int) -> None:
        """Raise UserError if the run has already reached a limit (-1: no limit)."""
        limits = []
        if max_epochs not in (None, -1) and self.epochs >= max_epochs:
            limits.append(f"max_epochs {max_epochs}")
        if max_steps != -1 and self.updates >= max_steps:
            limits.append(f"max_steps {max_steps}")
        if limits:
            raise UserError(
                f"{self.path}: nothing left to train: {self.epochs} epochs and {self.updates} "
                f"updates are done, and {' and '.join(limits)} allow no more; "
                f"raise --trainer.{limits[0].split()[0]}"
            )


def _last_checkpoint(given: Path) -> Path:
    """Prefer the last state of the newest run to the best one."""
    if given.is_file():
        return given
    last = [given / "last.ckpt", given / "checkpoints" / "last.ckpt"]
    versions = sorted(given.glob("version_*"), key=version_number, reverse=True)
    last += [version / "checkpoints" / "last.ckpt" for version in versions]
    return next((path for path in last if path.is_file()), None) or find_model(given)
