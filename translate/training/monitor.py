"""Looking inside while training: the rest of the TensorBoard board, and alarms."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from statistics import fmean
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import TensorBoardLogger
from torch import Tensor
from torch.nn.utils import get_total_norm
from tqdm import tqdm

from translate.insight.health import Health
from translate.insight.measure import (
    KINDS,
    AttentionStatistics,
    Inspection,
    inspect,
    parameters_by_module,
    update_ratios,
)
from translate.model.transformer import Transformer
from translate.training.batching import collate

_SETTINGS = (
    *("optimizer", "peak_learning_rate", "muon_learning_rate", "warmup_steps", "weight_decay"),
    "label_smoothing",
)
_PROJECTED = 1000  # pieces for the projector: the first are the most frequent ones


class LookInside(Callback):
    """Logs how attention, residual path, gradients and updates do, and says what goes wrong.

    Gradients and updates are looked at whenever a step is logged, attention at each validation,
    on a few validation pairs that stay the same.

    Args:
        sentences: validation pairs to look at, spread evenly; 0 switches everything here off.
    """

    def __init__(self, sentences: int = 32) -> None:
        if sentences < 0 or sentences == 1:
            raise ValueError(f"sentences must be 0, or 2 or more to compare, not {sentences}")
        self.sentences = sentences
        self._health: Health | None = None  # from the start of a training on
        self._before_resume: dict[str, Any] = {}
        self._before: dict[str, list[Tensor]] = {}
        self._norms: dict[str, float] = {}  # of the gradient, by part
        self._losses: list[float] = []  # of training since the last validation

    def on_train_start(self, trainer, pl_module) -> None:
        # Not in on_fit_start: to count the updates there would draw batches before a resume.
        self._health = Health(
            len(pl_module.tokenizer), pl_module.warmup_steps, trainer.estimated_stepping_batches
        )
        self._health.load_state_dict(self._before_resume)
        if self.sentences and (writer := _writer(trainer)):
            writer.add_custom_scalars(_layout(pl_module.model))

    def state_dict(self) -> dict[str, Any]:
        """What has been said is not said again after a resume; what was best stays so."""
        return self._health.state_dict() if self._health else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._before_resume = state_dict

    def on_before_optimizer_step(self, trainer, pl_module, optimizer) -> None:
        """Gradients are still sums here; the module divides them and clips them afterwards."""
        self._before = {}
        every = trainer.log_every_n_steps
        if not self.sentences or not every or (trainer.global_step + 1) % every:
            return
        tokens = max(1, pl_module.tokens_in_update)
        self._norms = {}
        for part, parameters in parameters_by_module(pl_module.model).items():
            gradients = [each.grad for each in parameters if each.grad is not None]
            self._norms[part] = get_total_norm(gradients).item() / tokens
            self._before[part] = [each.detach().clone() for each in parameters]

    @torch.no_grad()
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        if not self._before:
            return
        ratios = update_ratios(self._before, parameters_by_module(pl_module.model))
        self._before = {}
        if trainer.logger is not None:
            norms = {f"within_gradient_norm/{part}": x for part, x in self._norms.items()}
            moved = {f"within_update_ratio/{part}": x for part, x in ratios.items()}
            trainer.logger.log_metrics({**norms, **moved}, step=trainer.global_step)
        nll = float(trainer.callback_metrics["train/nll"])
        self._losses.append(nll)
        whole = sum(each**2 for each in self._norms.values()) ** 0.5
        found = self._health.step(trainer.global_step, nll=nll, gradient_norm=whole, updates=ratios)
        self._say(trainer, found)

    def on_fit_end(self, trainer, pl_module) -> None:
        """Settings beside the best BLEU, so that runs compare; pieces for the projector."""
        writer = _writer(trainer)
        if not self.sentences or writer is None or trainer.fast_dev_run:
            return
        settings = {name: getattr(pl_module, name) for name in _SETTINGS} | pl_module.shape
        watching = [each for each in trainer.checkpoint_callbacks if each.monitor == "val/bleu"]
        best = watching[0].best_model_score if watching else None
        if best is not None:
            trainer.logger.log_hyperparams(settings, {"val/best_bleu": float(best)})
        count = min(_PROJECTED, len(pl_module.tokenizer))
        writer.add_embedding(
            pl_module.model.embedding.weight[:count].detach().cpu(),
            metadata=[pl_module.tokenizer.piece(index) for index in range(count)],
            tag="pieces",
            global_step=trainer.global_step,
        )

    def on_validation_end(self, trainer, pl_module) -> None:
        if not self.sentences or trainer.state.fn != "fit" or trainer.sanity_checking:
            return
        seen = self._inspect(trainer, pl_module)
        if trainer.logger is not None:
            trainer.logger.log_metrics(_named(seen), step=trainer.global_step)
        metrics, step = trainer.callback_metrics, trainer.global_step
        self._say(trainer, self._health.inspection(step, seen))
        if self._losses:
            self._say(
                trainer,
                self._health.validation(
                    train_nll=fmean(self._losses), val_nll=float(metrics["val/nll"])
                ),
            )
            self._losses.clear()
        self._say(
            trainer,
            self._health.translations(
                step,
                repeats_itself=float(metrics.get("val/repeats_itself", 0.0)),
                copied_source=float(metrics.get("val/copied_source", 0.0)),
                limit_reached=float(metrics.get("val/limit_reached", 0.0)),
            ),
        )

    def _inspect(self, trainer, pl_module) -> Inspection:
        examples = trainer.datamodule.valid_examples
        count = min(self.sentences, len(examples))
        chosen = [examples[i * len(examples) // count] for i in range(count)]
        ids = pl_module.tokenizer
        batch = collate(chosen, pad_id=ids.pad_id, bos_id=ids.bos_id, eos_id=ids.eos_id)
        device = pl_module.device
        return inspect(
            pl_module.model,
            batch.src.to(device),
            batch.tgt_in.to(device),
            batch.tgt_out.to(device),
        )

    def _say(self, trainer, lines: Iterable[str]) -> None:
        for line in lines:
            said = f"health: step {trainer.global_step}: {line}"
            tqdm.write(said, file=sys.stderr)  # above the progress bar
            if writer := _writer(trainer):
                writer.add_text("health", f"    {said}", trainer.global_step)


def _writer(trainer) -> Any:
    return trainer.logger.experiment if isinstance(trainer.logger, TensorBoardLogger) else None


def _named(seen: Inspection) -> dict[str, float]:
    """Tags: what is measured, then where. TensorBoard groups by what stands before the slash and
    sorts; "within" comes after "train" and "val", which a newcomer is to find first."""
    figures = {
        f"within_attention_{name}/{kind}_{layer + 1}": value
        for (kind, layer), figures in seen.attention.items()
        for name, value in figures._asdict().items()
    }
    residual = {
        f"within_residual/{part}_{layer + 1}": x for (part, layer), x in seen.residual_rms.items()
    }
    source = {"within_source/own": seen.nll}
    if seen.nll_wrong_source is not None:
        source["within_source/another"] = seen.nll_wrong_source
    return {**figures, **residual, **source}


def _layout(model: Transformer) -> dict[str, dict[str, list]]:
    """Charts of several curves, under "custom scalars": what is to be compared stands together."""

    def chart(*tags: str) -> list:
        return ["Multiline", [f"^{tag}$" for tag in tags]]

    layers = {"encoder": len(model.encoder), "decoder": len(model.decoder)}
    attention = {
        f"{name.replace('_', ' ')}, {kind}": chart(
            *(
                f"within_attention_{name}/{kind}_{layer + 1}"
                for layer in range(layers["encoder" if kind == "encoder" else "decoder"])
            )
        )
        for name in AttentionStatistics._fields
        for kind in KINDS
    }
    return {
        "training": {
            "loss of training and validation": chart("train/nll", "val/nll"),
            "the worth of the source": chart("within_source/own", "within_source/another"),
            "gradient norm by part": chart("within_gradient_norm/.*"),
            "update as a share of the weights": chart("within_update_ratio/.*"),
            "size of the residual path": chart("within_residual/.*"),
        },
        "attention": attention,
    }
