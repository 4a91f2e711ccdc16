"""How good translations are: BLEU and chrF by sacreBLEU, and what can be counted."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF

from translate.errors import UserError
from translate.text.normalize import fold, normalize

RESAMPLES = 1000
# sacreBLEU draws all resamples at once, 72 bytes a sentence each: this keeps them below 1.5 GiB.
_DRAWN_SENTENCES = 20_000_000


@dataclass(frozen=True)
class Metric:
    """A score from 0 to 100, and the signature without which it cannot be compared."""

    value: float
    signature: str
    interval: tuple[float, float] | None = None  # of 95 %, by bootstrap


@dataclass(frozen=True)
class Scores:
    """Scores of one set of sentences."""

    sentences: int
    metrics: dict[str, Metric]  # "BLEU", "chrF"; "BLEU lowercase" if all are asked for
    length_ratio: float  # words that came out / words of the references, as BLEU counts them
    exact: int  # sentences that equal their reference, white space and Unicode form aside

    @property
    def bleu(self) -> float:
        return self.metrics["BLEU"].value

    @property
    def chrf(self) -> float:
        return self.metrics["chrF"].value

    @property
    def exact_share(self) -> float:
        return self.exact / self.sentences


class _Floats:
    """Python's numbers for NumPy's: sacreBLEU 2.6 cannot take the mean of resamples of both kinds,
    and a resample without a single match is a plain 0.0."""

    def _compute_score_from_stats(self, stats):
        return super()._compute_score_from_stats([float(value) for value in stats])


class _BLEU(_Floats, BLEU):
    pass


class _CHRF(_Floats, CHRF):
    pass


def score(hypotheses: Sequence[str], references: Sequence[str], *, full: bool = False) -> Scores:
    """Score outputs against one reference each, as they came (cased, with punctuation).

    BLEU: Papineni et al. 2002, with sacreBLEU's 13a tokenisation (Post 2018); chrF: Popović 2015.
    BLEU counts sequences of up to four words. Where no reference has four words, those are
    counted that exist (the signature then says "eff:yes"): otherwise BLEU would be 0 even when
    all is right, and the best checkpoint would be the first one.

    `full` adds BLEU without regard to upper and lower case, and to each metric its 95 % interval
    by sacreBLEU's bootstrap (Koehn 2004): 1,000 resamples, fewer for more than 20,000 sentences,
    always the same ones. It takes twice as long.

    An empty output and a blank reference are scored as what they are: no words.
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
    words = BLEU().tokenizer
    effective = all(len(words(reference).split()) < 4 for reference in references)
    scorers = {"BLEU": _BLEU(effective_order=effective)}
    if full:
        scorers["BLEU lowercase"] = _BLEU(lowercase=True, effective_order=effective)
    scorers["chrF"] = _CHRF()
    resamples = min(RESAMPLES, _DRAWN_SENTENCES // len(references)) if full else 0
    streams = [list(references)]  # a list of reference *streams*, not of sentences
    results = {
        name: scorer.corpus_score(list(hypotheses), streams, n_bootstrap=resamples)
        for name, scorer in scorers.items()
    }
    return Scores(
        sentences=len(references),
        metrics={
            name: _metric(results[name], str(scorer.get_signature()), resampled=resamples > 1)
            for name, scorer in scorers.items()
        },
        length_ratio=results["BLEU"].ratio,
        exact=same(hypotheses, references),
    )


def _metric(result, signature: str, *, resampled: bool) -> Metric:
    if not resampled:
        return Metric(result.score, signature)
    # sacreBLEU's interval lies around the mean of the resamples; it shows none if that is 0.
    shown = json.loads(result.format(width=4, is_json=True, signature=signature))
    mean, half = shown.get("confidence_mean", 0.0), shown.get("confidence_var", 0.0)
    return Metric(result.score, signature, (max(0.0, mean - half), min(100.0, mean + half)))


def same(some: Sequence[str], others: Sequence[str]) -> int:
    """How many sentences are equal, white space and Unicode form aside."""
    return sum(normalize(one) == normalize(other) for one, other in zip(some, others, strict=True))


_LETTERS_AGAIN = re.compile(r"([^\W\d_]+?)\1{3}")


def repeats_itself(text: str) -> bool:
    """Whether `text` goes round in circles, as a model does that finds no end.

    That is: one word or several, the same three times in a row ("auf dem Tisch auf dem Tisch auf
    dem Tisch"), upper and lower case and punctuation aside, or within a word one letter or
    several, the same four times in a row ("Fahrfahrfahrfahrt").
    """
    text = fold(text)
    words = re.findall(r"\w+", text)
    for length in range(1, len(words) // 3 + 1):
        run = 0  # words in a row that equal the one `length` before
        for word, later in zip(words, words[length:], strict=False):
            run = run + 1 if word == later else 0
            if run == 2 * length:
                return True
    return _LETTERS_AGAIN.search(text) is not None


def mix_ups(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]) -> list[str]:
    """Warnings that the files may not be what they are taken for; none if all looks right."""
    notes = []
    count = len(outputs)
    if 2 * (copies := same(sources, references)) > count:
        notes.append(
            f"warning: {copies} of {count} references equal their source: "
            "is the same text given twice?"
        )
    if warning := copying(sources, outputs, references):
        notes.append(warning)
    if not notes:
        to_source = CHRF().corpus_score(list(outputs), [list(sources)]).score
        to_reference = CHRF().corpus_score(list(outputs), [list(references)]).score
        if to_source > to_reference:
            notes.append(
                f"warning: the translations are more like their sources (chrF {to_source:.1f}) "
                f"than like their references ({to_reference:.1f}): are source and target swapped?"
            )
    return notes


def copied(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]) -> int:
    """How many outputs equal their source where the reference does not ("Okay." may be right)."""
    rows = zip(sources, outputs, references, strict=True)
    return sum(
        normalize(output) == normalize(source) != normalize(reference)
        for source, output, reference in rows
    )


def copying(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]) -> str:
    """A warning if most outputs that are not to equal their source do, else ""."""
    copies = copied(sources, outputs, references)
    others = len(sources) - same(sources, references)
    if 2 * copies <= others:
        return ""
    return (
        f"warning: {copies} of {others} translations equal their source: "
        "are source and target the same file, or swapped?"
    )
