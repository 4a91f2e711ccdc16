"""Translate pairs and score what comes out: validation and `translate test` do the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from translate.decoding.scoring import LENGTH_PENALTY
from translate.decoding.translation import Translation
from translate.decoding.translator import Translator
from translate.evaluation.scores import Scores, copied, copying, mix_ups, repeats_itself, score
from translate.text.corpus import Pair


@dataclass(frozen=True)
class Evaluation:
    """What came out, in the order of the pairs, and what is to be said about it.

    `counts`: of outputs that the length limit stopped, that equal their source where the
    reference does not, and that go round in circles where their source does not.
    """

    outputs: list[str]
    scores: Scores
    notes: list[str]  # what a reader of the scores should know, a line each
    counts: dict[str, int]


def evaluate(
    translator: Translator,
    pairs: Sequence[Pair],
    *,
    beam: int = 1,
    length_penalty: float = LENGTH_PENALTY,
    full: bool = False,
) -> Evaluation:
    """The model gets the source alone; references are used only to score what came out.

    `full` adds to the scores what `score` says, and a look at whether the files are mixed up.
    """
    sources = [pair.source for pair in pairs]
    translations = translator.translate_detailed(sources, beam=beam, length_penalty=length_penalty)
    outputs = [translation.text for translation in translations]
    references = [pair.target for pair in pairs]
    notes = _notes(translations)
    counts = {
        "limit_reached": sum(translation.limit_reached for translation in translations),
        "copied_source": copied(sources, outputs, references),
        "repeats_itself": sum(
            repeats_itself(output) and not repeats_itself(source)
            for source, output in zip(sources, outputs, strict=True)
        ),
    }
    if full:
        notes += mix_ups(sources, outputs, references)
    elif warning := copying(sources, outputs, references):
        notes.append(warning)
    return Evaluation(outputs, score(outputs, references, full=full), notes, counts)


def _notes(translations: Sequence[Translation]) -> list[str]:
    notes = []
    count = len(translations)
    if cut := sum(bool(translation.dropped) for translation in translations):
        notes.append(f"{cut} of {count} sources are longer than max_length and were cut")
    if strange := [translation.unknown for translation in translations if translation.unknown]:
        notes.append(
            f"{len(strange)} of {count} sources have characters that the model has never "
            f"seen, such as {strange[0][0]!r}"
        )
    if endless := sum(translation.limit_reached for translation in translations):
        notes.append(f"{endless} of {count} translations were stopped by the length limit")
    return notes
