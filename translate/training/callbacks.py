"""The progress bar, the speed of training, and early stopping."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any, Literal

from lightning.pytorch.callbacks import Callback, EarlyStopping, TQDMProgressBar

ValidationMetric = Literal[
    "val/bleu", "val/chrf", "val/exact_match", "val/loss", "val/nll", "val/perplexity"
]


class ProgressBar(TQDMProgressBar):
    """Shows loss, learning rate, target tokens per second and BLEU beside the bar."""

    def init_train_tqdm(self):
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
            return super().init_train_tqdm()

    def init_validation_tqdm(self):
        with contextlib.redirect_stdout(sys.stderr):
            return super().init_validation_tqdm()

    def on_train_start(self, trainer, pl_module) -> None:
        """Start the bar of a run that is resumed inside an epoch: Lightning starts none."""
        super().on_train_start(trainer, pl_module)
        if 0 < pl_module.batches_done < trainer.num_training_batches:
            self.on_train_epoch_start(trainer, pl_module)
            bar = self.train_progress_bar
            bar.n = bar.initial = pl_module.batches_done

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        self.train_progress_bar.initial = 0  # before the reset, which shows a rate
        super().on_train_epoch_start(trainer, pl_module)

    def on_exception(self, trainer, pl_module, exception) -> None:
        """Close the bars, so that messages come below them."""
        for name in ("val_progress_bar", "train_progress_bar"):
            with contextlib.suppress(TypeError):  # there is no such bar at the moment
                getattr(self, name).close()

    def get_metrics(self, trainer, pl_module) -> dict[str, Any]:
        formats = {
            "train/loss": "loss={:.3f}",
            "train/learning_rate": "rate={:.1e}",
            "train/tokens_per_second": "tokens/s={:,.0f}",
            "val/bleu": "BLEU={:.1f}",
        }
        values = trainer.progress_bar_metrics
        shown = [text.format(values[name]) for name, text in formats.items() if name in values]
        return dict(each.split("=") for each in shown)


class Speed(Callback):
    """Logs real target tokens per second, without the time that validation takes."""

    def on_train_start(self, trainer, pl_module) -> None:
        self._tokens = 0  # since the last value
        self._start = time.perf_counter()  # of the time that belongs to them
        self._logged_at = trainer.global_step

    def on_validation_start(self, trainer, pl_module) -> None:
        self._pause = time.perf_counter()

    def on_validation_end(self, trainer, pl_module) -> None:
        if not trainer.sanity_checking and trainer.state.fn == "fit":
            self._start += time.perf_counter() - self._pause

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        self._tokens += int((batch.tgt_out != pl_module.config.pad_id).sum())
        step = trainer.global_step
        if step == self._logged_at or step % max(1, trainer.log_every_n_steps):
            return
        now = time.perf_counter()
        speed = self._tokens / max(now - self._start, 1e-9)
        self.log("train/tokens_per_second", speed, prog_bar=True, batch_size=1)
        self._tokens, self._start, self._logged_at = 0, now, step


class EarlyStoppingAboveZero(EarlyStopping):
    """Counts validations only once BLEU has left zero, where it stays in the first epochs.

    Args:
        monitor: the metric of a validation that has to improve.
        mode: whether a higher ("max") or a lower ("min") value is better.
        patience: validations in a row without an improvement that end the training.
        check_on_train_epoch_end: check after every epoch instead of after every validation.
        **options: other arguments of Lightning's EarlyStopping.

    Raises:
        ValueError: with all contradictions among the settings.
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
        faults = []
        if patience < 0:
            faults.append(f"patience must be 0 or more, not {patience}")
        better = "min" if monitor in ("val/loss", "val/nll", "val/perplexity") else "max"
        if mode != better:
            faults.append(f"mode must be {better} for {monitor}, not {mode}")
        if faults:
            raise ValueError("; ".join(f"early_stopping.{fault}" for fault in faults))
        options["check_on_train_epoch_end"] = check_on_train_epoch_end
        super().__init__(monitor, mode=mode, patience=patience, **options)

    def on_validation_end(self, trainer, pl_module) -> None:
        bleu = trainer.callback_metrics.get("val/bleu", self.STARTED)
        if self.monitor != "val/bleu" or max(bleu, self.best_score) >= self.STARTED:
            super().on_validation_end(trainer, pl_module)
