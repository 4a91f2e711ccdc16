"""The LightningDataModule: from the files named in the config to batches."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import lightning
import torch
from torch.utils.data import DataLoader

from translate.errors import UsageError, UserError
from translate.text.batching import (
    Example,
    TokenBatchSampler,
    collate,
    encode_pairs,
    keep_fitting,
)
from translate.text.corpus import Pair, ParallelFiles, split_by_source
from translate.text.tokenizer import Tokenizer
from translate.training.messages import say


class TranslationData(lightning.LightningDataModule):
    """Parallel text for training, validation and testing, and the tokenizer that belongs to it.

    Args:
        train: sentence pairs to learn from.
        valid: pairs to choose the best checkpoint by; without them some are held out from
            `train`, never with a source sentence that stays in it.
        test: pairs for `translate test`.
        challenge: folder of .tsv files, each scored on its own by `translate test`.
        held_out: pairs to hold out when `valid` is not given; at most a tenth of `train`.
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
        train: ParallelFiles,
        valid: ParallelFiles | None = None,
        test: ParallelFiles | None = None,
        challenge: Path | None = None,
        held_out: int = 500,
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
        for name, files in self.files.items():
            if files not in (None, ParallelFiles()):
                try:
                    files.check(f"data.{name}")
                except UsageError as error:
                    faults.append(str(error))
        if faults:
            raise ValueError("; ".join(faults))
        self.tokenizer: Tokenizer | None = None  # set from a checkpoint before it is resumed
        self.valid_pairs: list[Pair] = []
        self.train_sampler: TokenBatchSampler
        self._train: list[Example] = []
        self._valid: list[Example] = []

    def setup(self, stage: str) -> None:
        """Read, split, train the tokenizer, encode, filter; say what was left out and why."""
        if self._valid:
            return
        train, valid = self._read_train_and_valid()
        if self.tokenizer is None:
            self.tokenizer = self._load_or_train_tokenizer(train)
        self._train = self._encode("train", train) if stage == "fit" else []
        self._valid = self._encode("valid", valid)
        self.valid_pairs = [valid[example.index] for example in self._valid]
        if stage == "fit":
            say(
                f"{len(self._train):,} pairs to train on, {len(self._valid):,} to validate on, "
                f"{len(self.tokenizer):,} pieces"
            )

    def batches_per_epoch(self) -> int:
        return len(self._sampler(self._train, shuffle=True))

    def read(self, name: str) -> list[Pair]:
        """The pairs of "train", "valid" or "test"; UserError where the config names none."""
        files = self.files[name]
        if files is None:
            raise UserError(f"no data to read: set data.{name} in the config")
        if files == ParallelFiles():
            raise UsageError(
                f"no data to read: set data.{name}.tsv, or data.{name}.source and "
                f"data.{name}.target, or give --config FILE, for example configs/tiny.yaml"
            )
        corpus = files.read(f"data.{name}")
        for note in corpus.notes:
            say(note)
        return corpus.pairs

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

    def _read_train_and_valid(self) -> tuple[list[Pair], list[Pair]]:
        train = self.read("train")
        if self.files["valid"] is not None:
            return train, self.read("valid")
        held_out = max(1, min(self.held_out, len(train) // 10))
        train, valid = split_by_source(train, held_out=held_out, seed=torch.initial_seed())
        say(f"data.valid is not set: held out {len(valid):,} pairs of data.train")
        return train, valid

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

    def _encode(self, name: str, pairs: list[Pair]) -> list[Example]:
        examples, note = keep_fitting(encode_pairs(self.tokenizer, pairs), self.max_length)
        if note:
            say(f"{name}: {note}")
        return examples

    def train_dataloader(self) -> DataLoader:
        """Batches by token budget; a run that stopped inside an epoch goes on where it was."""
        # To overfit a few batches they must be the same ones in every epoch.
        self.train_sampler = self._sampler(self._train, shuffle=not self.trainer.overfit_batches)
        self.train_sampler.set_epoch(self.trainer.current_epoch)
        done = self.trainer.fit_loop.epoch_loop.batch_progress.current.ready
        self.train_sampler.skip_batches(min(done, len(self.train_sampler)))
        return self._loader(self._train, self.train_sampler)

    def val_dataloader(self) -> DataLoader:
        return self._loader(self._valid, self._sampler(self._valid, shuffle=False))

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
