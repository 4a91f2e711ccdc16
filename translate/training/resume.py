"""Resume from a checkpoint: find it, read its progress, and check what has changed since."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Timer

from translate.decoding.checkpoint import (
    TrainedModel,
    check_undamaged,
    load_checkpoint,
)
from translate.decoding.find_model import find_model, version_number
from translate.errors import UsageError, UserError
from translate.training.run_folder import RunFolder

# Settings that decide which pairs a batch holds and which batches make up an update.
_BATCH_SETTINGS = {
    "seed_everything",
    "data.batch_tokens",
    "trainer.accumulate_grad_batches",
    "trainer.overfit_batches",
}


def validation_follows(trainer: Trainer) -> bool:
    """Return whether the settings plan a validation after the batches done so far."""
    every = trainer.check_val_every_n_epoch  # None: batches are counted across epochs
    if not trainer.enable_validation or trainer.val_check_batch is None:  # None: by the clock
        return False
    if every is not None and (trainer.current_epoch + 1) % every:
        return False
    progress = trainer.fit_loop.epoch_loop.batch_progress
    done = (progress.total if every is None else progress.current).processed
    return done % trainer.val_check_batch == 0


def rewind_loops(loops: dict[str, Any], *, logged_updates: int) -> dict[str, int]:
    """Change the loop state in a checkpoint so that Lightning resumes exactly.

    The result is the state during a validation: some batches are done, and their epoch has not
    ended. From checkpoints of other moments (the end of an epoch or of training, before or after a
    batch), Lightning would repeat batches or lose an epoch.

    `checkpoint["loops"]` is not documented; these are the names in lightning 2.6. If they change,
    the tests in tests/training/test_resume.py fail.

    Args:
        loops: the state, which is changed.
        logged_updates: how many updates Lightning has counted for `log_every_n_steps`. It counts an
            update after the validation that follows it, and when it resumes there.

    Returns:
        How many epochs are complete, and how many batches of the latest epoch are done.
    """
    state = loops["fit_loop"]
    state["epoch_loop.state_dict"]["_batches_that_stepped"] = logged_updates
    progress = state["epoch_loop.batch_progress"]
    if progress["current"]["started"] < progress["current"]["ready"]:
        progress["is_last_batch"] = False  # it described the batch that is about to start
    for scope in ("total", "current"):
        epoch, batch = state["epoch_progress"][scope], progress[scope]
        epoch["processed"] = epoch["completed"] = epoch["started"] - 1
        batch["ready"] = batch["started"] = batch["completed"] = batch["processed"]
    epochs = state["epoch_progress"]["current"]["completed"] + progress["is_last_batch"]
    return {"epochs": epochs, "batches": progress["current"]["processed"]}


def restart_epoch(checkpoint: dict[str, Any]) -> None:
    """Change a checkpoint so that its unfinished epoch starts with its first batch again."""
    progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    done = checkpoint["training"]["batches"]
    for key in ("ready", "started", "processed", "completed"):
        progress["total"][key] -= done
        progress["current"][key] -= done
    checkpoint["training"]["batches"] = 0
    checkpoint["training"].pop("unfinished", None)


@dataclass(frozen=True)
class Resumed:
    """The checkpoint from which a run is resumed."""

    path: Path
    trained: TrainedModel
    updates: int
    optimizer: str
    training: dict[str, Any]  # progress, and since run.json exists, what describes the run
    callbacks: dict[str, Any]  # their states
    progress: dict[str, Any]  # of Lightning, in the latest epoch

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
        try:
            return cls(
                path,
                trained,
                updates=checkpoint["global_step"],
                optimizer=checkpoint["hyper_parameters"]["optimizer"],
                training=checkpoint["training"],
                callbacks=checkpoint["callbacks"],
                progress=checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"],
            )
        except (KeyError, TypeError) as error:
            raise UserError(
                f"{path}: this checkpoint can translate but not be resumed: entry {error} is "
                "missing or damaged"
            ) from None

    def check_model(self, settings: Mapping[str, Any]) -> None:
        """Check that the model `settings` fit the weights and the state of the optimizer.

        Raises:
            UsageError: they describe another model.
        """
        stored = {**asdict(self.trained.model.config), "optimizer": self.optimizer}
        del stored["dropout"]
        changed = [
            f"{key} is {stored[key]} in the checkpoint, {value} in the config"
            for key, value in settings.items()
            if stored.get(key, value) != value
        ]
        if changed:
            raise UsageError(f"{self.path}: another model: {'; '.join(changed)}")

    def folder(self) -> RunFolder | None:
        """Return the folder of this run, or None if the checkpoint is elsewhere.

        The id decides, not the path: a run folder may be moved, renamed or copied.
        """
        folder = RunFolder.of_checkpoint(self.path)
        return folder if folder and folder.run_id == self.training.get("id") else None

    def check_limits(self, trainer: Trainer) -> None:
        """Check that `trainer` has something to do.

        Raises:
            UserError: the run has already reached a limit.
        """
        epochs = self.training["epochs"]
        done = {"max_epochs": epochs, "max_steps": self.updates}
        limits = {name: getattr(trainer, name) for name in done}  # -1: no limit
        reached = {  # the setting to raise, and what it allows
            f"trainer.{name}": f"{name} {limits[name]}"
            for name in done
            if -1 < limits[name] <= done[name]
        }
        seconds = seconds_left(trainer)  # of the whole run, as training has not started
        timer = self.callbacks.get("Timer", {"time_elapsed": {"train": 0}})
        if timer["time_elapsed"]["train"] >= seconds:
            reached["trainer.max_time"] = f"max_time of {seconds:g} seconds"
        if early := trainer.early_stopping_callback:
            waited = self.callbacks.get(early.state_key, {}).get("wait_count", 0)
            if 0 < waited >= early.patience:
                reached["early_stopping.patience"] = f"early_stopping.patience {early.patience}"
        if reached:
            raise UserError(
                f"{self.path}: nothing left to train: {epochs} epochs and {self.updates} updates "
                f"are done, and {' and '.join(reached.values())} allow no more; raise "
                f"--{next(iter(reached))}, or set another --name for a new run with these weights"
            )

    def other_data(self, sha256: Mapping[str, str]) -> str:
        """Return why a corpus with these hashes cannot continue the run, or ""."""
        stored = self.training.get("sha256", sha256)
        same = stored["train"] == sha256["train"]
        return "" if same else "that run was trained on other sentence pairs"

    def changed_settings(self, record: Mapping[str, Any]) -> dict[str, str]:
        """Return "old -> new" for each setting that differs from the checkpoint's, by name."""
        stored = self.training.get("settings", {})
        return {
            name: f"{stored[name]} -> {value}"
            for name, value in record["settings"].items()
            if name in stored and stored[name] != value
        }

    def notes(self, record: Mapping[str, Any]) -> list[str]:
        """Return what a user should know about another environment and other validation data."""
        notes = []
        stored = self.training.get("environment", {})
        now = record["environment"]
        changed = [
            f"{name} {value} -> {now[name]}"
            for name, value in stored.items()
            if now.get(name, value) != value
        ]
        if changed:
            notes.append(
                "results may differ by rounding from those of an uninterrupted run: "
                + ", ".join(changed)
            )
        stored = self.training.get("sha256", record["sha256"])
        if stored["valid"] != record["sha256"]["valid"]:
            notes.append(
                "the validation pairs have changed since the checkpoint: do not compare scores "
                "before and after; best.ckpt is replaced only at a higher score"
            )
        return notes

    def restarts_epoch(self, changed: Mapping[str, str]) -> bool:
        """Return whether `changed` settings give the unfinished epoch other batches."""
        inside = self.training["batches"] > 0 and not self.progress["is_last_batch"]
        return inside and not _BATCH_SETTINGS.isdisjoint(changed)


def seconds_left(trainer: Trainer) -> float:
    """Return the seconds that trainer.max_time still allows; infinity if it is not set."""
    timers = [each for each in trainer.callbacks if isinstance(each, Timer)]
    limits = [left for timer in timers if (left := timer.time_remaining()) is not None]
    return min(limits, default=math.inf)


def _last_checkpoint(given: Path) -> Path:
    """Return the file `given`, or last.ckpt of the newest run in it; else ask `find_model`."""
    versions = sorted(given.glob("version_*"), key=version_number, reverse=True)
    folders = [given, *(folder / "checkpoints" for folder in (given, *versions))]
    candidates = [given, *(folder / "last.ckpt" for folder in folders)]
    return next((path for path in candidates if path.is_file()), None) or find_model(given)
