"""Alarms: detect problems of a training from a few measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from translate.insight.measure import Inspection

# Thresholds. In brackets: the value in a training without problems, with configs/tiny.yaml.
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
MATURE = 0.3  # share of the training after which alarms about translations and source begin

SLOWER = "lower model.peak_learning_rate (and model.muon_learning_rate) or raise model.warmup_steps"
# What to do, by the name of the alarm.
ADVICE = {
    "loss spike": "The learning rate is too high, or some training pairs differ much from the "
    "rest: lower model.peak_learning_rate, and check the data (translate check)",
    "gradient spike": f"trainer.gradient_clip_val 1.0 limits it. If the loss rises, too, {SLOWER}",
    "stuck": "The learning rate is far too low or far too high, or a mask hides every token: try "
    "another model.peak_learning_rate, and trainer.overfit_batches 1",
    "large update": f"The learning rate is too high: {SLOWER}",
    "large attention scores": f"The softmax saturates and passes little gradient: {SLOWER}",
    "large residual stream": "Lower model.peak_learning_rate, or set model.norm to pre",
    "source ignored": "Source and target may not belong together (translate check). Otherwise "
    "train longer, or try another model.peak_learning_rate",
    "overfitting": "Raise model.dropout, add training pairs, or stop earlier",
    "translations repeat themselves": "Train longer, or raise the learning rate",
    "translations copy their source": "Look for untranslated pairs (translate check)",
    "translations do not end": "Train longer, on pairs of whole sentences",
}


@dataclass
class _History:
    """The history that a checkpoint stores for a resumed training."""

    losses: list[float] = field(default_factory=list)  # of the last logged updates
    gradient_norms: list[float] = field(default_factory=list)
    first_rms: dict[tuple[str, int], float] = field(default_factory=dict)
    best_loss: float = math.inf  # of all validations
    train_loss_at_best: float = math.inf
    overfitted: int = 0  # validations in a row
    raised: list[str] = field(default_factory=list)  # names of alarms


class Health:
    """Checks of the measurements of a training; each alarm is yielded once, as one line of text.

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
        """Continue from `state`; an empty state starts a new history."""
        self._history = _History(**state)

    def step(
        self, step: int, *, nll: float, gradient_norm: float, updates: Mapping[str, float]
    ) -> Iterator[str]:
        """Check a logged update.

        Args:
            step: updates so far.
            nll: training loss in nats per piece, without label smoothing.
            gradient_norm: before clipping.
            updates: `update_ratios` of this update.
        """
        losses = self._history.losses = [*self._history.losses, nll][-RECENT - 3 :]
        lowest, usual = min(losses[-3:]), median(losses[:-3] or losses)
        # Three in a row: one batch of unusual pairs raises no alarm.
        if len(losses) > RECENT and lowest > usual + LOSS_SPIKE:
            facts = f"{lowest:.2f} nats per piece or more, three times in a row,"
            facts += f" after a median of {usual:.2f}"
            yield from self._alarm("loss spike", facts)
        if math.isfinite(gradient_norm):  # in float16 it may overflow; the loss scaler handles that
            norms = self._history.gradient_norms
            self._history.gradient_norms = [*norms, gradient_norm][-RECENT:]
            if len(norms) == RECENT and gradient_norm > GRADIENT_SPIKE * median(norms):
                facts = f"norm {gradient_norm:.3g} after a median of {median(norms):.3g}"
                yield from self._alarm("gradient spike", facts)
        if step >= self._patience and nll > STUCK_LOSS * self._uniform_loss:
            facts = f"loss {nll:.2f} after {step} updates;"
            facts += f" uniform guessing has ln V = {self._uniform_loss:.2f}"
            yield from self._alarm("stuck", facts)
        for group, ratio in updates.items():
            if ratio > MAX_UPDATE_RATIO:
                facts = f"one update moves the {group} by {ratio:.0%} of the norm of its weights"
                yield from self._alarm("large update", facts)

    def inspection(self, step: int, found: Inspection) -> Iterator[str]:
        """Check an inspection of the model after `step` updates."""
        for (kind, layer), attention in found.attention.items():
            score, entropy = attention.max_score, attention.relative_entropy
            # Large scores that are nearly equal give uniform weights and do no harm.
            if score > MAX_SCORE and entropy < LOW_ENTROPY:
                facts = f"up to {score:.0f} in {kind} layer {layer + 1},"
                facts += f" where the attention entropy is {entropy:.0%} of its maximum"
                yield from self._alarm("large attention scores", facts)
        for (stack, layer), rms in found.residual_rms.items():
            first = self._history.first_rms.setdefault((stack, layer), rms)
            if rms > MAX_RESIDUAL_GROWTH * first:
                facts = f"RMS {rms:.2g} after {stack} layer {layer + 1}, initially {first:.2g}"
                yield from self._alarm("large residual stream", facts)
        nll, wrong = found.nll, found.nll_wrong_source
        if step >= self._mature and wrong is not None and wrong - nll < MIN_SOURCE_GAIN:
            facts = f"the loss is {nll:.2f} with the right source and {wrong:.2f} with a wrong one"
            yield from self._alarm("source ignored", facts)

    def validation(self, *, train_nll: float, val_nll: float) -> Iterator[str]:
        """Check a validation: its loss, and the mean training loss since the previous one."""
        history = self._history
        if val_nll < history.best_loss:
            history.best_loss, history.train_loss_at_best = val_nll, train_nll
        higher = val_nll > history.best_loss + OVERFITTING
        overfitted = higher and train_nll < history.train_loss_at_best
        history.overfitted = history.overfitted + 1 if overfitted else 0
        if history.overfitted >= OVERFITTING_VALIDATIONS:
            facts = f"the validation loss rose from {history.best_loss:.2f} to {val_nll:.2f},"
            facts += f" while the training loss fell to {train_nll:.2f}"
            yield from self._alarm("overfitting", facts)

    def translations(
        self, step: int, *, repeats_itself: float, copied_source: float, limit_reached: float
    ) -> Iterator[str]:
        """Check the translations of the validation sentences, given the share with each fault."""
        for name, share in (
            ("translations repeat themselves", repeats_itself),
            ("translations copy their source", copied_source),
            ("translations do not end", limit_reached),
        ):
            if step >= self._mature and share > MAX_SHARE:
                yield from self._alarm(name, f"{share:.0%} of them")

    def _alarm(self, name: str, facts: str) -> Iterator[str]:
        """Yield the text of the alarm if it is the first one of this name."""
        if name not in self._history.raised:
            self._history.raised.append(name)
            yield f"{name}: {facts}. {ADVICE[name]}"
