"""A prefix is text: which pieces may stand where the output must begin with given characters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from translate.text.normalize import normalize
from translate.text.tokenizer import WORD_START, Tokenizer


class PieceIndex:
    """Finds the pieces that agree with the next characters of a prefix.

    Sorted by text, the pieces that start with some characters lie side by side, and those that
    the characters start with can be looked up one by one.
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
        """Whether every character is a piece of its own, so that no choice is a dead end."""
        return all(character in self._by_text for character in text)

    def _matching(self, rest: str) -> Tensor:
        """Which pieces start with `rest` or are a start of it: bool (V,)."""
        allowed = torch.zeros(len(self.tokenizer), dtype=torch.bool)
        first = bisect_left(self._sorted, rest)
        for text in self._sorted[first:]:
            if not text.startswith(rest):
                break
            allowed[self._by_text[text]] = True
        for length in range(1, len(rest)):
            if (piece := self._by_text.get(rest[:length])) is not None:
                allowed[piece] = True
        if rest == WORD_START:  # a new word may follow the space, but nothing has to
            allowed[self.tokenizer.eos_id] = True
        return allowed


def _spells_itself(tokenizer: Tokenizer, piece: int) -> bool:
    """Not a control piece, unk, or a single byte such as "<0x41>"."""
    text = tokenizer.piece(piece)
    return tokenizer.decode([piece]) == text.replace(WORD_START, " ").removeprefix(" ")


@dataclass(frozen=True)
class Prefix:
    """What one output begins with: first whole `pieces`, then the characters of `rest`.

    Only the last word is left open, since "Bei" may become "Beispiel"; the words before it are
    complete and stand as the tokenizer encodes them, which is how the model has seen them.
    """

    pieces: Sequence[int] = ()
    rest: str = ""  # as in pieces: "▁" is the space before the word
    index: PieceIndex | None = field(default=None, repr=False)

    @classmethod
    def of(cls, text: str, index: PieceIndex) -> Prefix:
        """A trailing space closes the last word: what follows is a new one, or the end."""
        complete, _, last = normalize(text + "|").rpartition(" ")
        last = last[:-1]
        if not complete and not last:
            return cls()
        if not index.can_spell(WORD_START + last):
            return cls(index.tokenizer.encode(text))
        return cls(index.tokenizer.encode(complete), WORD_START + last, index)

    def allowed(self, rest: str) -> Tensor:
        """Pieces that agree with what is left of `self.rest`, not empty: bool (V,)."""
        return self.index.matching(rest)

    def after(self, rest: str, piece: int) -> str:
        """What is left of `rest` when `piece`, an allowed one, has been chosen."""
        return rest[len(self.index.tokenizer.piece(piece)) :]
