"""Text in, text out: sentences, and prefixes of their translations, to whole translations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from translate.decoding.bundle import find_model, load_bundle
from translate.decoding.parallel import in_parallel
from translate.decoding.prefix import PieceIndex, Prefix
from translate.decoding.search import GreedySearch, Hypothesis, evaluating
from translate.decoding.steps import Steps
from translate.errors import UserError
from translate.model.transformer import Transformer
from translate.text.normalize import normalize
from translate.text.tokenizer import WORD_START, Tokenizer

# The default exponent of a score: log probability / pieces ** LENGTH_PENALTY.
LENGTH_PENALTY = 1.0

# A batch is shared out among threads, but not in parts below this: ten rows cost little more
# than one.
SMALLEST_SHARE = 32


@dataclass(frozen=True)
class Translation:
    """What came out for one sentence, and what a reader should know about it."""

    text: str  # begins with exactly the characters of the prefix
    ids: list[int]  # without bos and eos; those of the prefix too
    limit_reached: bool = False  # stopped at the limit: the sentence has no end
    prefix_finished: bool = False  # the model ended the sentence where the prefix ends
    dropped: str = ""  # the end of a source that is too long: the model did not read it
    unknown: Sequence[str] = ()  # characters of the source that the vocabulary does not have

    def notes(self) -> list[str]:
        """What a reader of `text` should know, in words."""
        notes = []
        if self.dropped:
            notes.append(
                f"the source is too long for this model, so its last {len(self.dropped)} "
                f"characters were not translated: {shortened(self.dropped)!r}"
            )
        if self.unknown:
            more = ", ..." if len(self.unknown) > 8 else ""
            notes.append(
                f"the model has never seen {', '.join(map(repr, self.unknown[:8]))}{more}: "
                f"{'it was' if len(self.unknown) == 1 else 'they were'} read as unknown"
            )
        if self.limit_reached:
            notes.append("the limit of new pieces was reached before the sentence ended")
        if self.prefix_finished:
            notes.append("the prefix is already a finished translation: nothing to add")
        return notes


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
        self,
        sentences: Sequence[str],
        prefixes: Sequence[str] | None = None,
        *,
        batch_size: int = 64,
        max_new: int | None = None,
        beam: int = 1,
        length_penalty: float = LENGTH_PENALTY,
    ) -> list[str]:
        """The text of every translation, in order. Arguments and errors: `translate_detailed`.

        A source that is too long for the model is cut, with a Python warning.
        """
        translations = self.translate_detailed(
            sentences,
            prefixes,
            batch_size=batch_size,
            max_new=max_new,
            beam=beam,
            length_penalty=length_penalty,
        )
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
    ) -> list[Translation]:
        """Translate, in batches of similar length; the batches change nothing in the texts.

        Args:
            sentences: sources; a blank one gives an empty translation.
            prefixes: how each translation begins, one a sentence; "" where nothing is given.
            batch_size: sentences at a time, on each thread.
            max_new: the most pieces to come after the prefix; by default twice the source's
                pieces and 16 more. The model's `max_length` holds in any case.
            beam: hypotheses a sentence that are followed at a time; 1 is greedy search.
            length_penalty: what hypotheses of unlike length are compared by, at least 0: log
                probability / pieces ** length_penalty. Greedy search has nothing to compare.

        Raises:
            UserError: a prefix that leaves the model no room.
        """
        if isinstance(sentences, str) or isinstance(prefixes, str):
            raise TypeError("translate takes lists of sentences and prefixes, not one string")
        prefixes = [""] * len(sentences) if prefixes is None else list(prefixes)
        if len(prefixes) != len(sentences):
            raise ValueError(f"{len(prefixes)} prefixes for {len(sentences)} sentences")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        if beam < 1:
            raise ValueError(f"beam must be at least 1, not {beam}")
        if length_penalty < 0:
            raise ValueError(f"length_penalty must be at least 0, not {length_penalty}")
        if beam > 1:
            raise NotImplementedError("beam search is on its way")
        jobs = [
            self._job(sentence, prefix, max_new)
            for sentence, prefix in zip(sentences, prefixes, strict=True)
        ]
        translations = [Translation("", []) for _ in jobs]
        order = [index for index in range(len(jobs)) if jobs[index] is not None]
        order.sort(key=lambda index: len(jobs[index].source), reverse=True)
        on_cpu = self.model.embedding.weight.device.type == "cpu"
        workers = torch.get_num_threads() if on_cpu else 1
        size = min(batch_size, max(SMALLEST_SHARE, -(-len(order) // workers)))
        batches = [order[start : start + size] for start in range(0, len(order), size)]

        def search(batch: list[int]) -> list[Hypothesis]:
            return self._search([jobs[index] for index in batch]).run()

        with evaluating(self.model):
            for batch, hypotheses in zip(
                batches, in_parallel(search, batches, workers), strict=True
            ):
                for index, hypothesis in zip(batch, hypotheses, strict=True):
                    translations[index] = self._translation(jobs[index], hypothesis)
        return translations

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
            search, source = self._search([job]), job.source

        def result() -> Translation:
            return self._translation(job, search.hypotheses[0]) if search else Translation("", [])

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
        return _Job(source, prefix, opening, limit, dropped, self.tokenizer.unknown(sentence))

    def _search(self, jobs: Sequence[_Job]) -> GreedySearch:
        tokenizer = self.tokenizer
        longest = max(len(job.source) for job in jobs)
        rows = [job.source + [tokenizer.pad_id] * (longest - len(job.source)) for job in jobs]
        return GreedySearch(
            self.model,
            torch.tensor(rows, device=self.model.embedding.weight.device),
            bos_id=tokenizer.bos_id,
            eos_id=tokenizer.eos_id,
            never=(tokenizer.pad_id, tokenizer.bos_id, tokenizer.unk_id),
            limits=[job.limit for job in jobs],
            prefixes=[job.opening for job in jobs],
        )

    def _translation(self, job: _Job, hypothesis: Hypothesis) -> Translation:
        text = self._text(job, hypothesis.ids)
        return Translation(
            text,
            hypothesis.ids,
            limit_reached=not hypothesis.finished,
            prefix_finished=hypothesis.finished and job.prefix != "" and text == job.prefix,
            dropped=job.dropped,
            unknown=job.unknown,
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


def shortened(text: str, width: int = 40) -> str:
    """The first `width` characters, with "..." if that is not all."""
    return text if len(text) <= width else text[: width - 3] + "..."
