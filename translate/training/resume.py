"""Going on from a checkpoint: which one, what it has behind it, and whether anything is left."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from translate.decoding.checkpoint import TrainedModel, find_model, load_checkpoint
from translate.errors import UsageError, UserError
from translate.training.run_folder import version_number


@dataclass(frozen=True)
class Resumed:
    """A checkpoint that training goes on from."""

    path: Path
    bundle: TrainedModel
    epochs: int  # whole ones
    steps: int  # updates
    optimizer: str

    @classmethod
    def read(cls, given: Path) -> Resumed:
        """The checkpoint meant by `given`, a file or a folder.

        Raises:
            UserError: no such file, or one that cannot be resumed.
        """
        path = _last_checkpoint(given)
        bundle = load_checkpoint(path)
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        if "loops" not in checkpoint or "optimizer_states" not in checkpoint:
            raise UserError(f"{path}: holds weights only: it can translate, but not be resumed")
        loop = checkpoint["loops"]["fit_loop"]
        all_batches_done = loop["epoch_loop.batch_progress"]["is_last_batch"]
        epochs = loop["epoch_progress"]["current"]["completed"] + all_batches_done
        groups = checkpoint["optimizer_states"][0]["param_groups"]
        optimizer = "muon" if any(group.get("muon") for group in groups) else "adamw"
        return cls(path, bundle, epochs, checkpoint["global_step"], optimizer)

    def check_model(self, shape: dict[str, Any], optimizer: str) -> None:
        """UsageError unless the config describes the model and optimizer in the checkpoint."""
        stored = {**asdict(self.bundle.model.config), "optimizer": self.optimizer}
        changed = [
            f"{key} is {stored[key]} in the checkpoint, {value} in the config"
            for key, value in {**shape, "optimizer": optimizer}.items()
            if stored[key] != value
        ]
        if changed:
            raise UsageError(f"{self.path}: another model: {'; '.join(changed)}")

    def check_left(self, max_epochs: int | None, max_steps: int) -> None:
        """UserError if the run is already as long as it may get (-1: no limit)."""
        limits = []
        if max_epochs not in (None, -1) and self.epochs >= max_epochs:
            limits.append(f"max_epochs {max_epochs}")
        if max_steps != -1 and self.steps >= max_steps:
            limits.append(f"max_steps {max_steps}")
        if limits:
            raise UserError(
                f"{self.path}: nothing left to train: {self.epochs} epochs and {self.steps} "
                f"updates are done, and {' and '.join(limits)} allow no more; "
                f"raise --trainer.{limits[0].split()[0]} to go on"
            )


def make_resumable(loops: dict[str, Any]) -> None:
    """Turn the loops' state in a checkpoint into the one Lightning goes on from exactly.

    That is the state in which a validation saves: so many batches done, their epoch not ended.
    Saved at other moments (the end of an epoch or of training, after a batch), a resumed run would
    repeat batches or lose an epoch.
    """
    state = loops["fit_loop"]
    for scope in ("total", "current"):
        epoch = state["epoch_progress"][scope]
        epoch["processed"] = epoch["completed"] = epoch["started"] - 1
        batch = state["epoch_loop.batch_progress"][scope]
        batch["ready"] = batch["started"] = batch["completed"] = batch["processed"]


def _last_checkpoint(given: Path) -> Path:
    """Training goes on from the last state of the newest run, not from the best one."""
    given = given.expanduser()
    if given.is_file():
        return given
    last = [given / "last.ckpt", given / "checkpoints" / "last.ckpt"]
    versions = sorted(given.glob("version_*"), key=version_number, reverse=True)
    last += [version / "checkpoints" / "last.ckpt" for version in versions]
    return next((path for path in last if path.is_file()), None) or find_model(given)
