"""Search, ids in and ids out: the parts that all searches share, and greedy search.

B sources, S source length, R running hypotheses (in greedy search one per source), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from translate.decoding.incremental import CachedDecoder, PlainDecoder
from translate.decoding.prefix import Prefix
from translate.model.transformer import Transformer


@dataclass
class Hypothesis:
    """One translation in progress."""

    prefix: Prefix
    rest: str  # characters of the prefix that are still to come
    end: int  # maximum number of pieces, prefix included
    ids: list[int] = field(default_factory=list)  # with the pieces of the prefix; no bos, no eos
    finished: bool = False  # ended by eos; otherwise stopped at the limit

    @property
    def forced(self) -> bool:
        """Whether the prefix determines the next piece."""
        return len(self.ids) < len(self.prefix.pieces)


@dataclass(frozen=True)
class SearchInputs:
    """A batch of sources and how their translations may begin and end.

    Args:
        src: (B, S), sources with eos, padded at the end.
        limits: for each source, maximum number of pieces after its prefix. The model's `max_length`
            holds in any case: bos and n pieces take n + 1 positions.
        prefixes: the beginning of each output; `Prefix()` if none is given.
        bos_id: id of the piece that starts every target.
        eos_id: id of the piece that ends a target.
        never: ids of pieces that are never chosen (a prefix may still contain them).
    """

    src: Tensor
    limits: Sequence[int]
    prefixes: Sequence[Prefix]
    bos_id: int
    eos_id: int
    never: Sequence[int]


class Search:
    """The common base of all searches: one hypothesis per source, and its prefix.

    The model must be in evaluation mode.
    """

    def __init__(
        self, model: Transformer, inputs: SearchInputs, *,
        decoder: PlainDecoder | None = None, beam: int = 1,
    ) -> None:  # fmt: skip
        """Args:
        decoder: by default a `CachedDecoder`.
        beam: maximum number of hypotheses per source.
        """
        if model.training:
            raise ValueError("the model is in training mode: call eval() first")
        self._eos_id = inputs.eos_id
        self._never = torch.tensor(inputs.never, device=inputs.src.device)
        self._longest = model.config.max_length - 1
        self.hypotheses = [
            Hypothesis(prefix, prefix.rest, min(len(prefix.pieces) + limit, self._longest))
            for prefix, limit in zip(inputs.prefixes, inputs.limits, strict=True)
        ]
        self.running = list(self.hypotheses)
        # As many pieces as the shortest prefix has are read in one step.
        shared = min(len(hypothesis.prefix.pieces) for hypothesis in self.running)
        for hypothesis in self.running:
            hypothesis.ids.extend(hypothesis.prefix.pieces[:shared])
        self._new = [[inputs.bos_id, *hypothesis.ids] for hypothesis in self.running]
        most = max(hypothesis.end + len(hypothesis.rest) for hypothesis in self.running)
        positions = 1 + min(most, self._longest)
        self._decoder = decoder or CachedDecoder(model, inputs.src, max_length=positions, beam=beam)

    def _next_logits(self) -> Tensor:
        """Read the newest pieces; return the logits (R, V) of the next ones."""
        logits = self._decoder.step(self._new)
        return logits.index_fill_(1, self._never, -torch.inf)

    def _apply_prefixes(self, logits: Tensor) -> None:
        """Allow only pieces that agree with the characters of a prefix that are still to come."""
        for row, hypothesis in enumerate(self.running):
            if hypothesis.rest and not hypothesis.forced:
                allowed = hypothesis.prefix.allowed(hypothesis.rest).to(logits.device)
                logits[row].masked_fill_(~allowed, -torch.inf)

    def _append(self, hypothesis: Hypothesis, piece: int) -> None:
        """Add a piece that was chosen."""
        hypothesis.ids.append(piece)
        if hypothesis.rest:  # the limit counts only what comes after the prefix
            hypothesis.rest = hypothesis.prefix.after(hypothesis.rest, piece)
            hypothesis.end = min(hypothesis.end + 1, self._longest)


class GreedySearch(Search):
    """Choose the most probable piece at every step, for all sources of a batch at once.

    A hypothesis that ends leaves the batch: it takes no more time, and no piece follows its eos.
    """

    def run(self) -> list[list[Hypothesis]]:
        """Search to the end; return the one hypothesis of each source, each in its own list."""
        while self.running:
            self.advance()
        return [[hypothesis] for hypothesis in self.hypotheses]

    @torch.inference_mode()
    def advance(self) -> Tensor:
        """Add one piece to every running hypothesis; return the logits (R, V)."""
        logits = self._next_logits()
        self._apply_prefixes(logits)
        choices = _most_probable(logits)
        stay = [
            row
            for row, (hypothesis, piece) in enumerate(zip(self.running, choices, strict=True))
            if self._extend(hypothesis, piece)
        ]
        if len(stay) < len(self.running):
            rows = [stay[i] for i in order_with_fewest_moves(stay)]
            self.running = [self.running[row] for row in rows]
            if rows:
                self._decoder.keep(rows)
        self._new = [hypothesis.ids[-1:] for hypothesis in self.running]
        return logits

    def _extend(self, hypothesis: Hypothesis, piece: int) -> bool:
        """Add a piece; False if the hypothesis ends here."""
        if hypothesis.forced:
            hypothesis.ids.append(hypothesis.prefix.pieces[len(hypothesis.ids)])
            return True
        if piece == self._eos_id:
            hypothesis.finished = True
            return False
        if len(hypothesis.ids) == hypothesis.end:
            return False
        self._append(hypothesis, piece)
        return True


def _most_probable(logits: Tensor) -> list[int]:
    """Return the index of the highest logit in each row (R, V), the first of equal ones."""
    if logits.device.type == "cpu":  # NumPy's argmax is several times as fast there
        return logits.float().numpy().argmax(axis=1).tolist()
    return logits.argmax(dim=1).tolist()


def order_with_fewest_moves(rows: Sequence[int]) -> list[int]:
    """Return an order of `rows`, as indices into it, in which as many as possible do not move.

    Row 2 stays at index 2 if the new order has an index 2; the other rows fill the gaps.
    """
    order = [-1] * len(rows)
    others = []
    for index, row in enumerate(rows):
        if row < len(rows) and order[row] < 0:
            order[row] = index
        else:
            others.append(index)
    moving = iter(others)
    return [next(moving) if index < 0 else index for index in order]
