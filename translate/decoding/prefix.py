"""Prefixes: which pieces are allowed where the output must begin with given characters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from translate.text.normalize import normalize
from translate.text.tokenizer import WORD_START, Tokenizer


class PieceIndex:
    """An index to find the pieces that agree with the next characters of a prefix.

    Pieces are sorted by text, so all pieces that start with given characters are neighbours.
    Shorter pieces, with which these characters start, are looked up one by one.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._by_text = {
            tokenizer.piece(piece): piece
            for piece in range(len(tokenizer))
            if _spells_itself(tokenizer, piece)
        }
        self._sorted = sorted(self._by_text)
        self.matching = lru_cache(maxsize=1024)(self._matching)

    def can_spell(self, text: str) -> bool:
        """Return whether every character is a piece, so that each choice can be completed."""
        return all(character in self._by_text for character in text)

    def _matching(self, rest: str) -> Tensor:
        """Return which pieces start with `rest`, or are the start of `rest`: bool (V,)."""
        allowed = torch.zeros(len(self.tokenizer), dtype=torch.bool)
        first = bisect_left(self._sorted, rest)
        for text in self._sorted[first:]:
            if not text.startswith(rest):
                break
            allowed[self._by_text[text]] = True
        for length in range(1, len(rest)):
            if (piece := self._by_text.get(rest[:length])) is not None:
                allowed[piece] = True
        if rest == WORD_START:  # after the space, the output may continue or end
            allowed[self.tokenizer.eos_id] = True
        return allowed


def _spells_itself(tokenizer: Tokenizer, piece: int) -> bool:
    """Return whether a piece decodes to its own text, unlike control pieces, unk and "<0x41>"."""
    text = tokenizer.piece(piece)
    return tokenizer.decode([piece]) == text.replace(WORD_START, " ").removeprefix(" ")


@dataclass(frozen=True)
class Prefix:
    """The given beginning of one output: whole `pieces`, then the characters of `rest`.

    Only the last word may continue: "Bei" may become "Beispiel". The words before it are complete
    and are encoded by the tokenizer, in the same way as in training.
    """

    pieces: Sequence[int] = ()
    rest: str = ""  # as in pieces: "▁" is the space before the word
    index: Any = field(default=None, repr=False)  # a `PieceIndex`; None if `rest` is empty

    @classmethod
    def of(cls, text: str, index: PieceIndex) -> Prefix:
        """Encode `text`. A trailing space ends the last word: a new word or the end follows."""
        complete, _, last = normalize(text + "|").rpartition(" ")
        last = last[:-1]
        if not complete and not last:
            return cls()
        if not index.can_spell(WORD_START + last):
            return cls(index.tokenizer.encode(text))
        return cls(index.tokenizer.encode(complete), WORD_START + last, index)

    def allowed(self, rest: str) -> Tensor:
        """Return which pieces agree with `rest`, the remaining part of `self.rest`: bool (V,)."""
        return self.index.matching(rest)

    def after(self, rest: str, piece: int) -> str:
        """Return the part of `rest` that remains after `piece`, which must be allowed."""
        return rest[len(self.index.tokenizer.piece(piece)) :]
