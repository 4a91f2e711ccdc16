"""Confidence intervals of corpus scores by bootstrap resampling (Koehn 2004).

BLEU and chrF of a corpus follow from counts summed over its sentences. So each sentence is counted
once, and a resample only adds up the counts of the sentences that it drew.

N sentences, C counts per sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams

RESAMPLES = 1000
SEED = 12345  # as in sacreBLEU, which draws the same resamples


def confidence_interval(
    scorer: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]
) -> tuple[float, float]:
    """Return the 95 % interval: the 2.5 % and 97.5 % quantiles of the scores of all resamples.

    A resample draws N of the N sentences with replacement, the same ones in every call.
    """
    count, score = (_bleu_counts, _bleu) if isinstance(scorer, BLEU) else (_chrf_counts, _chrf)
    pairs = zip(hypotheses, references, strict=True)
    counts = numpy.array([count(scorer, *pair) for pair in pairs])  # (N, C)
    generator = numpy.random.default_rng(SEED)
    draws = (generator.integers(len(counts), size=len(counts)) for _ in range(RESAMPLES))
    scores = [score(scorer, counts[drawn].sum(axis=0)) for drawn in draws]
    low, high = numpy.quantile(scores, (0.025, 0.975)).tolist()
    return low, high


def _bleu_counts(scorer: BLEU, hypothesis: str, reference: str) -> list[int]:
    """Lengths of both sides, then matches of every order, then n-grams of every order: C = 10."""
    # Only the score depends on the effective order, and without it sacreBLEU logs a warning.
    counter = BLEU(lowercase=scorer.lowercase, effective_order=True)
    counted = counter.sentence_score(hypothesis, [reference])
    return [counted.sys_len, counted.ref_len, *counted.counts, *counted.totals]


def _bleu(scorer: BLEU, counts: numpy.ndarray) -> float:
    sys_len, ref_len, *by_order = counts.tolist()
    matches, totals = by_order[: scorer.max_ngram_order], by_order[scorer.max_ngram_order :]
    method, effective = scorer.smooth_method, scorer.effective_order
    return BLEU.compute_bleu(
        matches, totals, sys_len, ref_len, method, effective_order=effective
    ).score


def _chrf_counts(scorer: CHRF, hypothesis: str, reference: str) -> list[int]:
    """For every order the hypothesis's n-grams, the reference's, and the matches: C = 18."""
    sides = (extract_all_char_ngrams(side, scorer.char_order) for side in (hypothesis, reference))
    counts = []
    for ours, theirs in zip(*sides, strict=True):
        # An order that the reference is too short for does not count against the hypothesis.
        counts += [ours.total() if theirs else 0, theirs.total(), (ours & theirs).total()]
    return counts


def _chrf(scorer: CHRF, counts: numpy.ndarray) -> float:
    """The F-score of the mean precision and the mean recall over the orders that occur."""
    by_order = counts.reshape(scorer.char_order, 3)
    ours, theirs, matches = by_order[(by_order[:, :2] > 0).all(axis=1)].T
    if not matches.any():
        return 0.0
    precision, recall = (matches / ours).mean(), (matches / theirs).mean()
    beta = scorer.beta**2
    return 100 * (1 + beta) * precision * recall / (beta * precision + recall)
