"""The callback that measures the model during training and warns of problems."""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor
from torch.nn.utils import get_total_norm

from translate.insight.health import Health
from translate.insight.measure import inspect, parameters_by_module, update_ratios
from translate.training.batching import collate, spread
from translate.training.charts import CHARTS, inspection_scalars
from translate.training.logger import show_text, tensorboard_writer

logger = logging.getLogger(__name__)

_PROJECTED = 1000  # pieces in the projector: the first ones are the most frequent


class Monitor(Callback):
    """Callback that logs attention, residual stream, gradients and updates, and warns of problems.

    Gradients and updates are measured whenever a step is logged. Attention and the residual stream
    are measured at each validation, always on the same few validation pairs.

    Args:
        sentences: number of validation pairs to measure, evenly spaced; 0 switches the monitor off.
    """

    def __init__(self, sentences: int = 32) -> None:
        if sentences < 0 or sentences == 1:
            raise ValueError(f"monitor.sentences must be 0, or 2 or more, not {sentences}")
        self.sentences = sentences
        self._health: Health  # set when training starts
        self._resumed_state: dict[str, Any] = {}
        self._weights: dict[str, list[Tensor]] = {}  # before the update, by module
        self._gradient_norms: dict[str, float] = {}  # by module
        self._losses: list[float] = []  # training losses since the last validation

    def on_train_start(self, trainer, pl_module) -> None:
        # Not in on_fit_start: counting the updates there would draw batches before resuming.
        updates = trainer.estimated_stepping_batches
        self._health = Health(len(pl_module.tokenizer), pl_module.hparams.warmup_steps, updates)
        self._losses = self._resumed_state.pop("losses_since_validation", [])
        self._health.load_state_dict(self._resumed_state)
        if self.sentences and (writer := tensorboard_writer(trainer)):
            writer.add_custom_scalars(CHARTS)

    def state_dict(self) -> dict[str, Any]:
        """Return the history: a resumed run repeats no warnings and keeps its best values."""
        return {**self._health.state_dict(), "losses_since_validation": self._losses[:]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._resumed_state = dict(state_dict)

    def on_before_optimizer_step(self, trainer, pl_module, optimizer) -> None:
        """Measure gradients. They are still sums here: the module divides them afterwards."""
        self._weights = {}
        every = trainer.log_every_n_steps
        if not self.sentences or not every or (trainer.global_step + 1) % every:
            return
        for part, parameters in parameters_by_module(pl_module.model).items():
            gradients = [each.grad for each in parameters if each.grad is not None]
            norm = get_total_norm(gradients).item() / pl_module.tokens_in_update
            self._gradient_norms[part] = norm
            self._weights[part] = [each.detach().clone() for each in parameters]

    @torch.no_grad()
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        if not self._weights:
            return
        ratios = update_ratios(self._weights, parameters_by_module(pl_module.model))
        self._weights = {}
        for part, ratio in ratios.items():
            self.log(f"watch_gradient/norm/{part}", self._gradient_norms[part], batch_size=1)
            self.log(f"watch_update/ratio/{part}", ratio, batch_size=1)
        nll = float(trainer.callback_metrics["train/nll"])
        self._losses.append(nll)
        total = math.hypot(*self._gradient_norms.values())
        step = trainer.global_step
        self._warn(trainer, self._health.step(step, nll=nll, gradient_norm=total, updates=ratios))

    def on_validation_end(self, trainer, pl_module) -> None:
        if not self.sentences or trainer.state.fn != "fit" or trainer.sanity_checking:
            return
        examples = spread(trainer.datamodule.valid_examples, self.sentences)
        batch = collate(examples, pl_module.tokenizer)
        found = inspect(pl_module.model, *(tensor.to(pl_module.device) for tensor in batch))
        metrics, step = trainer.callback_metrics, trainer.global_step
        if trainer.logger is not None:
            trainer.logger.log_metrics(inspection_scalars(found), step=step)
        self._warn(trainer, self._health.inspection(step, found))
        if self._losses:
            train_nll, val_nll = fmean(self._losses), float(metrics["val/nll"])
            self._warn(trainer, self._health.validation(train_nll=train_nll, val_nll=val_nll))
            self._losses.clear()
        faults = ("repeats_itself", "copied_source", "limit_reached")
        shares = {name: float(metrics[f"val/{name}"]) for name in faults}
        self._warn(trainer, self._health.translations(step, **shares))

    def on_fit_end(self, trainer, pl_module) -> None:
        """Log the embeddings of the most frequent pieces for the projector."""
        writer = tensorboard_writer(trainer)
        if not self.sentences or writer is None:
            return
        folder = Path(writer.log_dir) / f"{trainer.global_step:05}"
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was interrupted at its end
        count = min(_PROJECTED, len(pl_module.tokenizer))
        vectors = pl_module.model.embedding.weight[:count].detach().cpu()
        names = [pl_module.tokenizer.piece(index) for index in range(count)]
        writer.add_embedding(vectors, names, tag="pieces", global_step=trainer.global_step)

    def _warn(self, trainer, lines: Iterable[str]) -> None:
        for line in lines:
            text = f"health: step {trainer.global_step}: {line}"
            logger.warning(text)
            show_text(trainer, "health", text)
