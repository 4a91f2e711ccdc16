"""Callbacks: progress, the speed of training, early stopping, and checkpoints."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import torch
from lightning.pytorch.callbacks import Callback, Checkpoint, EarlyStopping, TQDMProgressBar

from translate.training.logger import tensorboard_writer
from translate.training.resume import validation_follows
from translate.training.settings import out_of_range

logger = logging.getLogger(__name__)

ValidationMetric = Literal[
    "val/bleu", "val/chrf", "val/exact_match", "val/loss", "val/nll", "val/perplexity"
]


logger = logging.getLogger(__name__)

# How callbacks show metrics: a label and a format.
_SHOWN = {
    "train/loss": ("loss", "{:.3f}"),
    "train/learning_rate": ("rate", "{:.1e}"),
    "train/tokens_per_second": ("tokens/s", "{:,.0f}"),
    "val/bleu": ("BLEU", "{:.1f}"),
}


def _shown(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Return the metrics that a progress bar shows, by label."""
    known = [name for name in _SHOWN if name in metrics]
    return {_SHOWN[name][0]: _SHOWN[name][1].format(float(metrics[name])) for name in known}


class ProgressBar(TQDMProgressBar):
    """Progress bar with loss, learning rate, target tokens per second and BLEU."""

    def on_train_start(self, trainer, pl_module) -> None:
        """Start the bar of a run that is resumed inside an epoch, which Lightning does not do."""
        super().on_train_start(trainer, pl_module)
        skipped = trainer.datamodule.train_sampler.skip
        if 0 < skipped < trainer.num_training_batches:
            self.on_train_epoch_start(trainer, pl_module)
            self.train_progress_bar.n = self.train_progress_bar.initial = skipped

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        self.train_progress_bar.initial = 0  # before the reset, which shows a rate
        super().on_train_epoch_start(trainer, pl_module)

    def on_exception(self, trainer, pl_module, exception) -> None:
        """Close the bars, so that messages appear below them."""
        for name in ("val_progress_bar", "train_progress_bar"):
            with contextlib.suppress(TypeError):  # there is no such bar at the moment
                getattr(self, name).close()

    def get_metrics(self, trainer, pl_module) -> dict[str, Any]:
        return dict(_shown(trainer.callback_metrics))


class ProgressLines(Callback):
    """Callback that logs the progress of training in lines, for a log file instead of a terminal.

    The time between lines grows with the length of the training, up to five minutes.

    Args:
        seconds: time until the first line, and the least time between two lines.
    """

    def __init__(self, seconds: float = 10) -> None:
        self.seconds = seconds

    def on_train_start(self, trainer, pl_module) -> None:
        self._start, self._first_step = time.monotonic(), trainer.global_step
        self._next = self._start + self.seconds

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        self._epoch = trainer.current_epoch + 1

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + min(max(self.seconds, 0.1 * (now - self._start)), 300)
            self._log(trainer, now - self._start)

    def on_train_end(self, trainer, pl_module) -> None:
        self._log(trainer, time.monotonic() - self._start)

    def _log(self, trainer, seconds: float) -> None:
        step, total = trainer.global_step, trainer.estimated_stepping_batches
        limit = f" of {total:,}" if math.isfinite(total) else ""
        parts = [f"epoch {self._epoch}", f"step {step:,}{limit}"]
        metrics = _shown(trainer.callback_metrics)
        parts += [f"{label} {text}" for label, text in metrics.items()]
        if limit and self._first_step < step < total:
            left = seconds / (step - self._first_step) * (total - step)
            parts.append(f"{timedelta(seconds=round(left))} left")
        logger.info(", ".join(parts))


class Speed(Callback):
    """Callback that logs real target tokens per second, without the time of validations."""

    _start = 0.0  # when the count of tokens began

    def on_train_start(self, trainer, pl_module) -> None:
        self._tokens = 0  # since the last logged value
        self._start = time.perf_counter()

    def on_validation_start(self, trainer, pl_module) -> None:
        self._pause = time.perf_counter()

    def on_validation_end(self, trainer, pl_module) -> None:
        self._start += time.perf_counter() - self._pause

    def on_before_optimizer_step(self, trainer, pl_module, optimizer) -> None:
        self._tokens += pl_module.tokens_in_update
        if (trainer.global_step + 1) % max(1, trainer.log_every_n_steps) == 0:
            now = time.perf_counter()
            self.log("train/tokens_per_second", self._tokens / (now - self._start), batch_size=1)
            self._tokens, self._start = 0, now


class EarlyStoppingAboveZero(EarlyStopping):
    """Early stopping that ignores the first epochs, where BLEU stays close to zero.

    Args:
        monitor: the validation metric that must improve.
        mode: whether a higher ("max") or a lower ("min") value is better.
        patience: stop after so many validations in a row without an improvement.
        check_on_train_epoch_end: check after every epoch instead of after every validation.
        **options: other arguments of Lightning's EarlyStopping.

    Raises:
        ValueError: invalid settings, all in one message.
    """

    STARTED = 1.0  # BLEU

    def __init__(
        self,
        monitor: ValidationMetric = "val/bleu",
        mode: Literal["max", "min"] = "max",
        patience: int = 10,
        check_on_train_epoch_end: bool = False,
        **options: Any,
    ) -> None:
        faults = out_of_range({"patience": patience}, {"patience": 0})
        better = "min" if monitor in ("val/loss", "val/nll", "val/perplexity") else "max"
        if mode != better:
            faults.append(f"mode must be {better} for {monitor}, not {mode}")
        if faults:
            raise ValueError("; ".join(f"early_stopping.{fault}" for fault in faults))
        options["check_on_train_epoch_end"] = check_on_train_epoch_end
        super().__init__(monitor, mode=mode, patience=patience, **options)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the history, but not the patience: a resumed run may have another one."""
        super().load_state_dict({**state_dict, "patience": self.patience})

    def on_fit_start(self, trainer, pl_module) -> None:
        """Train no more if the run had stopped early and was interrupted before its result."""
        if 0 < self.wait_count >= self.patience:
            trainer.should_stop = True

    def on_validation_end(self, trainer, pl_module) -> None:
        if self._above_zero(trainer):
            super().on_validation_end(trainer, pl_module)

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        if self._above_zero(trainer):
            super().on_train_epoch_end(trainer, pl_module)

    def _above_zero(self, trainer) -> bool:
        bleu = trainer.callback_metrics.get("val/bleu", self.STARTED)
        return self.monitor != "val/bleu" or max(bleu, self.best_score) >= self.STARTED


class SaveCheckpoints(Checkpoint):
    """Callback that saves best.ckpt at each new best BLEU, last.ckpt after validations and epochs.

    Args:
        folder: where both files are written; it is created.
        same_run: whether this folder holds the checkpoints of the run that is resumed. Its best
            score belongs to the run; in the folder of a new run, the first score is the best.
    """

    def __init__(self, folder: Path, *, same_run: bool = False) -> None:
        self.best_path, self.last_path = folder / "best.ckpt", folder / "last.ckpt"
        self.same_run = same_run
        self.best_score: float | None = None  # BLEU
        self._batches_at_save = -1

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        """Save before the extra validation of a run that stops, such as at trainer.max_time.

        When such a run is resumed, early stopping must not have counted that validation.
        """
        if trainer.should_stop and not validation_follows(trainer):
            self.save_last(trainer)

    def on_validation_end(self, trainer, pl_module) -> None:
        if trainer.sanity_checking or trainer.fast_dev_run:
            return
        score = float(trainer.callback_metrics["val/bleu"])
        if self.best_score is None or score > self.best_score:
            self.best_score = score
            trainer.save_checkpoint(self.best_path)
        self.save_last(trainer)

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        self.save_last(trainer)

    def save_last(self, trainer) -> None:
        """Save last.ckpt, unless it has been saved after the same batch."""
        batches = trainer.fit_loop.epoch_loop.batch_progress.total.processed
        if batches != self._batches_at_save and not trainer.fast_dev_run:
            self._batches_at_save = batches
            trainer.save_checkpoint(self.last_path)

    def on_fit_end(self, trainer, pl_module) -> None:
        """Log the settings with the best BLEU, to compare runs."""
        if self.best_score is not None and tensorboard_writer(trainer):
            best = {"val/best_bleu": self.best_score}
            trainer.logger.log_hyperparams(dict(pl_module.hparams), best)

    def state_dict(self) -> dict[str, Any]:
        return {"best_score": self.best_score}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the best score; best.ckpt may be newer than the checkpoint that is resumed."""
        if not self.same_run or state_dict["best_score"] is None:
            return
        try:
            best = torch.load(self.best_path, map_location="cpu", weights_only=True, mmap=True)
            stored = best["callbacks"][self.state_key]["best_score"]
            self.best_score = max(state_dict["best_score"], stored)
        except Exception:  # a damaged file makes torch and pickle raise nearly anything
            logger.warning(
                f"{self.best_path} is missing or damaged: the next validation writes a new one"
            )
