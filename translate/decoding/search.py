"""Ids in, ids out, with a key-value cache: what every search needs, and greedy search.

B batch (sources still translated), R rows (hypotheses still running; in greedy search R = B),
S source length, N new target positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from translate.decoding.incremental import Seats
from translate.decoding.parallel import threads_of
from translate.decoding.prefix import Prefix
from translate.model.transformer import AttentionRecord, Transformer


@contextmanager
def evaluating(model: Transformer) -> Iterator[None]:
    """No dropout, no gradients and one thread inside; the model's own mode afterwards.

    Matrices of one new position are so small that threads mostly wait for each other: on a busy
    machine two of them are ten times slower than one.
    """
    was_training = model.training
    if was_training:
        model.eval()
    try:
        with torch.inference_mode(), threads_of(1):
            yield
    finally:
        if was_training:
            model.train()


class Decoder:
    """The decoder at work on a batch: pieces in, logits of the next piece out."""

    def __init__(
        self, model: Transformer, src: Tensor, *, room: int, never: Sequence[int], beam: int = 1
    ) -> None:
        """`src` (B, S) is read once; `room` is the number of target positions, bos counted.

        The pieces in `never` get no probability at all. Each source starts as one row and may
        have up to `beam`.
        """
        self.model = model
        self.device = src.device
        self._memory, src_mask = model.encode(src)
        self._src_mask = None if src_mask.all() else src_mask  # no mask is the cheapest
        self._cache = model.start_cache(self._memory, room, beam)
        self._never = torch.tensor(never, device=self.device)

    def step(
        self, pieces: Sequence[Sequence[int]], record: AttentionRecord | None = None
    ) -> Tensor:
        """Feed the N newest pieces of each hypothesis (R, N); returns logits (R, V)."""
        tgt_in = torch.tensor(pieces, device=self.device)
        # With a cache the memory is not read, so it need not follow `keep`.
        hidden = self.model.decode(tgt_in, self._memory, self._src_mask, self._cache, record)
        logits = self.model.logits(hidden[:, -1])  # (R, D) -> (R, V)
        return logits.index_fill_(1, self._never, -torch.inf)

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows of the batch only, in this order."""
        self._cache.keep(rows)
        self._keep_mask(rows)

    def regroup(
        self, rows: Sequence[int], sources: Sequence[int], groups: Sequence[Sequence[int]]
    ) -> None:
        """Go on with `rows`, one of them several times where a hypothesis has split, and with
        these `sources`; `groups` are the new rows of each of them."""
        most = max(map(len, groups))
        seated = [[*group, *group[:1] * (most - len(group))] for group in groups]
        places = [0] * len(rows)
        for source, group in enumerate(groups):
            for seat, row in enumerate(group):
                places[row] = source * most + seat
        seats = Seats(
            torch.tensor(seated, device=self.device), torch.tensor(places, device=self.device)
        )
        self._cache.regroup(rows, sources, seats)
        self._keep_mask(sources)

    def _keep_mask(self, sources: Sequence[int]) -> None:
        if self._src_mask is not None:
            self._src_mask = self._src_mask[list(sources)]


@dataclass
class Hypothesis:
    """One translation in the making."""

    prefix: Prefix
    rest: str  # characters of the prefix that are still to come
    end: int  # at most so many pieces
    ids: list[int] = field(default_factory=list)  # those of the prefix too; neither bos nor eos
    finished: bool = False  # ended by eos; otherwise it was stopped at the limit

    @property
    def forced(self) -> bool:
        """Whether the prefix says what the next piece is."""
        return len(self.ids) < len(self.prefix.pieces)


class Search:
    """What every search starts with: a hypothesis for each source, and its prefix."""

    def __init__(
        self,
        model: Transformer,
        src: Tensor,
        *,
        bos_id: int,
        eos_id: int,
        never: Sequence[int],
        limits: Sequence[int],
        prefixes: Sequence[Prefix],
        beam: int = 1,
    ) -> None:
        """Args:
        src: (B, S) sources with eos, padded at the end.
        never: pieces that are not chosen (a prefix may still hold them).
        limits: for each source the most pieces to come after its prefix. Within the model's
            `max_length` in any case: bos and n pieces fill n + 1 positions.
        prefixes: what each output begins with; `Prefix()` for nothing.
        beam: the most hypotheses of one source at a time.
        """
        self._eos_id = eos_id
        self._longest = model.config.max_length - 1
        self.hypotheses = [
            Hypothesis(prefix, prefix.rest, min(len(prefix.pieces) + limit, self._longest))
            for prefix, limit in zip(prefixes, limits, strict=True)
        ]
        self.running = list(self.hypotheses)
        # Whatever all prefixes have at least is read in one go.
        shared = min(len(hypothesis.prefix.pieces) for hypothesis in self.running)
        for hypothesis in self.running:
            hypothesis.ids.extend(hypothesis.prefix.pieces[:shared])
        self._new = [[bos_id, *hypothesis.ids] for hypothesis in self.running]
        most = max(hypothesis.end + len(hypothesis.rest) for hypothesis in self.running)
        with evaluating(model):
            room = 1 + min(most, self._longest)
            self._decoder = Decoder(model, src, room=room, never=never, beam=beam)

    def _hold_to_prefixes(self, logits: Tensor) -> None:
        """Where characters of a prefix are still to come, only pieces that agree with them."""
        rows = [
            row
            for row, hypothesis in enumerate(self.running)
            if hypothesis.rest and not hypothesis.forced
        ]
        if rows:
            open_ended = [self.running[row] for row in rows]
            allowed = torch.stack([each.prefix.allowed(each.rest) for each in open_ended])
            logits[rows] = logits[rows].masked_fill(~allowed.to(logits.device), -torch.inf)

    def _append(self, hypothesis: Hypothesis, piece: int) -> None:
        """Add a piece that was chosen."""
        hypothesis.ids.append(piece)
        if hypothesis.rest:  # the limit counts what comes after the prefix
            hypothesis.rest = hypothesis.prefix.after(hypothesis.rest, piece)
            hypothesis.end = min(hypothesis.end + 1, self._longest)


class GreedySearch(Search):
    """Takes the likeliest piece at every step, for all sources of a batch at once.

    A hypothesis that ends is dropped from the batch, so it costs nothing more and nothing can
    come after its eos.
    """

    def run(self) -> list[Hypothesis]:
        """Search to the end; the hypotheses in the order of the sources."""
        while self.running:
            self.advance()
        return self.hypotheses

    def advance(self, record: AttentionRecord | None = None) -> Tensor:
        """One piece more for every running hypothesis; returns the logits it chose by (B, V)."""
        with evaluating(self._decoder.model):
            logits = self._decoder.step(self._new, record)
            self._hold_to_prefixes(logits)
            choices = _likeliest(logits)
        stay = [
            row
            for row, (hypothesis, piece) in enumerate(zip(self.running, choices, strict=True))
            if self._extend(hypothesis, piece)
        ]
        if len(stay) < len(self.running):
            rows = [stay[i] for i in least_moved(stay)]
            self.running = [self.running[row] for row in rows]
            if rows:
                with evaluating(self._decoder.model):
                    self._decoder.keep(rows)
        self._new = [hypothesis.ids[-1:] for hypothesis in self.running]
        return logits

    def _extend(self, hypothesis: Hypothesis, piece: int) -> bool:
        """Add a piece; False when the hypothesis ends here."""
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


def _likeliest(logits: Tensor) -> list[int]:
    """The highest of each row (B, V), the first of equal ones."""
    if logits.device.type == "cpu":  # there NumPy is the faster one by far
        return logits.numpy().argmax(axis=1).tolist()
    return logits.argmax(dim=1).tolist()


def least_moved(rows: Sequence[int]) -> list[int]:
    """An order of `rows`, as indices into it, in which as many as can stand in their own place:
    row 2 in place 2. The others fill the gaps."""
    order = [-1] * len(rows)
    others = []
    for index, row in enumerate(rows):
        if row < len(rows) and order[row] < 0:
            order[row] = index
        else:
            others.append(index)
    moving = iter(others)
    return [next(moving) if index < 0 else index for index in order]
