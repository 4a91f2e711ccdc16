"""Greedy search word by word: probabilities, alternatives, and the source words attended to.

S source pieces, V vocabulary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from translate.decoding.incremental import PlainDecoder
from translate.decoding.search import GreedySearch
from translate.decoding.translation import Translation
from translate.decoding.translator import Translator
from translate.insight.attention import cross_weights, join_pieces
from translate.text.tokenizer import WORD_START
from translate.text.words import Word, words


class WordStep(NamedTuple):
    """One word of a translation and how it was chosen. The end is a word too: "</s>"."""

    word: str
    probability: float  # product over the word's pieces
    candidates: list[tuple[str, float]]  # other words and their probabilities, best first
    attended: list[tuple[str, float]]  # source words and their weights, highest first; sum 1


@dataclass(frozen=True)
class _Choice:
    """One piece that the search chose."""

    piece: int
    probability: float
    others: list[tuple[int, float]]  # the next most probable pieces, best first
    attention: Tensor  # (S,), mean over layers and heads
    given: bool  # the prefix contains every character of it


class Steps:
    """The words of one translation, each as soon as it is finished; iterate once.

        steps = Steps(translator, "This is an example")
        for step in steps:
            print(step.word, step.probability)
        print(steps.translation.text)

    A word is finished when the next one starts. Words inside the prefix are left out. Where the
    prefix narrows the choice, probabilities are relative to what the prefix allows. The last step
    is "</s>", unless the limit came first. A blank sentence has no steps.

    Args:
        translator: the model and its tokenizer.
        sentence: the source.
        prefix: how the translation begins.
        max_new: most pieces to add after the prefix, as in `Translator.translate_detailed`.
        candidates: how many other words to show.

    Raises:
        UserError: a prefix that leaves the model no room.
    """

    def __init__(
        self,
        translator: Translator,
        sentence: str,
        prefix: str = "",
        *,
        max_new: int | None = None,
        candidates: int = 3,
    ) -> None:
        self._translator = translator
        self._tokenizer = translator.tokenizer
        self._candidates = candidates
        self._job = translator.job(sentence, prefix, max_new)
        self._source_words = words(self._tokenizer, self._job.source) if self._job else []
        self.translation = Translation("", [], score=0.0)  # complete when the iteration has ended

    def __iter__(self) -> Iterator[WordStep]:
        if self._job is None:
            return
        model = self._translator.model
        with self._translator.evaluating():
            inputs = self._translator.search_inputs([self._job])
            decoder = PlainDecoder(model, inputs.src)
            search = GreedySearch(model, inputs, decoder=decoder)
            pending: list[_Choice] = []
            while search.running:
                choice = self._advance(search, decoder)
                self.translation = self._translator.translation(self._job, search.hypotheses[0])
                if choice is None:
                    break
                if pending and self._starts_word(choice.piece):
                    yield from self._describe(pending)
                    pending = []
                pending.append(choice)
            yield from self._describe(pending)

    def _advance(self, search: GreedySearch, decoder: PlainDecoder) -> _Choice | None:
        """One step of the search; None if the step ended it at the limit."""
        (hypothesis,) = search.hypotheses
        length, rest = len(hypothesis.ids), hypothesis.rest
        logits = search.advance()  # (1, V)
        if len(hypothesis.ids) == length and not hypothesis.finished:
            return None
        piece = self._tokenizer.eos_id if hypothesis.finished else hypothesis.ids[-1]
        with torch.inference_mode():
            probabilities = logits[0].softmax(dim=-1)
            best = probabilities.topk(min(self._candidates + 1, len(probabilities)))
            attention = cross_weights(decoder.record)[0, -1].cpu()
        most_probable = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return _Choice(
            piece,
            probabilities[piece].item(),
            [(other, probability) for other, probability in most_probable if other != piece],
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
        """At each piece, the word could have continued with another piece, or ended before it."""
        found: defaultdict[str, float] = defaultdict(float)
        for index, choice in enumerate(choices):
            before = [earlier.piece for earlier in choices[:index]]
            so_far = prod(earlier.probability for earlier in choices[:index])
            for other, probability in choice.others:
                ended = index > 0 and self._starts_word(other)
                text = self._label(before if ended else [*before, other])
                found[text] += so_far * probability
        found.pop(word, None)
        return sorted(found.items(), key=lambda pair: -pair[1])[: self._candidates]

    def _attended(self, choices: Sequence[_Choice]) -> list[tuple[str, float]]:
        weights = torch.stack([choice.attention for choice in choices])  # (pieces, S)
        whole_word = [Word("", 0, len(choices))]
        shares = join_pieces(weights, whole_word, self._source_words)[0].tolist()
        named = [(word.text, share) for word, share in zip(self._source_words, shares, strict=True)]
        return sorted(named, key=lambda pair: -pair[1])

    def _starts_word(self, piece: int) -> bool:
        if piece == self._tokenizer.eos_id:
            return True
        return self._tokenizer.piece(piece).startswith(WORD_START)

    def _label(self, pieces: Sequence[int]) -> str:
        """The text of a candidate; "-e" would have continued the word before it."""
        text = "".join(word.text for word in words(self._tokenizer, pieces))
        return text if self._starts_word(pieces[0]) or not text.isalnum() else f"-{text}"
