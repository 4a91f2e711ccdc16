"""Resume from a checkpoint: find it, read its progress, and check that updates are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer

from translate.decoding.checkpoint import (
    TrainedModel,
    check_undamaged,
    load_checkpoint,
)
from translate.decoding.find_model import find_model, version_number
from translate.errors import UsageError, UserError


def rewind_loops(loops: dict[str, Any]) -> dict[str, int]:
    """Change the loop state in a checkpoint so that Lightning resumes exactly.

    The result is the state during a validation: some batches are done, and their epoch has not
    ended. From checkpoints of other moments (the end of an epoch or of training, after a batch),
    Lightning would repeat batches or lose an epoch.

    `checkpoint["loops"]` is not documented; these are the names in lightning 2.6. If they change,
    the tests in tests/training/test_resume.py fail.

    Returns:
        How many epochs are complete, and how many batches of the latest epoch are done.
    """
    state = loops["fit_loop"]
    progress = state["epoch_loop.batch_progress"]
    for scope in ("total", "current"):
        epoch, batch = state["epoch_progress"][scope], progress[scope]
        epoch["processed"] = epoch["completed"] = epoch["started"] - 1
        batch["ready"] = batch["started"] = batch["completed"] = batch["processed"]
    epochs = state["epoch_progress"]["current"]["completed"] + progress["is_last_batch"]
    return {"epochs": epochs, "batches": progress["current"]["processed"]}


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
        """Read the checkpoint `given`, a file or a folder.

        Raises:
            UserError: there is no such file, or it cannot be resumed.
        """
        path = _last_checkpoint(given.expanduser())
        trained = load_checkpoint(path)
        check_undamaged(path)
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        if not checkpoint.keys() >= {"training", "loops", "optimizer_states"}:
            raise UserError(
                f"{path}: this checkpoint can translate but not be resumed: it holds weights "
                "only, or an older version wrote it"
            )
        optimizer = checkpoint["hyper_parameters"]["optimizer"]
        epochs, updates = checkpoint["training"]["epochs"], checkpoint["global_step"]
        return cls(path, trained, epochs, updates, optimizer)

    def check(self, settings: Mapping[str, Any], trainer: Trainer) -> None:
        """Check that `settings` describe the same model and that `trainer` has something to do.

        Raises:
            UsageError: the settings describe another model.
            UserError: the run has already reached a limit.
        """
        stored = {**asdict(self.trained.model.config), "optimizer": self.optimizer}
        changed = [
            f"{key} is {stored[key]} in the checkpoint, {value} in the config"
            for key, value in settings.items()
            if stored.get(key, value) != value
        ]
        if changed:
            raise UsageError(f"{self.path}: another model: {'; '.join(changed)}")
        done = {"max_epochs": self.epochs, "max_steps": self.updates}
        limits = {name: getattr(trainer, name) for name in done}  # -1: no limit
        reached = [name for name in done if -1 < limits[name] <= done[name]]
        if reached:
            allowed = " and ".join(f"{name} {limits[name]}" for name in reached)
            raise UserError(
                f"{self.path}: nothing left to train: {self.epochs} epochs and {self.updates} "
                f"updates are done, and {allowed} allow no more; raise --trainer.{reached[0]}"
            )


def _last_checkpoint(given: Path) -> Path:
    """Return the file `given`, or last.ckpt of the newest run in it; else ask `find_model`."""
    versions = sorted(given.glob("version_*"), key=version_number, reverse=True)
    folders = [given, *(folder / "checkpoints" for folder in (given, *versions))]
    candidates = [given, *(folder / "last.ckpt" for folder in folders)]
    return next((path for path in candidates if path.is_file()), None) or find_model(given)
