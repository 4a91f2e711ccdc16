"""Beam search: several hypotheses of each source at once; the best-scored one wins.

B batch (sources still translated), R rows (hypotheses still running), V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any

import torch
from torch import Tensor

from translate.decoding.scoring import MAX_BEAM, MAX_LENGTH_PENALTY, normalised_score
from translate.decoding.search import Hypothesis, Search, evaluating, least_moved
from translate.model.transformer import Transformer


@dataclass
class ScoredHypothesis(Hypothesis):
    """A hypothesis with the log probability of the pieces that the search chose.

    Those that the prefix forces are the same in all hypotheses of a source and do not count; eos
    does. At the limit a hypothesis has to end: where the model would rather have gone on, it is
    not `finished`, but it has its eos and a score like all others.
    """

    log_probability: float = 0.0
    score: float = 0.0  # when it has ended
    row: int = 0  # in the decoder, while it runs

    def chosen(self, length: int) -> int:
        """How many pieces have been chosen when there are `length` ids and eos."""
        return length + 1 - len(self.prefix.pieces)


@dataclass
class Beam:
    """The hypotheses of one source; at most N in all."""

    running: list[ScoredHypothesis]
    ended: list[ScoredHypothesis] = field(default_factory=list)  # best score first


class BeamSearch(Search):
    """Follows the N likeliest hypotheses of each source, for all sources of a batch at once.

    At every step all continuations of a source's running hypotheses compete, eos among them; the
    likeliest stay. One that ends keeps its place, so the others go on in a beam that is narrower
    by one, and N = 1 is greedy search. Of those that ended the one with the best score wins:

        score = log probability / pieces ** length_penalty

    with eos among the pieces and natural logarithms (the first rule of Wu et al. 2016, section 7;
    their second adds 5 to the length). 0 compares sums, which favours short outputs; 1 compares
    what a piece costs on average.

    A source is done as soon as nothing better can follow. A running hypothesis has log
    probability s <= 0 and can only lose, s' <= s, and it has at most L pieces when it ends: its
    limit, a piece for each character of the prefix that is still to come, and eos. As
    s' / n ** a <= s / n ** a <= s / L ** a for all n <= L, it never scores more than
    s / L ** length_penalty. What cannot surpass the worst of the `wanted` best is dropped: all
    that might have followed from it is no better, and likelier hypotheses had their place before
    it anyway.
    """

    def __init__(
        self,
        model: Transformer,
        src: Tensor,
        *,
        beam: int,
        length_penalty: float,
        wanted: int = 1,
        **options: Any,
    ) -> None:
        """Args: those of `Search`, and

        beam: N, from 1 to `MAX_BEAM`.
        length_penalty: from 0 to `MAX_LENGTH_PENALTY`.
        wanted: so many of the best hypotheses have to be certain, at most N.
        """
        if not 1 <= beam <= MAX_BEAM:
            raise ValueError(f"beam must lie in [1, {MAX_BEAM}], not {beam}")
        if not 0 <= length_penalty <= MAX_LENGTH_PENALTY:
            raise ValueError(
                f"length_penalty must lie in [0, {MAX_LENGTH_PENALTY}], not {length_penalty}"
            )
        super().__init__(model, src, beam=beam, **options)
        if self._eos_id in options["never"]:
            raise ValueError(f"a beam search has to end, but never={options['never']} has eos")
        self._width, self._length_penalty, self._wanted = beam, length_penalty, wanted
        self.running = [
            ScoredHypothesis(**vars(hypothesis), row=row)
            for row, hypothesis in enumerate(self.hypotheses)
        ]
        self.beams = [Beam([hypothesis]) for hypothesis in self.running]
        self._active = list(self.beams)

    def run(self) -> list[list[ScoredHypothesis]]:
        """Search to the end; for each source what has ended, the best score first."""
        while self._active:
            self.advance()
        return [beam.ended for beam in self.beams]

    def advance(self) -> None:
        """One piece more for every running hypothesis."""
        with evaluating(self._decoder.model):
            log_probs = self._decoder.step(self._new)  # (R, V), so large that it exists only once
            torch.log_softmax(log_probs, dim=-1, out=log_probs)
            ends = log_probs[:, self._eos_id].tolist()
            self._hold_to_prefixes(log_probs)
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

        values, pieces: each row's likeliest, R times N.
        ends: the log probability of eos in each row, R.
        """
        candidates = []
        for hypothesis in beam.running:
            row = hypothesis.row
            if len(hypothesis.ids) == hypothesis.end:
                offered = [(ends[row], self._eos_id)]
            else:
                offered = zip(values[row], pieces[row], strict=True)
            candidates += [
                (hypothesis.log_probability + value, piece, hypothesis)
                for value, piece in offered
                if value != -torch.inf  # not what the prefix rules out
            ]
        candidates.sort(key=itemgetter(0), reverse=True)
        beam.running = []
        for log_probability, piece, parent in candidates[: self._width - len(beam.ended)]:
            child = ScoredHypothesis(
                parent.prefix, parent.rest, parent.end, list(parent.ids),
                log_probability=log_probability, row=parent.row,
            )  # fmt: skip
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
        return normalised_score(
            hypothesis.log_probability, hypothesis.chosen(length), self._length_penalty
        )

    def _best_possible(self, hypothesis: ScoredHypothesis) -> float:
        """No continuation can have a better score: see the class."""
        longest = min(hypothesis.end + len(hypothesis.rest), self._longest)
        return self._score(hypothesis, longest)

    def _regroup(self) -> None:
        """Give every running hypothesis a row, and as few as can a new one."""
        staying = [source for source, beam in enumerate(self._active) if beam.running]
        sources = [staying[i] for i in least_moved(staying)]
        self._active = [self._active[source] for source in sources]
        running = [hypothesis for beam in self._active for hypothesis in beam.running]
        self.running = [running[i] for i in least_moved([each.row for each in running])]
        self._new = [hypothesis.ids[-1:] for hypothesis in self.running]
        if not self.running:
            return
        rows = [hypothesis.row for hypothesis in self.running]
        for row, hypothesis in enumerate(self.running):
            hypothesis.row = row
        groups = [[hypothesis.row for hypothesis in beam.running] for beam in self._active]
        with evaluating(self._decoder.model):
            self._decoder.regroup(rows, sources, groups)
