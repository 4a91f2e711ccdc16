"""Beam search: several hypotheses of each source at once; the one with the best score wins.

R running hypotheses of all sources (rows), V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter

import torch

from translate.decoding.incremental import CachedDecoder
from translate.decoding.scoring import MAX_BEAM, MAX_LENGTH_PENALTY, normalised_score
from translate.decoding.search import Hypothesis, Search, SearchInputs, order_with_fewest_moves
from translate.model.transformer import Transformer


@dataclass
class ScoredHypothesis(Hypothesis):
    """A hypothesis with the log probability of the pieces that the search chose.

    The log probability includes eos, but no pieces that the prefix forces: these are the same in
    all hypotheses of a source. At the limit a hypothesis has to end with eos. If another piece was
    more probable than eos, the hypothesis is not `finished`, but it has a score like all others.
    """

    log_probability: float = 0.0
    score: float = 0.0  # set when the hypothesis ends
    row: int = 0  # in the decoder, while the hypothesis runs


@dataclass
class Beam:
    """The hypotheses of one source, at most N in all."""

    running: list[ScoredHypothesis]
    ended: list[ScoredHypothesis] = field(default_factory=list)  # best score first


class BeamSearch(Search):
    """Follow the N most probable hypotheses of each source, for all sources of a batch at once.

    At every step all continuations of a source's running hypotheses compete, eos among them, and
    the most probable ones stay. An ended hypothesis still counts among the N, so each one makes
    the beam of the others narrower by one. N = 1 is greedy search. Of the ended hypotheses, the
    one with the best `normalised_score` wins.

    A source is done as soon as no running hypothesis can still win. A running hypothesis has log
    probability s <= 0, which can only fall to some s' <= s. When the hypothesis ends, it has at
    most L pieces: its limit, one for each character of the prefix still to come, and eos. With the
    length penalty a, s' / n ** a <= s / n ** a <= s / L ** a for all n <= L: the score is at most
    s / L ** a. A hypothesis whose bound does not exceed the worst of the `wanted` best scores is
    dropped.
    """

    _decoder: CachedDecoder
    running: list[ScoredHypothesis]  # type: ignore[assignment]  # a list of the subclass

    def __init__(
        self,
        model: Transformer,
        inputs: SearchInputs,
        *,
        beam: int,
        length_penalty: float,
        wanted: int = 1,
    ) -> None:
        """Args:
        beam: N, from 1 to `MAX_BEAM`.
        length_penalty: from 0 to `MAX_LENGTH_PENALTY`.
        wanted: search until this many of the best hypotheses are certain, at most N.
        """
        if not 1 <= beam <= MAX_BEAM:
            raise ValueError(f"beam must lie in [1, {MAX_BEAM}], not {beam}")
        if not 0 <= length_penalty <= MAX_LENGTH_PENALTY:
            raise ValueError(
                f"length_penalty must lie in [0, {MAX_LENGTH_PENALTY}], not {length_penalty}"
            )
        if inputs.eos_id in inputs.never:
            raise ValueError(f"a beam search has to end, but never={inputs.never} contains eos")
        super().__init__(model, inputs, beam=beam)
        self._width, self._length_penalty, self._wanted = beam, length_penalty, wanted
        self.running = [
            ScoredHypothesis(**vars(hypothesis), row=row)
            for row, hypothesis in enumerate(self.hypotheses)
        ]
        self.beams = [Beam([hypothesis]) for hypothesis in self.running]
        self._active = list(self.beams)

    def run(self) -> list[list[ScoredHypothesis]]:
        """Search to the end; return the ended hypotheses of each source, best score first."""
        while self._active:
            self.advance()
        return [beam.ended for beam in self.beams]

    @torch.inference_mode()
    def advance(self) -> None:
        """Add one piece to every running hypothesis."""
        log_probs = self._next_logits()  # (R, V); changed in place, because it is large
        torch.log_softmax(log_probs, dim=-1, out=log_probs)
        ends = log_probs[:, self._eos_id].tolist()
        self._apply_prefixes(log_probs)
        best = log_probs.topk(min(self._width, log_probs.shape[1]))  # (R, N)
        values, pieces = best.values.tolist(), best.indices.tolist()
        for beam in self._active:
            first = beam.running[0]
            if first.forced:
                first.ids.append(first.prefix.pieces[len(first.ids)])
            else:
                self._choose(beam, values, pieces, ends)
        self._regroup()

    def _choose(
        self, beam: Beam, values: list[list[float]], pieces: list[list[int]], ends: list[float]
    ) -> None:
        """Choose among the continuations of one source's hypotheses.

        Args:
            beam: the hypotheses of this source.
            values: log probabilities of each row's most probable pieces, R lists of N.
            pieces: the ids of these pieces, R lists of N.
            ends: log probability of eos in each row, R.
        """
        candidates = []
        for hypothesis in beam.running:
            row = hypothesis.row
            if len(hypothesis.ids) == hypothesis.end:
                offered = [(ends[row], self._eos_id)]
            else:
                offered = list(zip(values[row], pieces[row], strict=True))
            candidates += [
                (hypothesis.log_probability + value, piece, hypothesis)
                for value, piece in offered
                if value != -torch.inf  # ruled out by the prefix
            ]
        candidates.sort(key=itemgetter(0), reverse=True)
        beam.running = []
        for log_probability, piece, parent in candidates[: self._width - len(beam.ended)]:
            child = replace(parent, ids=list(parent.ids), log_probability=log_probability)
            if piece == self._eos_id:
                child.score = self._score(child, len(child.ids))
                at_limit = len(child.ids) == child.end
                child.finished = not at_limit or pieces[parent.row][0] == piece
                beam.ended.append(child)
            else:
                self._append(child, piece)
                beam.running.append(child)
        beam.ended.sort(key=attrgetter("score"), reverse=True)
        if len(beam.ended) >= self._wanted:
            to_beat = beam.ended[self._wanted - 1].score
            beam.running = [each for each in beam.running if self._best_possible(each) > to_beat]

    def _score(self, hypothesis: ScoredHypothesis, length: int) -> float:
        """Return the score that `hypothesis` has if it ends with `length` ids and eos."""
        pieces = length + 1 - len(hypothesis.prefix.pieces)  # chosen by the search
        return normalised_score(hypothesis.log_probability, pieces, self._length_penalty)

    def _best_possible(self, hypothesis: ScoredHypothesis) -> float:
        """Return the highest score that a continuation can have, as the class docstring derives."""
        longest = min(hypothesis.end + len(hypothesis.rest), self._longest)
        return self._score(hypothesis, longest)

    def _regroup(self) -> None:
        """Give every running hypothesis a row; as many as possible keep their row."""
        staying = [source for source, beam in enumerate(self._active) if beam.running]
        sources = [staying[i] for i in order_with_fewest_moves(staying)]
        self._active = [self._active[source] for source in sources]
        running = [hypothesis for beam in self._active for hypothesis in beam.running]
        order = order_with_fewest_moves([hypothesis.row for hypothesis in running])
        self.running = [running[i] for i in order]
        self._new = [hypothesis.ids[-1:] for hypothesis in self.running]
        if not self.running:
            return
        rows = [hypothesis.row for hypothesis in self.running]
        for row, hypothesis in enumerate(self.running):
            hypothesis.row = row
        groups = [[hypothesis.row for hypothesis in beam.running] for beam in self._active]
        self._decoder.regroup(rows, sources, groups)
