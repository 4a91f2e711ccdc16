"""The TensorBoard logger: one x axis for every curve, picture and text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lightning.pytorch.loggers import TensorBoardLogger

from translate.training.run_folder import RunFolder


class Curves(TensorBoardLogger):
    """Writes into the run's folder; x counts the updates that a value has behind it.

    Lightning's own count stays one behind at validation, and under accumulation or after a
    resume two values can fall on one number.

    Args:
        folder: where events are written.
        resumed_after: updates of the checkpoint that a resumed run goes on from. What an earlier
            run logged beyond it has not happened, and TensorBoard drops it.
    """

    def __init__(self, folder: RunFolder, resumed_after: int | None = None) -> None:
        purge = None if resumed_after is None else resumed_after + 1
        super().__init__(
            folder.runs, folder.name, folder.version, default_hp_metric=False, purge_step=purge
        )
        self._folder = folder
        self.updates: Callable[[], int] | None = None  # set where the trainer is made

    @property
    def log_dir(self) -> str:
        return str(self._folder.path)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        shown = {tag: value for tag, value in metrics.items() if tag != "epoch"}  # a staircase
        super().log_metrics(shown, step if self.updates is None else self.updates())

    def save(self) -> None:
        """Lightning would write an empty hparams.yaml beside config.yaml."""
        self.experiment.flush()
