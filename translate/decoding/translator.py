"""Text in, text out: sentences, and prefixes of their translations, to whole translations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from translate.decoding.beam import BeamSearch
from translate.decoding.checkpoint import find_model, load_bundle
from translate.decoding.parallel import in_parallel
from translate.decoding.prefix import PieceIndex, Prefix
from translate.decoding.scoring import LENGTH_PENALTY
from translate.decoding.search import GreedySearch, Hypothesis, evaluating
from translate.decoding.translation import Translation, shortened
from translate.errors import UserError
from translate.insight.steps import Steps
from translate.model.transformer import Transformer
from translate.text.normalize import normalize
from translate.text.tokenizer import WORD_START, Tokenizer

# A batch is shared out among threads, but not in parts below this: ten rows cost little more
# than one.
SMALLEST_SHARE = 32


def _untold(sentences: int) -> None:
    """Nobody waits for news."""


class Translator:
    """A model and its tokenizer, at work.

        Translator.load("runs/tiny").translate(["This is an example"], ["Das ist ein"])

    Runs where the model is, and leaves the model's training mode as it was.
    """

    def __init__(self, model: Transformer, tokenizer: Tokenizer) -> None:
        self.model = model
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, path: str | Path | None = None) -> Translator:
        """The model at `path`, a run folder or a checkpoint; by default the newest under runs/.

        Raises:
            UserError: no model there, or one that cannot be used.
        """
        bundle = load_bundle(find_model(path))
        return cls(bundle.model, bundle.tokenizer)

    def translate(
        self, sentences: Sequence[str], prefixes: Sequence[str] | None = None, **options: Any
    ) -> list[str]:
        """The text of every translation, in order. Arguments and errors: `translate_detailed`.

        A source that is too long for the model is cut, with a Python warning.
        """
        translations = self.translate_detailed(sentences, prefixes, **options)
        for number, translation in enumerate(translations, 1):
            if translation.dropped:
                warnings.warn(f"sentence {number}: {translation.notes()[0]}", stacklevel=2)
        return [translation.text for translation in translations]

    def translate_detailed(
        self,
        sentences: Sequence[str],
        prefixes: Sequence[str] | None = None,
        *,
        batch_size: int = 64,
        max_new: int | None = None,
        beam: int = 1,
        length_penalty: float = LENGTH_PENALTY,
        progress: Callable[[int], object] = _untold,
    ) -> list[Translation]:
        """Translate, in batches of similar length; the batches change nothing in the texts.

        Args:
            sentences: sources; a blank one gives an empty translation.
            prefixes: how each translation begins, one a sentence; "" where nothing is given.
            batch_size: sentences at a time, on each thread.
            max_new: the most pieces to come after the prefix; by default twice the source's
                pieces and 16 more. The model's `max_length` holds in any case.
            beam: hypotheses of a sentence that are followed at a time; 1 is greedy search.
            length_penalty: how much the length of a hypothesis counts in its score, from 0 to
                10 (`BeamSearch`). Greedy search compares no scores.
            progress: told after each batch how many sentences it had, from any thread.

        Raises:
            UserError: a prefix that leaves the model no room.
        """

        def search(jobs: list[_Job]) -> list[list[Hypothesis]]:
            if beam == 1:
                return [[hypothesis] for hypothesis in self._greedy(jobs).run()]
            return BeamSearch(**self._options(jobs), beam=beam, length_penalty=length_penalty).run()

        found = self._translate(sentences, prefixes, batch_size, max_new, search, progress)
        return [translations[0] for translations in found]

    def n_best(
        self,
        sentences: Sequence[str],
        prefixes: Sequence[str] | None = None,
        *,
        beam: int,
        batch_size: int = 64,
        max_new: int | None = None,
        length_penalty: float = LENGTH_PENALTY,
        progress: Callable[[int], object] = _untold,
    ) -> list[list[Translation]]:
        """Up to `beam` translations of each sentence, no two of the same text, the best first.

        All have a score. The first is that of `translate_detailed`, where the arguments are too.
        """

        def search(jobs: list[_Job]) -> list[list[Hypothesis]]:
            return BeamSearch(
                **self._options(jobs), beam=beam, length_penalty=length_penalty, wanted=beam
            ).run()

        return self._translate(sentences, prefixes, batch_size, max_new, search, progress)

    def _translate(
        self,
        sentences: Sequence[str],
        prefixes: Sequence[str] | None,
        batch_size: int,
        max_new: int | None,
        search: Callable[[list[_Job]], Sequence[Sequence[Hypothesis]]],
        progress: Callable[[int], object],
    ) -> list[list[Translation]]:
        """Search in batches; of the hypotheses of a sentence, best first, those of unlike text."""
        if isinstance(sentences, str) or isinstance(prefixes, str):
            raise TypeError("translate takes lists of sentences and prefixes, not one string")
        prefixes = [""] * len(sentences) if prefixes is None else list(prefixes)
        if len(prefixes) != len(sentences):
            raise ValueError(f"{len(prefixes)} prefixes for {len(sentences)} sentences")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        jobs = [
            self._job(sentence, prefix, max_new)
            for sentence, prefix in zip(sentences, prefixes, strict=True)
        ]
        found = [[Translation("", [], score=0.0)] for _ in jobs]
        order = [index for index in range(len(jobs)) if jobs[index] is not None]
        order.sort(key=lambda index: len(jobs[index].source), reverse=True)
        on_cpu = self.model.embedding.weight.device.type == "cpu"
        workers = torch.get_num_threads() if on_cpu else 1
        size = min(batch_size, max(SMALLEST_SHARE, -(-len(order) // workers)))
        batches = [order[start : start + size] for start in range(0, len(order), size)]

        def translate_batch(batch: list[int]) -> Sequence[Sequence[Hypothesis]]:
            found = search([jobs[index] for index in batch])
            progress(len(batch))
            return found

        progress(len(jobs) - len(order))  # blank ones
        with evaluating(self.model):
            results = in_parallel(translate_batch, batches, workers)
        for batch, result in zip(batches, results, strict=True):
            for index, hypotheses in zip(batch, result, strict=True):
                by_text: dict[str, Translation] = {}
                for hypothesis in hypotheses:
                    translation = self._translation(jobs[index], hypothesis)
                    by_text.setdefault(translation.text, translation)
                found[index] = list(by_text.values())
        return found

    def steps(
        self, sentence: str, prefix: str = "", *, max_new: int | None = None, candidates: int = 3
    ) -> Steps:
        """Translate one sentence and watch each word come; the result is in `.translation`.

        A blank sentence has no steps.

            steps = translator.steps("This is an example")
            for step in steps:
                print(step.word, step.probability)
            print(steps.translation.text)

        Raises:
            UserError: a prefix that leaves the model no room.
        """
        job = self._job(sentence, prefix, max_new)
        if job is None:
            search, source = None, []
        else:
            search, source = self._greedy([job]), job.source

        def result() -> Translation:
            if search is None:
                return Translation("", [], score=0.0)
            return self._translation(job, search.hypotheses[0])

        return Steps(search, self.tokenizer, source=source, candidates=candidates, result=result)

    @cached_property
    def _index(self) -> PieceIndex:
        return PieceIndex(self.tokenizer)

    def _job(self, sentence: str, prefix: str, max_new: int | None) -> _Job | None:
        """Encode; None if there is nothing to translate."""
        for name, text in (("sentence", sentence), ("prefix", prefix)):
            if not isinstance(text, str):
                raise TypeError(f"a {name} is a string, not {text!r}")
        if not normalize(sentence):
            return None
        if max_new is not None and max_new < 1:
            raise ValueError(f"max_new must be at least 1, not {max_new}")
        room = self.model.config.max_length - 1  # eos in the source, bos in the output
        source = self.tokenizer.encode(sentence)
        dropped = self.tokenizer.decode(source[room:])
        source = [*source[:room], self.tokenizer.eos_id]
        given = len(self.tokenizer.encode(prefix))
        if given >= room:
            raise UserError(
                f"the prefix {shortened(prefix)!r} has {given} pieces, but this model writes "
                f"at most {room} in all: give a shorter prefix"
            )
        limit = 2 * len(source) + 16 if max_new is None else max_new
        opening = Prefix.of(prefix, self._index) if prefix else Prefix()
        unknown = self.tokenizer.unknown(f"{sentence} {prefix}")
        return _Job(source, prefix, opening, limit, dropped, unknown)

    def _greedy(self, jobs: Sequence[_Job]) -> GreedySearch:
        return GreedySearch(**self._options(jobs))

    def _options(self, jobs: Sequence[_Job]) -> dict[str, Any]:
        """What every search is to know of these sentences."""
        tokenizer = self.tokenizer
        longest = max(len(job.source) for job in jobs)
        rows = [job.source + [tokenizer.pad_id] * (longest - len(job.source)) for job in jobs]
        return {
            "model": self.model,
            "src": torch.tensor(rows, device=self.model.embedding.weight.device),
            "bos_id": tokenizer.bos_id,
            "eos_id": tokenizer.eos_id,
            "never": (tokenizer.pad_id, tokenizer.bos_id, tokenizer.unk_id),
            "limits": [job.limit for job in jobs],
            "prefixes": [job.opening for job in jobs],
        }

    def _translation(self, job: _Job, hypothesis: Hypothesis) -> Translation:
        text = self._text(job, hypothesis.ids)
        return Translation(
            text,
            hypothesis.ids,
            limit_reached=not hypothesis.finished,
            prefix_finished=hypothesis.finished and text == job.prefix,
            dropped=job.dropped,
            unknown=job.unknown,
            score=getattr(hypothesis, "score", None),
        )

    def _text(self, job: _Job, ids: Sequence[int]) -> str:
        """The prefix as it was typed, then what the pieces say beyond it."""
        given = self.tokenizer.decode(job.opening.pieces)
        last_word = job.opening.rest.replace(WORD_START, " " if given else "")
        text = self.tokenizer.decode(ids).rstrip("\ufffd")  # half a character, cut by the limit
        return job.prefix + text[len(given) + len(last_word) :]


@dataclass(frozen=True)
class _Job:
    """One sentence, encoded."""

    source: list[int]  # with eos
    prefix: str
    opening: Prefix
    limit: int
    dropped: str
    unknown: list[str]
