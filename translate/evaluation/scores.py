"""BLEU, chrF and exact matches of translations."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Signature
from sacrebleu.significance import PairedTest

from translate.errors import UserError
from translate.text.normalize import normalize

# PairedTest logs that it starts, and warns on Windows that it uses one process, which is enough.
logging.getLogger("sacrebleu").addFilter(lambda record: record.module != "significance")

# With fewer sentences, resamples of them vary clearly less than other sentences of the same kind
# would: their interval is too narrow, in the extreme case (all perfect) without any width.
RELIABLE_SENTENCES = 30


@dataclass(frozen=True)
class Metric:
    """A score from 0 to 100, with the signature that says how it was computed."""

    value: float
    signature: str  # sacreBLEU's: compare two scores only if their signatures are equal
    interval: tuple[float, float] | None = None  # 95 % confidence interval, in [0, 100]


@dataclass(frozen=True)
class Scores:
    """The scores of one set of sentences."""

    sentences: int
    metrics: dict[str, Metric]  # "BLEU" and "chrF"; "BLEU lowercase" in a full evaluation
    length_ratio: float  # words of the translations / words of the references, as BLEU counts them
    exact: int  # translations that equal their reference after normalisation

    @property
    def bleu(self) -> float:
        return self.metrics["BLEU"].value

    @property
    def chrf(self) -> float:
        return self.metrics["chrF"].value

    @property
    def exact_share(self) -> float:
        return self.exact / self.sentences


def score(hypotheses: Sequence[str], references: Sequence[str], *, full: bool = False) -> Scores:
    """Score each translation against one reference, both as they are (cased, with punctuation).

    BLEU: Papineni et al. 2002, with sacreBLEU's 13a tokenisation (Post 2018). chrF: Popović 2015.
    BLEU counts n-grams of up to four words. If no reference has four words, BLEU uses only the
    orders that occur (the signature then says "eff:yes"). Otherwise even perfect translations
    would score 0, and training would keep the first checkpoint as the best one.

    Args:
        hypotheses: the translations. An empty translation is scored as having no words.
        references: line n belongs to translation n. A blank reference is scored as no words.
        full: add lowercase BLEU, and a 95 % confidence interval to each metric. This takes about
            twice as long.

    Raises:
        UserError: the numbers of lines differ (sacreBLEU would return 0.0), or there are none
            (sacreBLEU would raise IndexError).
    """
    if len(hypotheses) != len(references):
        raise UserError(
            f"{len(hypotheses)} translations against {len(references)} references: "
            "line n of one must belong to line n of the other"
        )
    if not references:
        raise UserError("no sentences to score")
    words = BLEU().tokenizer
    effective = all(len(words(reference).split()) < 4 for reference in references)
    scorers: dict[str, BLEU | CHRF] = {"BLEU": BLEU(effective_order=effective)}
    if full:
        scorers["BLEU lowercase"] = BLEU(lowercase=True, effective_order=effective)
    scorers["chrF"] = CHRF()
    # sacreBLEU expects a list of reference streams: here one stream, not one per sentence.
    results = {
        name: scorer.corpus_score(hypotheses, [references]) for name, scorer in scorers.items()
    }
    metrics = {}
    for name, scorer in scorers.items():
        value, signature, interval = results[name].score, scorer.get_signature(), None
        if full:
            signature, margin = _resample(scorer, hypotheses, references)
            # A perfect score can be 100.00000000000004: the interval holds it all the same.
            interval = (max(0.0, value - margin), max(value, min(100.0, value + margin)))
        metrics[name] = Metric(value, str(signature), interval)
    return Scores(
        sentences=len(references),
        metrics=metrics,
        length_ratio=results["BLEU"].ratio,
        exact=count_equal(hypotheses, references),
    )


def _resample(
    scorer: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]
) -> tuple[Signature, float]:
    """Return the signature and the margin of a 95 % bootstrap interval (Koehn 2004).

    The margin is half the distance between the 2.5 % and 97.5 % quantiles of the scores of 1,000
    resamples (fewer for more than 20,000 sentences). The interval is the score plus and minus the
    margin. sacreBLEU adds the margin to the mean of the resamples, but for a few short sentences
    that interval can miss the score.
    """
    # All resamples are drawn at once, with 72 bytes per sentence: this limits RAM to 1.5 GB.
    resamples = max(2, min(1000, 20_000_000 // len(references)))
    # PairedTest accepts a single system. corpus_score(..., n_bootstrap=1000) raises TypeError in
    # sacreBLEU 2.6 if a resample has no match.
    test = PairedTest(
        [("system", hypotheses)], {"": scorer}, [references], "bs", n_samples=resamples
    )
    signatures, results = test()
    ((name, signature),) = signatures.items()
    result: Any = results[name][0]
    return signature, float(result.ci)


def count_equal(some: Sequence[str], others: Sequence[str]) -> int:
    """Count the lines that are equal after normalisation (white space, Unicode form)."""
    return sum(normalize(one) == normalize(other) for one, other in zip(some, others, strict=True))
