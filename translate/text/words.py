"""Pieces grouped into words, for people: what a heatmap's axis or a step's line shows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from translate.text.tokenizer import WORD_START, Tokenizer

_LONE_SPACE = "␣"
_BROKEN = "\ufffd"


class Word(NamedTuple):
    """`text` covers the pieces ids[start:end]."""

    text: str
    start: int
    end: int


def words(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Word]:
    """Group `ids` so that every piece lies in exactly one word, in order.

    A word starts at "▁". Punctuation that ends it is a word of its own ("Beispiel", "."), for a
    model decides on it separately; a hyphen or apostrophe inside a word is not ("E-Mail"). Each
    control piece stands alone under its own name, eos as "</s>". No text is empty or holds "▁".
    """
    control = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
    starts = [
        index
        for index, piece in enumerate(ids)
        if index == 0
        or piece in control
        or ids[index - 1] in control
        or tokenizer.piece(piece).startswith(WORD_START)
    ]
    found = []
    for start, end in pairwise([*starts, len(ids)]):
        if ids[start] in control:
            found.append(Word(tokenizer.piece(ids[start]), start, end))
            continue
        tail = end
        while tail > start and _is_punctuation(tokenizer, ids[tail - 1]):
            tail -= 1
        cuts = (start, tail, end) if start < tail < end else (start, end)
        for first, last in pairwise(cuts):
            found.append(Word(_label(tokenizer, ids[first:last]), first, last))
    return found


def _label(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    text = tokenizer.decode(ids).strip()
    if _BROKEN in text:  # bytes that make no character: named one by one
        text = "".join(tokenizer.piece(piece) for piece in ids).replace(WORD_START, "")
    return text or _LONE_SPACE


def _is_punctuation(tokenizer: Tokenizer, piece: int) -> bool:
    text = tokenizer.decode([piece])
    # A byte of a longer character is broken alone; it is not for cutting at.
    return _BROKEN not in text and not any(character.isalnum() for character in text)
