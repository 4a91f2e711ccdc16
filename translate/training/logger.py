"""The TensorBoard logger: one x axis for every value, picture and text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lightning.pytorch import Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from translate.training.run_folder import RunFolder


def tensorboard_writer(trainer: Trainer) -> Any:
    """Return the SummaryWriter of `trainer`; None with another logger or without one."""
    return trainer.logger.experiment if isinstance(trainer.logger, TensorBoardLogger) else None


def show_text(trainer: Trainer, tag: str, text: str) -> None:
    """Show `text` in TensorBoard as a code block, in which no character becomes markup."""
    if writer := tensorboard_writer(trainer):
        block = "    " + text.replace("\n", "\n    ")  # Markdown: four spaces start a code block
        writer.add_text(tag, block, trainer.global_step)


class RunLogger(TensorBoardLogger):
    """Logger of the run's folder; x is the number of updates made when a value was measured.

    Lightning's own count is one lower at validation, and with accumulation or after a resume it
    can give two values the same number.

    Args:
        folder: where events are written.
        updates: returns the number of updates made.
        resumed_after: updates at the checkpoint of a resumed run. TensorBoard then drops what an
            earlier run logged after that checkpoint.
    """

    def __init__(
        self, folder: RunFolder, updates: Callable[[], int], resumed_after: int | None = None
    ) -> None:
        purge = None if resumed_after is None else resumed_after + 1
        super().__init__(
            folder.path, name="", version="", default_hp_metric=False, purge_step=purge
        )
        self._folder = folder
        self._updates = updates

    @property
    def log_dir(self) -> str:
        return str(self._folder.path)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        shown = {tag: value for tag, value in metrics.items() if tag != "epoch"}
        super().log_metrics(shown, self._updates())

    def save(self) -> None:
        """Flush only: Lightning would also write an empty hparams.yaml beside config.yaml."""
        self.experiment.flush()
