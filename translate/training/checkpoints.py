"""The callback that saves best.ckpt and last.ckpt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning.pytorch.callbacks import Checkpoint


class SaveCheckpoints(Checkpoint):
    """Saves best.ckpt at each best validation BLEU; last.ckpt after each validation and epoch.

    Args:
        folder: where both files are written; it is created.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.best_score: float | None = None  # BLEU
        self._updates_at_save = -1

    @property
    def best_path(self) -> Path:
        return self.folder / "best.ckpt"

    def on_validation_end(self, trainer, pl_module) -> None:
        if trainer.sanity_checking or trainer.fast_dev_run:
            return
        score = float(trainer.callback_metrics["val/bleu"])
        if self.best_score is None or score > self.best_score:
            self.best_score = score
            _save(trainer, self.best_path)
        self._save_last(trainer)

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        validated = self._updates_at_save == trainer.global_step
        if not validated and not trainer.fast_dev_run:
            self._save_last(trainer)

    def _save_last(self, trainer) -> None:
        self._updates_at_save = trainer.global_step
        _save(trainer, self.folder / "last.ckpt")

    def state_dict(self) -> dict[str, Any]:
        return {"best_score": self.best_score}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the best score if best.ckpt is here; a new folder needs a best.ckpt of its own."""
        if self.best_path.is_file():
            self.best_score = state_dict["best_score"]


def _save(trainer, path: Path) -> None:
    """Write so that `path` always holds a complete checkpoint."""
    partial = path.with_suffix(".partial")
    trainer.save_checkpoint(partial)
    partial.replace(path)
