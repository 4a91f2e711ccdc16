"""Watching a search word by word: how sure it was, what else it considered, where it looked.

S source pieces, V vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from translate.decoding.search import GreedySearch
from translate.insight.attention import cross_weights, join_pieces
from translate.model.transformer import AttentionRecord
from translate.text.tokenizer import WORD_START, Tokenizer
from translate.text.words import Word, words

if TYPE_CHECKING:
    from translate.decoding.translation import Translation


class WordStep(NamedTuple):
    """One word of a translation and how it came about. The end is a word too: "</s>"."""

    word: str
    probability: float  # product over the word's pieces
    candidates: list[tuple[str, float]]  # what else it could have been, likeliest first
    attended: list[tuple[str, float]]  # source words, most attention first; they sum to 1


@dataclass(frozen=True)
class _Choice:
    """One piece that the search chose."""

    piece: int
    probability: float
    others: list[tuple[int, float]]  # the next-best pieces, likeliest first
    attention: Tensor  # (S,), mean over layers and heads
    given: bool  # the prefix holds every character of it


class Steps:
    """The words of one translation, each as soon as it is finished: iterate once.

    A word is finished when the next one starts. Words that lie within the prefix are left out.
    Where the prefix narrows the choice, probabilities are those among what it allows. The last
    step is "</s>", unless the limit came first.
    """

    def __init__(
        self,
        search: GreedySearch | None,
        tokenizer: Tokenizer,
        *,
        source: Sequence[int],
        candidates: int,
        result: Callable[[], Translation],
    ) -> None:
        """`search` has one hypothesis, whose source has the pieces `source`; None: no words."""
        self._search = search
        self._tokenizer = tokenizer
        self._source_words = words(tokenizer, source)
        self._candidates = candidates
        self._result = result

    @property
    def translation(self) -> Translation:
        """What has come out: whole when the iteration has ended."""
        return self._result()

    def __iter__(self) -> Iterator[WordStep]:
        pending: list[_Choice] = []
        while self._search and self._search.running:
            choice = self._advance(self._search)
            if choice is None:
                break
            if pending and self._starts_word(choice.piece):
                yield from self._describe(pending)
                pending = []
            pending.append(choice)
        yield from self._describe(pending)

    def _advance(self, search: GreedySearch) -> _Choice | None:
        """One step of the search; None if that ended it at the limit."""
        (hypothesis,) = search.hypotheses
        length, rest = len(hypothesis.ids), hypothesis.rest
        record = AttentionRecord()
        logits = search.advance(record)  # (1, V)
        if len(hypothesis.ids) == length and not hypothesis.finished:
            return None
        piece = self._tokenizer.eos_id if hypothesis.finished else hypothesis.ids[-1]
        with torch.inference_mode():
            probabilities = logits[0].softmax(dim=-1)
            best = probabilities.topk(min(self._candidates + 1, len(probabilities)))
            attention = cross_weights(record)[0, -1].cpu()
        likely = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return _Choice(
            piece,
            probabilities[piece].item(),
            [(other, probability) for other, probability in likely if other != piece],
            attention,
            given=len(rest) >= len(self._tokenizer.piece(piece)),
        )

    def _describe(self, choices: Sequence[_Choice]) -> Iterator[WordStep]:
        for word in words(self._tokenizer, [choice.piece for choice in choices]):
            own = choices[word.start : word.end]
            if all(choice.given for choice in own):
                continue
            yield WordStep(
                word.text,
                prod(choice.probability for choice in own),
                self._alternatives(word.text, own),
                self._attended(own),
            )

    def _alternatives(self, word: str, choices: Sequence[_Choice]) -> list[tuple[str, float]]:
        """At each piece the word could have gone on otherwise, or stopped before it."""
        found: Counter[str] = Counter()
        for index, choice in enumerate(choices):
            before = [earlier.piece for earlier in choices[:index]]
            chance = prod(earlier.probability for earlier in choices[:index])
            for other, probability in choice.others:
                ended = index > 0 and self._starts_word(other)
                text = self._label(before if ended else [*before, other])
                found[text] += chance * probability
        del found[word]
        return found.most_common(self._candidates)

    def _attended(self, choices: Sequence[_Choice]) -> list[tuple[str, float]]:
        weights = torch.stack([choice.attention for choice in choices])  # (pieces, S)
        whole = [Word("", 0, len(choices))]
        shares = join_pieces(weights, whole, self._source_words)[0].tolist()
        named = [(word.text, share) for word, share in zip(self._source_words, shares, strict=True)]
        return sorted(named, key=lambda pair: -pair[1])

    def _starts_word(self, piece: int) -> bool:
        return piece == self._tokenizer.eos_id or self._tokenizer.piece(piece).startswith(
            WORD_START
        )

    def _label(self, pieces: Sequence[int]) -> str:
        """Pieces as a candidate; "-e" would have lengthened the word before."""
        text = "".join(word.text for word in words(self._tokenizer, pieces))
        return text if self._starts_word(pieces[0]) or not text.isalnum() else f"-{text}"
