"""The LightningDataModule: read the files that the config names, and make batches."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import compress
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
from translate.training.batching import Example, TokenBatchSampler, collate, encode_pairs
from translate.training.run_record import fingerprint
from translate.training.settings import out_of_range

Sources = ParallelFiles | list[ParallelFiles]

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class TranslationData(lightning.LightningDataModule):
    """Parallel text for training, validation and testing, and its tokenizer.

    `train`, `valid` and `test` each name files in one of the forms of `ParallelFiles`, or a list of
    such sources, which are read one after the other. Options such as
    `--data.train.tsv FILE` set one source on the command line; after a list, they change its last
    source.

    Args:
        train: sentence pairs to train on.
        valid: pairs that choose the best checkpoint. If it is not set, some pairs of `train`
            are held out; their source sentences do not occur in the rest of `train`.
        test: pairs for `translate test`. If neither it nor `valid` is set, as many pairs of `train`
            are held out for the test. The pairs of `valid` and `test` are not filtered: only pairs
            with a blank side are left out, and pairs of `valid` that are too long for the model.
            Messages say how many.
        challenge: folder of .tsv files, each scored separately by `translate test`.
        held_out: pairs to hold out for `valid` and for `test`, each at most a tenth of `train`.
        filters: which pairs of `train` are left out.
        tokenizer: a SentencePiece .model; without it, one is trained on `train`.
        vocab_size: pieces of the trained tokenizer, both languages together; reduced if
            the corpus is too small for so many.
        batch_tokens: maximum tokens of a batch with padding: rows x (longest source + longest
            target). Small, because a small corpus needs many updates more than large batches.
        num_workers: processes that build batches; 0 is fastest at this size.
        max_length: longest sentence in pieces, including bos or eos; set by model.max_length.

    Raises:
        ValueError: invalid settings, all in one message, before any file is read.
    """

    train: Sources | None = None
    valid: Sources | None = None
    test: Sources | None = None
    challenge: Path | None = None
    held_out: int = 500
    filters: Filters = Filters()  # noqa: RUF009 (frozen)
    tokenizer: Path | None = None
    vocab_size: int = 8000
    batch_tokens: int = 1024
    num_workers: int = 0
    max_length: int = 256

    def __post_init__(self) -> None:
        super().__init__()
        self.files = {"train": self.train, "valid": self.valid, "test": self.test}
        minimums = {"held_out": 1, "vocab_size": 5, "batch_tokens": 1, "num_workers": 0}
        faults = out_of_range(vars(self), minimums) + self.filters.errors()
        faults = [f"data.{fault}" for fault in faults]
        for name, sources in self.files.items():
            try:
                if sources is not None:
                    for part, files in named_sources(sources, f"data.{name}"):
                        files.check(part)
            except UsageError as error:
                faults.append(str(error))
        if faults:
            raise ValueError("; ".join(faults))
        self.seed = torch.initial_seed()  # of the run: read once, as training seeds every batch
        self.trained_tokenizer: Tokenizer  # a checkpoint's is set before `setup`
        self.batches_done = 0  # batches that a resumed run skips in its first epoch
        self.train_sampler: TokenBatchSampler
        self.train_examples: list[Example] = []
        self.valid_examples: list[Example] = []
        self.valid_pairs: list[Pair] = []
        self.sha256: dict[str, str] = {}  # of the pairs of "train" and "valid"

    def setup(self, stage: str) -> None:
        """Read and split pairs, train the tokenizer, encode; log which pairs are left out."""
        if self.valid_examples:
            return
        corpora = {"train": self._read("train")}
        pairs = self._split(corpora["train"].pairs)
        if "valid" not in pairs:
            corpora["valid"] = self._read("valid")
            pairs["valid"] = corpora["valid"].pairs
        if stage == "fit":
            _warn(check_corpora(corpora))
        if not hasattr(self, "trained_tokenizer"):
            self.trained_tokenizer = self._load_or_train_tokenizer(pairs["train"])
        if stage == "fit":
            _, self.train_examples = self._encode("train", pairs["train"], corpora["train"])
            self.train_sampler = self._sampler(self.train_examples, shuffle=True)
            if len(self.train_sampler) == len(self.train_examples) > 1:
                logger.warning(
                    f"data.batch_tokens {self.batch_tokens} is so small that every batch holds a "
                    "single pair; raise it"
                )
        self.sha256["valid"] = fingerprint(pairs["valid"])
        source = corpora.get("valid", corpora["train"])
        self.valid_pairs, self.valid_examples = self._encode("valid", pairs["valid"], source)
        if stage == "fit":
            logger.info(
                f"{len(self.train_examples):,} pairs to train on, {len(self.valid_examples):,} to "
                f"validate on, {len(self.trained_tokenizer):,} pieces"
            )

    def read(self, name: str) -> list[Pair]:
        """Return the pairs of "valid" or "test", from its files or held out from `train`.

        The same data, filters and seed give the same split in every command. "train" are the pairs
        that are not held out.

        Raises:
            UsageError: the config sets no such data.
            UserError: the data cannot be read.
        """
        if name != "train" and self.files[name] is not None:
            return self._read(name).pairs
        if self.train is not None and (name == "train" or self.valid is None):
            parts = self._split(self._read("train").pairs)
            if name in parts:
                return parts[name]
        raise UsageError(f"no data to read: set data.{name} in the config")

    def challenge_files(self) -> list[Path]:
        """Return the challenge files sorted by name, without hidden files."""
        if self.challenge is None:
            return []
        files = sorted(self.challenge.glob("[!.]*.tsv"))
        if not files:
            raise UserError(f"no .tsv files in {self.challenge}; set data.challenge")
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
            logger.info("data.%s: %s", name, entry)
        return corpus

    def _split(self, pairs: list[Pair]) -> dict[str, list[Pair]]:
        """Return the training pairs, and the pairs held out for `valid` and `test`, by name."""
        missing = [name for name, files in self.files.items() if files is None]
        parts = {"train": pairs}
        if "valid" in missing:
            parts = split_corpus(pairs, missing, self.held_out, seed=self.seed)
        for name in missing:
            if count := len(parts.get(name, [])):
                logger.info(
                    f"data.{name} is not set: held out {count:,} pair{'s' * (count != 1)} of "
                    f"data.train (seed {self.seed})"
                )
        self.sha256["train"] = fingerprint(parts["train"])
        return parts

    def _load_or_train_tokenizer(self, train: list[Pair]) -> Tokenizer:
        if self.tokenizer is not None:
            return Tokenizer.load(self.tokenizer)
        texts = (side for pair in train for side in pair)
        tokenizer, notes = Tokenizer.train(texts, vocab_size=self.vocab_size, seed=self.seed)
        for note in notes:
            logger.info(note)
        return tokenizer

    def _encode(
        self, name: str, pairs: list[Pair], corpus: Corpus
    ) -> tuple[list[Pair], list[Example]]:
        """Return the pairs of `corpus` that fit the model, and their examples."""
        examples = encode_pairs(self.trained_tokenizer, pairs)
        fits = [max(example.lengths) <= self.max_length for example in examples]
        if not all(fits):
            index = fits.index(False)
            source, target = examples[index].lengths
            note = (
                f"data.{name}: left out {fits.count(False):,} of {len(fits):,} pairs longer than "
                f"max_length {self.max_length} (pieces with bos or eos), the first with "
                f"{source:,} and {target:,} pieces: "
                f"{corpus.place(corpus.pairs.index(pairs[index]))}: {excerpt(*pairs[index])}"
            )
            if not any(fits):
                raise UserError(f"no pairs left: {note}; raise model.max_length or split sentences")
            logger.info(note)
        return list(compress(pairs, fits)), list(compress(examples, fits))

    def train_dataloader(self) -> DataLoader:
        """Return batches of about equal size; a resumed run skips the batches it has done."""
        # trainer.overfit_batches needs the same batches in every epoch.
        self.train_sampler.shuffle = not self.trainer.overfit_batches
        self.train_sampler.set_epoch(self.trainer.current_epoch)
        self.train_sampler.skip, self.batches_done = self.batches_done, 0
        return self._loader(self.train_examples, self.train_sampler)

    def val_dataloader(self) -> DataLoader:
        return self._loader(self.valid_examples, self._sampler(self.valid_examples, shuffle=False))

    def _sampler(self, examples: list[Example], *, shuffle: bool) -> TokenBatchSampler:
        lengths = [example.lengths for example in examples]
        return TokenBatchSampler(
            lengths, max_tokens=self.batch_tokens, seed=self.seed, shuffle=shuffle
        )

    def _loader(self, examples: list[Example], sampler: TokenBatchSampler) -> DataLoader:
        return DataLoader(
            examples,  # type: ignore[arg-type]  # a list works as a Dataset
            batch_sampler=sampler,
            collate_fn=partial(collate, tokenizer=self.trained_tokenizer),
            num_workers=self.num_workers,
            worker_init_fn=_ignore_signals,
            persistent_workers=self.num_workers > 0,
        )


def _ignore_signals(worker: int) -> None:
    """Let a worker live when Ctrl-C or SIGTERM reaches all processes: training decides when to end.

    A worker ends with the training process in any case.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def read_files(source: Path | None, reference: Path | None) -> list[Pair] | None:
    """Return the pairs of --input and --reference, line by line; None if neither is given.

    Pairs that are blank on one side are left out, as in the files of a config, and counted.

    Raises:
        UsageError: only one of them is given, or both are the same file.
        UserError: a file that cannot be read, unequal line counts, only blank lines.
    """
    if source is None and reference is None:
        return None
    if source is None or reference is None:
        raise UsageError(
            "give both --input and --reference: line n of one must translate line n of the other"
        )
    if source == reference:
        raise UsageError(f"--input and --reference are the same file: {source}")
    corpus = ParallelFiles(source=source, target=reference).read()
    for entry in corpus.left_out:
        logger.info(str(entry))
    return corpus.pairs


def _warn(problems: Iterable[Problem]) -> None:
    """Log the problems that `translate check` reports as warnings."""
    for problem in problems:
        if problem.severity == WARNING:
            logger.warning(str(problem))
