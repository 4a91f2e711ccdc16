"""The LightningDataModule: from the files named in the config to batches."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import zip_longest
from pathlib import Path

import lightning
import torch
from torch.utils.data import DataLoader

from translate.errors import UsageError, UserError
from translate.text.corpus import Corpus, Pair, ParallelFiles, named_sources, read_corpus
from translate.text.corpus_checks import check_corpora
from translate.text.filters import Filters
from translate.text.problems import WARNING, Problem, excerpt
from translate.text.split import split_corpus
from translate.text.tokenizer import Tokenizer
from translate.training.batching import (
    Example,
    TokenBatchSampler,
    collate,
    encode_pairs,
    keep_fitting,
)
from translate.training.config_errors import say

Sources = ParallelFiles | list[ParallelFiles]


class TranslationData(lightning.LightningDataModule):
    """Parallel text for training, validation and testing, and the tokenizer that belongs to it.

    `train`, `valid` and `test` each name files in one of the forms of `ParallelFiles`, or a list of
    such sources, which are read one after the other. `--data.train.tsv FILE` and its like set one
    on the command line; after a list, they set that of its last source.

    Args:
        train: sentence pairs to learn from.
        valid: pairs to choose the best checkpoint by; without them some are held out from
            `train`, never with a source sentence that stays in it.
        test: pairs for `translate test`; if neither they nor `valid` are given, as many again are
            held out for them. Files of `valid` and `test` are not filtered, for scores are of the
            references as they came: only pairs that are blank on a side are left out, and of
            `valid` those too long for the model, each with a line that says so.
        challenge: folder of .tsv files, each scored on its own by `translate test`.
        held_out: pairs to hold out for each of the two; at most a tenth of `train`.
        filters: which pairs of `train` are left out.
        tokenizer: a SentencePiece .model; without it one is trained on `train`.
        vocab_size: pieces of the trained tokenizer, both languages together; a small corpus
            supports fewer and gets fewer.
        batch_tokens: budget of a batch: rows x (longest source + longest target), padding counted;
            small, because a small corpus needs many updates more than it needs large ones.
        num_workers: processes that build batches; 0 is fastest at this size.
        max_length: pieces a sentence may have, bos or eos counted; the model's setting.

    Raises:
        ValueError: with all contradictions among the settings, before any file is read.
    """

    def __init__(
        self,
        train: Sources | None = None,
        valid: Sources | None = None,
        test: Sources | None = None,
        challenge: Path | None = None,
        held_out: int = 500,
        filters: Filters = Filters(),  # noqa: B008 (frozen)
        tokenizer: Path | None = None,
        vocab_size: int = 8000,
        batch_tokens: int = 1024,
        num_workers: int = 0,
        max_length: int = 256,
    ) -> None:
        super().__init__()
        self.files = {"train": train, "valid": valid, "test": test}
        self.challenge_folder = challenge
        self.held_out = held_out
        self.filters = filters
        self.tokenizer_path = tokenizer
        self.vocab_size = vocab_size
        self.batch_tokens = batch_tokens
        self.num_workers = num_workers
        self.max_length = max_length
        smallest = {"held_out": 1, "vocab_size": 5, "batch_tokens": 1, "num_workers": 0}
        faults = [
            f"{name} must be {least} or more, not {getattr(self, name)}"
            for name, least in smallest.items()
            if getattr(self, name) < least
        ]
        faults += filters.errors()
        for name, sources in self.files.items():
            try:
                if sources is not None:
                    for part, files in named_sources(sources, f"data.{name}"):
                        files.check(part)
            except UsageError as error:
                faults.append(str(error))
        if faults:
            raise ValueError("; ".join(faults))
        self.tokenizer: Tokenizer | None = None  # set from a checkpoint before it is resumed
        self.valid_pairs: list[Pair] = []
        self.train_sampler: TokenBatchSampler
        self._train: list[Example] = []
        self.valid_examples: list[Example] = []

    def setup(self, stage: str) -> None:
        """Read, split, train the tokenizer, encode, filter; say what was left out and why."""
        if self.valid_examples:
            return
        corpora = [self._read("train")]
        parts = self._split(corpora[0].pairs)
        if "valid" not in parts:
            corpora.append(self._read("valid"))
            parts["valid"] = corpora[-1].pairs
        if stage == "fit":
            _warn(check_corpora(dict(zip(("train", "valid"), corpora, strict=False))))
        if self.tokenizer is None:
            self.tokenizer = self._load_or_train_tokenizer(parts["train"])
        if stage == "fit":
            self._train = self._encode("train", parts["train"], corpora[0])
        self.valid_examples = self._encode("valid", parts["valid"], corpora[-1])
        self.valid_pairs = [parts["valid"][example.index] for example in self.valid_examples]
        if stage == "fit":
            say(
                f"{len(self._train):,} pairs to train on, {len(self.valid_examples):,} to validate "
                f"on, {len(self.tokenizer):,} pieces"
            )

    def batches_per_epoch(self) -> int:
        return len(self._sampler(self._train, shuffle=True))

    def read(self, name: str) -> list[Pair]:
        """The pairs of "train", "valid" or "test", from its files or held out from `train`.

        The same data, filters and seed give the same split in every command.

        Raises:
            UsageError: no such data in the config.
            UserError: data that cannot be read.
        """
        if name != "train" and self.files[name] is not None:
            return self._read(name).pairs
        parts = {}
        if name == "train" or (self.files["train"] is not None and self.files["valid"] is None):
            parts = self._split(self._read("train").pairs)
        if not parts.get(name):
            raise UsageError(f"no data to read: set data.{name} in the config")
        return parts[name]

    def challenge_files(self) -> list[Path]:
        """The challenge sets in order of name; hidden files are no sets."""
        if self.challenge_folder is None:
            return []
        files = sorted(
            path for path in self.challenge_folder.glob("*.tsv") if not path.name.startswith(".")
        )
        if not files:
            raise UserError(f"no .tsv files in {self.challenge_folder}; set data.challenge")
        return files

    def _read(self, name: str) -> Corpus:
        sources = self.files[name]
        if sources is None:
            raise UsageError(
                f"no data to read: set data.{name}.tsv, or data.{name}.source and "
                f"data.{name}.target, or give --config FILE "
                "(`translate template my.yaml` writes a commented config to start from)"
            )
        filters = self.filters if name == "train" else None
        corpus = read_corpus(sources, f"data.{name}", filters)
        _warn(corpus.problems)
        for entry in corpus.left_out:
            say(f"data.{name}: {entry}")
        return corpus

    def _split(self, pairs: list[Pair]) -> dict[str, list[Pair]]:
        """The pairs to train on, and those held out for what has no files of its own."""
        if self.files["valid"] is not None:
            return {"train": pairs}
        missing = [name for name, files in self.files.items() if files is None]
        seed = torch.initial_seed()
        parts = split_corpus(pairs, missing, self.held_out, seed=seed)
        for name in missing:
            if name in parts:
                count = len(parts[name])
                say(
                    f"data.{name} is not set: held out {count:,} pair{'s' * (count != 1)} of "
                    f"data.train (seed {seed})"
                )
        return parts

    def _load_or_train_tokenizer(self, train: list[Pair]) -> Tokenizer:
        if self.tokenizer_path is not None:
            return Tokenizer.load(self.tokenizer_path)
        tokenizer, notes = Tokenizer.train(
            (side for pair in train for side in pair),
            vocab_size=self.vocab_size,
            seed=torch.initial_seed(),
        )
        for note in notes:
            say(note)
        return tokenizer

    def _encode(self, name: str, pairs: list[Pair], corpus: Corpus) -> list[Example]:
        """Examples that fit the model. `corpus` is where the pairs come from."""
        examples = encode_pairs(self.tokenizer, pairs)
        kept, note = keep_fitting(examples, self.max_length)
        if note:
            rows = zip_longest(examples, kept)
            first = pairs[next(example.index for example, other in rows if example is not other)]
            place = next(i for i, pair in enumerate(corpus.pairs) if pair is first)
            say(f"data.{name}: {note}: {corpus.place(place)}: {excerpt(*first)}")
        return kept

    def train_dataloader(self) -> DataLoader:
        """Batches by token budget; a run that stopped inside an epoch goes on where it was."""
        # To overfit a few batches they must be the same ones in every epoch.
        self.train_sampler = self._sampler(self._train, shuffle=not self.trainer.overfit_batches)
        self.train_sampler.set_epoch(self.trainer.current_epoch)
        done = self.trainer.fit_loop.epoch_loop.batch_progress.current.ready
        self.train_sampler.skip_batches(min(done, len(self.train_sampler)))
        return self._loader(self._train, self.train_sampler)

    def val_dataloader(self) -> DataLoader:
        return self._loader(self.valid_examples, self._sampler(self.valid_examples, shuffle=False))

    def _sampler(self, examples: list[Example], *, shuffle: bool) -> TokenBatchSampler:
        return TokenBatchSampler(
            [example.lengths for example in examples],
            max_tokens=self.batch_tokens,
            seed=torch.initial_seed(),
            shuffle=shuffle,
        )

    def _loader(self, examples: list[Example], sampler: TokenBatchSampler) -> DataLoader:
        ids = self.tokenizer
        return DataLoader(
            examples,
            batch_sampler=sampler,
            collate_fn=partial(collate, pad_id=ids.pad_id, bos_id=ids.bos_id, eos_id=ids.eos_id),
            num_workers=self.num_workers,
            persistent_workers=self.num_workers > 0,
        )


def _warn(problems: Iterable[Problem]) -> None:
    """Says what `translate check` lists as a warning."""
    for problem in problems:
        if problem.severity == WARNING:
            say(f"warning: {problem}")
