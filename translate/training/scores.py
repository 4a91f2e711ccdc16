"""How good translations are: BLEU and chrF by sacreBLEU, and the share that is exactly right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF

from translate.errors import UserError
from translate.text.normalize import normalize


@dataclass(frozen=True)
class Scores:
    """Scores of one set of sentences; `bleu` and `chrf` run from 0 to 100."""

    sentences: int
    bleu: float
    chrf: float
    exact: int  # sentences that equal their reference, white space and Unicode form aside
    bleu_signature: str
    chrf_signature: str

    @property
    def exact_share(self) -> float:
        return self.exact / self.sentences


def score(hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
    """Score outputs against one reference each, as they came (cased, with punctuation).

    BLEU: Papineni et al. 2002, with sacreBLEU's 13a tokenisation (Post 2018); chrF: Popović 2015.
    BLEU needs word sequences of length 4: on a set of two-word sentences it is 0 even when all
    is right, and `exact` is the number to read.
    Raises UserError where there is nothing to score or the counts differ; sacreBLEU itself
    would raise IndexError for the one and return 0.0 for the other.
    """
    if len(hypotheses) != len(references):
        raise UserError(
            f"{len(hypotheses)} translations against {len(references)} references: "
            "line n of one must belong to line n of the other"
        )
    if not references:
        raise UserError("no sentences to score")
    bleu, chrf = BLEU(), CHRF()
    streams = [list(references)]  # a list of reference *streams*, not of sentences
    return Scores(
        sentences=len(references),
        bleu=bleu.corpus_score(list(hypotheses), streams).score,
        chrf=chrf.corpus_score(list(hypotheses), streams).score,
        exact=sum(
            normalize(hypothesis) == normalize(reference)
            for hypothesis, reference in zip(hypotheses, references, strict=True)
        ),
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )
