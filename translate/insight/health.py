"""What goes wrong in a training, recognised by its figures: one line each, said once."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from translate.insight.measure import Inspection

# In brackets what configs/tiny.yaml reaches, in which nothing goes wrong.
LARGEST_SCORE = 60.0  # divided by √K (28)
EVENNESS = 0.5  # of their weights: the entropy as a share of that of even ones (0.04)
LARGEST_UPDATE = 0.3  # of a part's weights in one update (0.015)
RESIDUAL_GROWTH = 30.0  # times its size at the first look (1.7)
SPIKE = 2.0  # nats above the median of the last losses (0.0)
GRADIENT_SPIKE = 30.0  # times the median of the last norms (7.3)
STUCK = 0.97  # of ln V
TURNED = 0.15  # nats a piece above the best validation
TURNED_FOR = 3  # validations in a row
SOURCE_WORTH = 0.05  # nats a piece that the right source is to save
SHARE = 0.3  # of the translations
MATURE = 0.3  # share of the training after which translations are to be sound
RECENT = 20  # logged steps that a spike stands out from
PATIENCE = 100  # updates beyond the warmup in which the loss is to leave ln V


class Health:
    """Takes the figures of a training as they come and yields each alarm the first time.

    Args:
        vocab_size: V.
        warmup_steps: updates until the highest rate.
        total_steps: updates of the whole training.
    """

    def __init__(self, vocab_size: int, warmup_steps: int, total_steps: float) -> None:
        self._uniform = math.log(vocab_size)  # the loss of a model that knows nothing
        self._patience = warmup_steps + PATIENCE
        endless = math.isinf(total_steps)
        self._mature = self._patience if endless else max(self._patience, MATURE * total_steps)
        self._losses: deque[float] = deque(maxlen=RECENT + 3)
        self._norms: deque[float] = deque(maxlen=RECENT)
        self._residuals: dict[tuple[str, int], float] = {}
        self._best = math.inf
        self._train_at_best = math.inf
        self._worse = 0
        self._said: set[str] = set()

    def state_dict(self) -> dict[str, Any]:
        """Plain lists and numbers for a checkpoint."""
        return {
            "losses": list(self._losses),
            "norms": list(self._norms),
            "residuals": dict(self._residuals),
            "validations": [self._best, self._train_at_best, self._worse],
            "said": sorted(self._said),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`; from an empty one, begin."""
        self._losses.extend(state.get("losses", ()))
        self._norms.extend(state.get("norms", ()))
        self._residuals.update(state.get("residuals", {}))
        self._best, self._train_at_best, self._worse = state.get(
            "validations", (self._best, self._train_at_best, self._worse)
        )
        self._said.update(state.get("said", ()))

    def step(
        self, step: int, *, nll: float, gradient_norm: float, updates: Mapping[str, float]
    ) -> Iterator[str]:
        """After a logged update: nats a piece, the gradient's norm before clipping, and how far
        each part moved as a share of its weights."""
        self._losses.append(nll)
        *before, a, b, c = self._losses if len(self._losses) > RECENT else (nll,) * 4
        now, usual = min(a, b, c), median(before)  # one batch of odd pairs is no spike
        if now > usual + SPIKE:
            yield from self._once(
                "loss",
                f"loss spike: {now:.2f} nats a piece or more after {usual:.2f}, three times in a "
                "row; too high a rate, or a part of the data that is unlike the rest: lower "
                "model.peak_learning_rate, look at the data (translate check)",
            )
        finite = math.isfinite(gradient_norm)  # in float16 the scaler tries another scale
        if (
            len(self._norms) == RECENT
            and finite
            and gradient_norm > GRADIENT_SPIKE * (usual := median(self._norms))
        ):
            yield from self._once(
                "gradient",
                f"gradient spike: norm {gradient_norm:.3g} after {usual:.3g}; "
                "trainer.gradient_clip_val 1.0 holds it; if the loss follows, lower "
                "model.peak_learning_rate or raise model.warmup_steps",
            )
        if step >= self._patience and nll > STUCK * self._uniform:
            yield from self._once(
                "stuck",
                f"stuck: loss {nll:.2f} after {step} updates, and knowing nothing is ln V = "
                f"{self._uniform:.2f}; the rate is far too low or far too high, or nothing gets "
                "through the masks: try another model.peak_learning_rate and "
                "trainer.overfit_batches 1",
            )
        part, ratio = max(updates.items(), key=lambda item: item[1], default=("", 0.0))
        if ratio > LARGEST_UPDATE:
            yield from self._once(
                "update",
                f"one update moves the {part} by {ratio:.0%} of its weights: the rate overwhelms "
                "what is there; lower model.peak_learning_rate (and model.muon_learning_rate), or "
                "raise model.warmup_steps",
            )
        if finite:
            self._norms.append(gradient_norm)

    def inside(self, step: int, seen: Inspection) -> Iterator[str]:
        """After a look inside the model."""
        (kind, layer), worst = max(seen.attention.items(), key=lambda item: item[1].largest_score)
        # Scores that all grow alike change no weight.
        if worst.largest_score > LARGEST_SCORE and worst.evenness < EVENNESS:
            yield from self._once(
                "scores",
                f"scores grow: up to {worst.largest_score:.0f} in {kind} attention, layer "
                f"{layer + 1}, entropy {worst.evenness:.0%} of that of even weights: the softmax "
                "turns all or nothing and passes little gradient; lower model.peak_learning_rate "
                "or raise model.warmup_steps",
            )
        for place, size in seen.residual.items():
            start = self._residuals.setdefault(place, size)
            if size > RESIDUAL_GROWTH * start:
                yield from self._once(
                    "residual",
                    f"the residual path of {place[0]} layer {place[1] + 1} has grown from "
                    f"{start:.2g} to {size:.2g}: updates are too large; lower "
                    "model.peak_learning_rate or use model.norm pre",
                )
        another = seen.nll_of_another_source
        if step >= self._mature and another is not None and another - seen.nll < SOURCE_WORTH:
            yield from self._once(
                "source",
                f"the decoder ignores its source: with that of another sentence the loss is "
                f"{another:.2f} and not {seen.nll:.2f}; source and target may not "
                "belong together (translate check), or cross-attention does not learn: more "
                "updates, another model.peak_learning_rate",
            )

    def validation(self, *, train_nll: float, val_nll: float) -> Iterator[str]:
        """After a validation: nats a piece in training since the last one, and now."""
        if val_nll < self._best:
            self._best, self._train_at_best, self._worse = val_nll, train_nll, 0
            return
        turned = val_nll > self._best + TURNED and train_nll < self._train_at_best
        self._worse = self._worse + 1 if turned else 0
        if self._worse >= TURNED_FOR:
            yield from self._once(
                "overfitting",
                f"validation loss turned: {val_nll:.2f} after a best of {self._best:.2f}, while "
                f"training fell to {train_nll:.2f}: learned by heart; raise model.dropout, "
                "bring more pairs, or stop earlier",
            )

    def translations(
        self, step: int, *, repeated: float, copied: float, endless: float
    ) -> Iterator[str]:
        """After the validation sentences were translated: shares of them."""
        if step < self._mature:
            return
        for name, share, what, remedy in (
            ("repeat", repeated, "go round in circles", "more updates or a higher rate"),
            ("copy", copied, "copy their source", "translate check: are pairs not translated?"),
            ("endless", endless, "never end", "more updates; are whole sentences in the data?"),
        ):
            if share > SHARE:
                yield from self._once(name, f"{share:.0%} of the translations {what}: {remedy}")

    def _once(self, name: str, line: str) -> Iterator[str]:
        if name not in self._said:
            self._said.add(name)
            yield line
