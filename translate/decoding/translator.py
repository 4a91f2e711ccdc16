"""Translate text: sentences, each with an optional prefix, to whole translations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import torch

from translate.decoding.beam import BeamSearch
from translate.decoding.find_model import load_model
from translate.decoding.parallel import in_parallel
from translate.decoding.prefix import PieceIndex, Prefix
from translate.decoding.scoring import LENGTH_PENALTY
from translate.decoding.search import GreedySearch, Hypothesis, SearchInputs
from translate.decoding.translation import Translation, shortened
from translate.errors import UserError
from translate.model.transformer import Transformer
from translate.text.normalize import normalize
from translate.text.tokenizer import WORD_START, Tokenizer

# The sentences are divided among threads, but into batches of at least this size: a step of ten
# rows takes little more time than a step of one row.
SMALLEST_BATCH = 32

# Begins a search for one batch.
MakeSearch = Callable[[SearchInputs], GreedySearch | BeamSearch]


@contextmanager
def evaluating(model: Transformer) -> Iterator[None]:
    """Switch dropout off inside the context, and restore the model's mode afterwards."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


@dataclass(frozen=True)
class Job:
    """One sentence and its prefix, encoded."""

    source: list[int]  # pieces with eos
    given: str  # the prefix as it was typed
    prefix: Prefix
    limit: int  # maximum number of pieces after the prefix
    dropped: str  # the end of the sentence that is too long for the model
    unknown: list[str]  # characters that the vocabulary does not have


class Translator:
    """A model and its tokenizer.

        Translator.load("runs/tiny").translate(["This is an example"], ["Das ist ein"])

    Runs on the model's device, and leaves the model's training mode as it was.
    """

    def __init__(self, model: Transformer, tokenizer: Tokenizer) -> None:
        self.model = model
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, path: str | Path | None = None) -> Translator:
        """Load the model at `path`, a run folder or a checkpoint; by default the newest in runs/.

        Raises:
            UserError: there is no model at `path`, or it cannot be used.
        """
        trained = load_model(path)
        return cls(trained.model, trained.tokenizer)

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
        """Return the text of every translation, in order; see `translate_detailed`.

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
        progress: Callable[[int], object] | None = None,
    ) -> list[Translation]:
        """Translate in batches of similar length. The batches do not change the translations.

        Args:
            sentences: sources; a blank one gives an empty translation.
            prefixes: the beginning of each translation, one per sentence; "" for no prefix.
            batch_size: number of sentences that each thread translates at once.
            max_new: maximum number of pieces after the prefix; by default 16 plus twice the
                number of source pieces. The model's `max_length` holds in any case.
            beam: hypotheses per sentence; 1 is greedy search.
            length_penalty: how much the length of a hypothesis counts in its score, from 0 to 10
                (`normalised_score`). Greedy search does not use it.
            progress: called after each batch, from any thread, with its number of sentences.

        Raises:
            UserError: a prefix is so long that the model cannot add a piece.
        """
        search: MakeSearch = partial(GreedySearch, self.model)
        if beam != 1:
            search = partial(BeamSearch, self.model, beam=beam, length_penalty=length_penalty)
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
        progress: Callable[[int], object] | None = None,
    ) -> list[list[Translation]]:
        """Return up to `beam` translations of each sentence, all different, best score first.

        The first one equals the result of `translate_detailed`, which explains the arguments.
        """
        search = partial(
            BeamSearch, self.model, beam=beam, length_penalty=length_penalty, wanted=beam
        )
        return self._translate(sentences, prefixes, batch_size, max_new, search, progress)

    def _translate(
        self,
        sentences: Sequence[str],
        prefixes: Sequence[str] | None,
        batch_size: int,
        max_new: int | None,
        search: MakeSearch,
        progress: Callable[[int], object] | None,
    ) -> list[list[Translation]]:
        """Search in batches; return each sentence's translations with different texts."""
        if isinstance(sentences, str) or isinstance(prefixes, str):
            raise TypeError("translate takes lists of sentences and prefixes, not one string")
        prefixes = [""] * len(sentences) if prefixes is None else list(prefixes)
        if len(prefixes) != len(sentences):
            raise ValueError(f"{len(prefixes)} prefixes for {len(sentences)} sentences")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        jobs = [
            (index, job)
            for index, (sentence, prefix) in enumerate(zip(sentences, prefixes, strict=True))
            if (job := self.job(sentence, prefix, max_new)) is not None
        ]
        jobs.sort(key=lambda each: len(each[1].source), reverse=True)
        on_cpu = self.model.embedding.weight.device.type == "cpu"
        workers = torch.get_num_threads() if on_cpu else 1
        size = min(batch_size, max(SMALLEST_BATCH, -(-len(jobs) // workers)))
        batches = [jobs[start : start + size] for start in range(0, len(jobs), size)]
        found = [[Translation("", [], score=0.0)] for _ in sentences]

        def translate_batch(batch: list[tuple[int, Job]]) -> None:
            inputs = self.search_inputs([job for _, job in batch])
            results: Sequence[Sequence[Hypothesis]] = search(inputs).run()
            for (index, job), hypotheses in zip(batch, results, strict=True):
                by_text: dict[str, Translation] = {}
                for hypothesis in hypotheses:
                    translation = self.translation(job, hypothesis)
                    by_text.setdefault(translation.text, translation)
                found[index] = list(by_text.values())
            if progress:
                progress(len(batch))

        if progress:
            progress(len(sentences) - len(jobs))  # blank ones
        with evaluating(self.model):
            in_parallel(translate_batch, batches, workers)
        return found

    @cached_property
    def _index(self) -> PieceIndex:
        return PieceIndex(self.tokenizer)

    def job(self, sentence: str, prefix: str, max_new: int | None) -> Job | None:
        """Encode a sentence and its prefix; None if the sentence is blank.

        Raises:
            UserError: a prefix is so long that the model cannot add a piece.
        """
        for name, text in (("sentence", sentence), ("prefix", prefix)):
            if not isinstance(text, str):
                raise TypeError(f"a {name} must be a string, not {text!r}")
        if not normalize(sentence):
            return None
        if max_new is not None and max_new < 1:
            raise ValueError(f"max_new must be at least 1, not {max_new}")
        room = self.model.config.max_length - 1  # for eos in the source, for bos in the target
        source = self.tokenizer.encode(sentence)
        pieces = len(self.tokenizer.encode(prefix))
        if pieces >= room:
            raise UserError(
                f"the prefix {shortened(prefix)!r} has {pieces} pieces, but this model writes "
                f"at most {room} in all: give a shorter prefix"
            )
        kept = [*source[:room], self.tokenizer.eos_id]
        return Job(
            source=kept,
            given=prefix,
            prefix=Prefix.of(prefix, self._index) if prefix else Prefix(),
            limit=2 * len(kept) + 16 if max_new is None else max_new,
            dropped=self.tokenizer.decode(source[room:]),
            unknown=self.tokenizer.unknown(f"{sentence} {prefix}"),
        )

    def search_inputs(self, jobs: Sequence[Job]) -> SearchInputs:
        """Pad the sources of `jobs` to one batch."""
        tokenizer = self.tokenizer
        longest = max(len(job.source) for job in jobs)
        rows = [job.source + [tokenizer.pad_id] * (longest - len(job.source)) for job in jobs]
        return SearchInputs(
            src=torch.tensor(rows, device=self.model.embedding.weight.device),
            limits=[job.limit for job in jobs],
            prefixes=[job.prefix for job in jobs],
            bos_id=tokenizer.bos_id,
            eos_id=tokenizer.eos_id,
            never=(tokenizer.pad_id, tokenizer.bos_id, tokenizer.unk_id),
        )

    def translation(self, job: Job, hypothesis: Hypothesis) -> Translation:
        """Return the text of a hypothesis: the prefix as it was typed, then the chosen pieces."""
        given = self.tokenizer.decode(job.prefix.pieces)
        last_word = job.prefix.rest.replace(WORD_START, " " if given else "")
        # A character that the limit has cut in half decodes to U+FFFD.
        decoded = self.tokenizer.decode(hypothesis.ids).rstrip("\ufffd")
        text = job.given + decoded[len(given) + len(last_word) :]
        return Translation(
            text,
            hypothesis.ids,
            limit_reached=not hypothesis.finished,
            prefix_finished=hypothesis.finished and text == job.given,
            dropped=job.dropped,
            unknown=job.unknown,
            score=getattr(hypothesis, "score", None),
        )
