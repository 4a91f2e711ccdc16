"""Greedy search word by word: probabilities, alternatives, and the source words attended to.

L layers, H heads, S source pieces, V vocabulary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from translate.decoding.incremental import PlainDecoder
from translate.decoding.search import GreedySearch
from translate.decoding.translation import Translation
from translate.decoding.translator import Translator, evaluating
from translate.insight.attention import label
from translate.text.tokenizer import WORD_START
from translate.text.words import words


class WordStep(NamedTuple):
    """One word of a translation and how it was chosen. The end is a word too: "</s>"."""

    word: str
    probability: float  # product over the word's pieces
    candidates: list[tuple[str, float]]  # other words and their probabilities, best first
    attended: list[tuple[str, float]]  # source words and their weights, highest first; sum 1


class _Choice(NamedTuple):
    """One piece that the search chose."""

    piece: int
    probability: float
    others: dict[int, float]  # other probable pieces and their probabilities
    attention: Tensor  # (S,), mean over layers and heads
    given: bool  # the prefix contains the whole piece


class Steps:
    """The words of one translation, each as soon as it is finished; iterate once.

        steps = Steps(translator, "This is an example")
        for step in steps:
            print(step.word, step.probability)
        print(steps.translation.text)

    A word is finished when the next one starts. Words inside the prefix are left out. Where the
    prefix narrows the choice, probabilities are relative to what the prefix allows. The last step
    is "</s>", unless the length limit ended the search. A blank sentence has no steps.

    Args:
        translator: the model and its tokenizer.
        sentence: the source.
        prefix: text with which the translation begins.
        max_new: maximum number of pieces after the prefix, as in `Translator.translate_detailed`.
        candidates: number of other words to show.

    Raises:
        UserError: the prefix is too long for the model.
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
        pending: list[_Choice] = []
        for choice in self._choices():
            if pending and self._starts_word(choice.piece):
                yield from self._describe(pending)
                pending = []
            pending.append(choice)
        yield from self._describe(pending)

    def _choices(self) -> Iterator[_Choice]:
        """Search, and yield each piece when it has been chosen; the end is a piece, too."""
        if self._job is None:
            return
        with evaluating(self._translator.model):
            inputs = self._translator.search_inputs([self._job])
            decoder = PlainDecoder(self._translator.model, inputs.src)
            search = GreedySearch(self._translator.model, inputs, decoder=decoder)
            (hypothesis,) = search.hypotheses
            while search.running:
                length, rest = len(hypothesis.ids), hypothesis.rest
                probabilities = search.advance()[0].softmax(dim=-1)  # (V,)
                self.translation = self._translator.translation(self._job, hypothesis)
                if len(hypothesis.ids) == length and not hypothesis.finished:
                    return  # the limit ended the search
                piece = inputs.eos_id if hypothesis.finished else hypothesis.ids[-1]
                best = probabilities.topk(min(self._candidates + 1, len(probabilities)))
                others = dict(zip(best.indices.tolist(), best.values.tolist(), strict=True))
                others.pop(piece, None)
                heads = torch.cat([stages.weights[0, :, -1] for stages in decoder.record.cross])
                yield _Choice(
                    piece,
                    probabilities[piece].item(),
                    others,
                    heads.mean(dim=0).cpu(),  # (L · H, S) -> (S,)
                    given=len(rest) >= len(self._tokenizer.piece(piece)),
                )

    def _describe(self, choices: Sequence[_Choice]) -> Iterator[WordStep]:
        for word in words(self._tokenizer, [choice.piece for choice in choices]):
            own = choices[word.start : word.end]
            if not all(choice.given for choice in own):
                probability = prod(choice.probability for choice in own)
                alternatives = self._alternatives(word.text, own)
                yield WordStep(word.text, probability, alternatives, self._attended(own))

    def _alternatives(self, word: str, choices: Sequence[_Choice]) -> list[tuple[str, float]]:
        """Return other words: at each piece, the word could have continued differently or ended."""
        found: defaultdict[str, float] = defaultdict(float)
        before: list[int] = []
        so_far = 1.0
        for choice in choices:
            for other, probability in choice.others.items():
                ended = before and self._starts_word(other)
                text = label(self._tokenizer, before if ended else [*before, other])
                found[text] += so_far * probability
            before.append(choice.piece)
            so_far *= choice.probability
        found.pop(word, None)
        return sorted(found.items(), key=lambda pair: -pair[1])[: self._candidates]

    def _attended(self, choices: Sequence[_Choice]) -> list[tuple[str, float]]:
        weights = torch.stack([choice.attention for choice in choices]).mean(dim=0)  # (S,)
        shares = [
            (word.text, weights[word.start : word.end].sum().item()) for word in self._source_words
        ]
        return sorted(shares, key=lambda pair: -pair[1])

    def _starts_word(self, piece: int) -> bool:
        is_end = piece == self._tokenizer.eos_id
        return is_end or self._tokenizer.piece(piece).startswith(WORD_START)
