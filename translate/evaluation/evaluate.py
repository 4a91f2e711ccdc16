"""Translate sentence pairs and score the translations, in validation and in `translate test`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from translate.decoding.scoring import LENGTH_PENALTY
from translate.decoding.translation import Translation
from translate.decoding.translator import Translator
from translate.evaluation.checks import count_copies, file_warnings, repeats_itself
from translate.evaluation.scores import Scores, score
from translate.text.corpus import Pair


@dataclass(frozen=True)
class Evaluation:
    """The translations of a list of pairs, in the same order, and their scores.

    `counts` has three keys:
    * "limit_reached": translations that the length limit stopped,
    * "copied_source": translations that equal their source although the reference differs,
    * "repeats_itself": translations that repeat themselves although their source does not.
    """

    outputs: list[str]
    scores: Scores
    notes: list[str]  # what a reader of the scores should know, one sentence each
    counts: dict[str, int]


def evaluate(
    translator: Translator,
    pairs: Sequence[Pair],
    *,
    beam: int = 1,
    length_penalty: float = LENGTH_PENALTY,
    full: bool = False,
) -> Evaluation:
    """Translate the sources, then score the translations against the references.

    The translator never sees the references.

    Args:
        beam: hypotheses per sentence; 1 is greedy search.
        length_penalty: beam search divides log probabilities by pieces ** length_penalty.
        full: compute all scores of `score`, and warn if the files seem to be the wrong ones.
    """
    sources = [pair.source for pair in pairs]
    references = [pair.target for pair in pairs]
    translations = translator.translate_detailed(sources, beam=beam, length_penalty=length_penalty)
    outputs = [translation.text for translation in translations]
    scores = score(outputs, references, full=full)
    counts = {
        "limit_reached": sum(translation.limit_reached for translation in translations),
        "copied_source": count_copies(sources, outputs, references),
        "repeats_itself": sum(
            repeats_itself(output) and not repeats_itself(source)
            for source, output in zip(sources, outputs, strict=True)
        ),
    }
    notes = _notes(translations)
    notes += file_warnings(sources, outputs, references, scores.chrf if full else None)
    return Evaluation(outputs, scores, notes, counts)


def _notes(translations: Sequence[Translation]) -> list[str]:
    notes, count = [], len(translations)
    if cut := sum(bool(translation.dropped) for translation in translations):
        notes.append(f"{cut} of {count} sources are longer than max_length and were cut")
    if unknown := [translation.unknown for translation in translations if translation.unknown]:
        notes.append(
            f"{len(unknown)} of {count} sources have characters that the model has never seen, "
            f"such as {unknown[0][0]!r}"
        )
    if stopped := sum(translation.limit_reached for translation in translations):
        notes.append(f"{stopped} of {count} translations were stopped by the length limit")
    return notes
