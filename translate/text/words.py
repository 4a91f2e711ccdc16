"""Group pieces into words for display: on the axes of a heatmap, in the lines of --steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from translate.text.tokenizer import WORD_START, Tokenizer

_LONE_SPACE = "␣"
_BROKEN = "\ufffd"


class Word(NamedTuple):
    """The text of the pieces ids[start:end]."""

    text: str
    start: int
    end: int


def words(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Word]:
    """Group `ids` so that every piece is in exactly one word, in order.

    A word starts at "▁". Punctuation at its end is a word of its own ("Beispiel", "."), because
    the model predicts it separately; a hyphen or apostrophe inside a word is not ("E-Mail").
    A control piece is a word of its own, with its own name as text, such as "</s>". No text is
    empty or contains "▁".
    """
    control = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}

    def starts_word(index: int) -> bool:
        beside_control = not control.isdisjoint(ids[index - 1 : index + 1])
        return beside_control or tokenizer.piece(ids[index]).startswith(WORD_START)

    starts = [index for index in range(len(ids)) if index == 0 or starts_word(index)]
    found = []
    for start, end in pairwise([*starts, len(ids)]):
        tail = end
        while tail > start and _is_punctuation(tokenizer, ids[tail - 1]):
            tail -= 1
        cuts = (start, tail, end) if start < tail < end else (start, end)
        for first, last in pairwise(cuts):
            found.append(Word(_label(tokenizer, ids[first:last]), first, last))
    return found


def _label(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    text = tokenizer.decode(ids).strip()
    if not text or _BROKEN in text:  # a control piece, or bytes that form no character
        text = "".join(map(tokenizer.piece, ids)).replace(WORD_START, "")
    return text or _LONE_SPACE


def _is_punctuation(tokenizer: Tokenizer, piece: int) -> bool:
    text = tokenizer.decode([piece])
    # A single byte of a longer character is not punctuation.
    return _BROKEN not in text and not any(map(str.isalnum, text))
