"""Alarms: what goes wrong in a training, recognised from a few measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from translate.insight.measure import Inspection

# Thresholds. In brackets: the value that configs/tiny.yaml reaches, where nothing goes wrong.
MAX_SCORE = 60.0  # largest score after division by √d_k (28)
LOW_ENTROPY = 0.5  # attention entropy as a share of its maximum (0.04)
MAX_UPDATE_RATIO = 0.3  # norm of one update / norm of the weights (0.015)
MAX_RESIDUAL_GROWTH = 30.0  # RMS of the residual stream / its RMS at the first inspection (1.7)
LOSS_SPIKE = 2.0  # nats per piece above the median of the recent losses (0.0)
GRADIENT_SPIKE = 30.0  # gradient norm / median of the recent norms (7.3)
STUCK_LOSS = 0.97  # loss / ln V
OVERFITTING = 0.15  # nats per piece above the best validation loss
OVERFITTING_VALIDATIONS = 3  # validations in a row above it
MIN_SOURCE_GAIN = 0.05  # nats per piece by which the right source must lower the loss
MAX_SHARE = 0.3  # share of the translations with the same fault

RECENT = 20  # logged updates that a spike is compared with
PATIENCE = 100  # updates after the warmup in which the loss must fall below ln V
MATURE = 0.3  # share of the training after which translations must be sound


@dataclass
class _History:
    """What a resumed training must remember."""

    losses: list[float] = field(default_factory=list)  # of the last logged updates
    gradient_norms: list[float] = field(default_factory=list)
    first_rms: dict[tuple[str, int], float] = field(default_factory=dict)
    best_loss: float = math.inf  # of all validations
    train_loss_at_best: float = math.inf
    overfitted: int = 0  # validations in a row
    raised: list[str] = field(default_factory=list)  # names of alarms


class Health:
    """Receives the measurements of a training and yields each alarm once, as one line of text.

    The text before the colon is the name of the alarm.

    Args:
        vocab_size: V.
        warmup_steps: updates until the learning rate reaches its peak.
        total_steps: updates of the whole training; infinity if it has no limit.
    """

    def __init__(self, vocab_size: int, warmup_steps: int, total_steps: float) -> None:
        self._uniform_loss = math.log(vocab_size)
        self._patience = warmup_steps + PATIENCE
        share = 0 if math.isinf(total_steps) else MATURE * total_steps
        self._mature = max(self._patience, share)
        self._history = _History()

    def state_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers for a checkpoint."""
        return asdict(self._history)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`; an empty one starts anew."""
        self._history = _History(**state)

    def step(
        self, step: int, *, nll: float, gradient_norm: float, updates: Mapping[str, float]
    ) -> Iterator[str]:
        """Check a logged update.

        Args:
            nll: training loss in nats per piece, without label smoothing.
            gradient_norm: before clipping.
            updates: `update_ratios` of this update.
        """
        losses = self._history.losses = [*self._history.losses, nll][-RECENT - 3 :]
        lowest, usual = min(losses[-3:]), median(losses[:-3] or losses)
        # Three in a row: one batch of unusual pairs is no alarm.
        if len(losses) > RECENT and lowest > usual + LOSS_SPIKE:
            yield from self._once(
                f"loss spike: {lowest:.2f} nats per piece or more, three times in a row, after a "
                f"median of {usual:.2f}. The learning rate is too high, or some training pairs "
                "differ much from the rest: lower model.peak_learning_rate, and check the data "
                "(translate check)"
            )
        if math.isfinite(gradient_norm):  # in float16 it may overflow; the loss scaler handles that
            norms = self._history.gradient_norms
            self._history.gradient_norms = [*norms, gradient_norm][-RECENT:]
            if len(norms) == RECENT and gradient_norm > GRADIENT_SPIKE * median(norms):
                yield from self._once(
                    f"gradient spike: norm {gradient_norm:.3g} after a median of "
                    f"{median(norms):.3g}. trainer.gradient_clip_val 1.0 limits such an update. If "
                    "the loss rises too, lower model.peak_learning_rate or raise model.warmup_steps"
                )
        if step >= self._patience and nll > STUCK_LOSS * self._uniform_loss:
            yield from self._once(
                f"stuck: loss {nll:.2f} after {step} updates; uniform guessing has "
                f"ln V = {self._uniform_loss:.2f}. The learning rate is far too low or far too "
                "high, or a mask hides everything: try another model.peak_learning_rate, and "
                "trainer.overfit_batches 1"
            )
        group, ratio = max(updates.items(), key=lambda item: item[1], default=("", 0.0))
        if ratio > MAX_UPDATE_RATIO:
            yield from self._once(
                f"large update: one update moves the {group} by {ratio:.0%} of the norm of its "
                "weights. The learning rate is too high: lower model.peak_learning_rate (and "
                "model.muon_learning_rate), or raise model.warmup_steps"
            )

    def inspection(self, step: int, found: Inspection) -> Iterator[str]:
        """Check an inspection of the model."""
        (kind, layer), worst = max(found.attention.items(), key=lambda item: item[1].max_score)
        # Large scores that are all alike leave the weights uniform and do no harm.
        if worst.max_score > MAX_SCORE and worst.relative_entropy < LOW_ENTROPY:
            yield from self._once(
                f"large attention scores: up to {worst.max_score:.0f} in {kind} layer {layer + 1}, "
                f"where the attention entropy is {worst.relative_entropy:.0%} of its maximum. The "
                "softmax saturates and passes little gradient: lower model.peak_learning_rate or "
                "raise model.warmup_steps"
            )
        for (stack, layer), rms in found.residual_rms.items():
            first = self._history.first_rms.setdefault((stack, layer), rms)
            if rms > MAX_RESIDUAL_GROWTH * first:
                yield from self._once(
                    f"large residual stream: its RMS after {stack} layer {layer + 1} was "
                    f"{first:.2g} and is now {rms:.2g}. The updates are too large: lower "
                    "model.peak_learning_rate or set model.norm to pre"
                )
        wrong = found.nll_wrong_source
        if step >= self._mature and wrong is not None and wrong - found.nll < MIN_SOURCE_GAIN:
            yield from self._once(
                f"source ignored: the loss is {found.nll:.2f} with the right source and "
                f"{wrong:.2f} with a wrong one. Source and target may not belong together "
                "(translate check), or cross-attention has learned nothing yet: train longer, or "
                "try another model.peak_learning_rate"
            )

    def validation(self, *, train_nll: float, val_nll: float) -> Iterator[str]:
        """Check a validation: its loss, and the mean training loss since the one before."""
        history = self._history
        if val_nll < history.best_loss:
            history.best_loss, history.train_loss_at_best = val_nll, train_nll
            history.overfitted = 0
            return
        higher = val_nll > history.best_loss + OVERFITTING
        overfitted = higher and train_nll < history.train_loss_at_best
        history.overfitted = history.overfitted + 1 if overfitted else 0
        if history.overfitted >= OVERFITTING_VALIDATIONS:
            yield from self._once(
                f"overfitting: the validation loss is {val_nll:.2f} after a best of "
                f"{history.best_loss:.2f}, while the training loss fell to {train_nll:.2f}. Raise "
                "model.dropout, add training pairs, or stop earlier"
            )

    def translations(
        self, step: int, *, repeats_itself: float, copied_source: float, limit_reached: float
    ) -> Iterator[str]:
        """Check the translations of the validation sentences, given the share with each fault."""
        if step < self._mature:
            return
        for fault, share, advice in (
            ("repeat themselves", repeats_itself, "train longer, or raise the learning rate"),
            ("copy their source", copied_source, "look for untranslated pairs (translate check)"),
            ("do not end", limit_reached, "train longer, on pairs of whole sentences"),
        ):
            if share > MAX_SHARE:
                yield from self._once(f"translations {fault}: {share:.0%} of them; {advice}")

    def _once(self, alarm: str) -> Iterator[str]:
        name = alarm.partition(":")[0]
        if name not in self._history.raised:
            self._history.raised.append(name)
            yield alarm
