"""Checks on translations: copies of the source, repetition, and files that were mixed up."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sacrebleu.metrics import CHRF

from translate.evaluation.scores import count_equal
from translate.text.normalize import fold, normalize

_REPEATED_LETTERS = re.compile(r"([^\W\d_]+?)\1{3}")


def repeats_itself(text: str) -> bool:
    """Return whether `text` contains a loop, which models write if they do not stop.

    A loop is one or more words three times in a row ("auf dem Tisch auf dem Tisch auf dem Tisch"),
    whatever their case and punctuation, or one or more letters of a word four times in a row
    ("Fahrfahrfahrfahrt").
    """
    text = fold(text)
    words = re.findall(r"\w+", text)
    return (
        _REPEATED_LETTERS.search(text) is not None
        or any(
            words[start] == words[start + length]  # usually false, and cheap
            and words[start : start + 2 * length] == words[start + length : start + 3 * length]
            for length in range(1, len(words) // 3 + 1)
            for start in range(len(words) - 3 * length + 1)
        )
    )


def count_copies(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]) -> int:
    """Count the outputs that equal their source although the reference does not.

    If the reference is a copy too ("Berlin"), a copy is right.
    """
    return sum(
        normalize(output) == normalize(source) != normalize(reference)
        for source, output, reference in zip(sources, outputs, references, strict=True)
    )


def file_warnings(
    sources: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
    chrf: float | None = None,
) -> list[str]:
    """Warn if the files do not seem to be a source and its reference.

    This always checks whether most outputs are copies of their source. A given `chrf`, the score of
    the outputs, adds two checks: whether most references are copies of their source, and whether
    the outputs are more similar to the sources than to the references.
    """
    copies, equal = count_copies(sources, outputs, references), count_equal(sources, references)
    count, warnings = len(sources), []
    if 2 * copies > count - equal:
        message = "translations equal their source: are source and target the same file, or swapped"
        warnings.append(f"{copies} of {count - equal} {message}?")
    if chrf is None:
        return warnings
    if 2 * equal > count:
        message = "references equal their source: are both sides the same file?"
        warnings.append(f"{equal} of {count} {message}")
    if not warnings and (to_source := CHRF().corpus_score(outputs, [sources]).score) > chrf:
        warnings.append(
            f"the translations are more similar to their sources (chrF {to_source:.1f}) than to "
            f"their references (chrF {chrf:.1f}): are source and target swapped?"
        )
    return warnings
