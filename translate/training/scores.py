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
    BLEU counts sequences of up to four words. Where no reference has four words, those are
    counted that exist (the signature then says "eff:yes"): otherwise BLEU would be 0 even when
    all is right, and the best checkpoint would be the first one.
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
    if all(len(bleu.tokenizer(reference).split()) < 4 for reference in references):
        bleu = BLEU(effective_order=True)
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


def copying(sources: Sequence[str], outputs: Sequence[str]) -> str:
    """A warning if most outputs equal their source, else ""."""
    same = sum(
        normalize(source) == normalize(output)
        for source, output in zip(sources, outputs, strict=True)
    )
    if 2 * same <= len(outputs):
        return ""
    return (
        f"warning: {same} of {len(outputs)} translations equal their source: "
        "are source and target the same file, or swapped?"
    )
