"""The same text for every contestant: pairs, tokenizer, batches and a trained model."""

from __future__ import annotations

import gzip
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.child_processes import run
from benchmarks.options import (
    LEARNING_RATE,
    ROOT,
    SEED,
    SHAPE,
    SMOOTHING,
    TOKENS_PER_SIDE,
    BenchmarkError,
    Options,
)

TINY = ROOT / "data" / "tiny"
MULTI30K = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
VOCAB_SIZE = 8000  # a small corpus gets fewer pieces
TEST_SENTENCES = 1000
REPEAT_TINY = 6  # an epoch must be longer than a timed run, or the end of the epoch is timed too


@dataclass(frozen=True)
class Corpus:
    """Files in the work folder with normalized text."""

    name: str
    train: tuple[Path, Path]  # source, target; the tiny corpus is repeated
    once: tuple[Path, Path]  # the same without repeats
    valid: tuple[Path, Path]
    test: Path  # TEST_SENTENCES sources, one per line
    tokenizer: Path
    pieces: int
    pairs: int  # of `once`

    def describe(self) -> dict[str, Any]:
        """Return what the report says about the corpus."""
        return {"corpus": self.name, "pairs": self.pairs, "pieces": self.pieces}


def prepare(options: Options) -> Corpus:
    """Read the corpus, train the tokenizer and write the files.

    Raises:
        BenchmarkError: a file that cannot be read.
    """
    from translate.text.normalize import normalize
    from translate.text.tokenizer import Tokenizer

    folder = options.work / "data"
    folder.mkdir(parents=True, exist_ok=True)
    pairs = {}
    for name in MULTI30K:
        source, target = (_read(options, name, language) for language in ("en", "de"))
        both = [(normalize(a), normalize(b)) for a, b in zip(source, target, strict=True)]
        pairs[name] = [pair for pair in both if all(pair)]
    tokenizer, _ = Tokenizer.train(
        (side for pair in pairs["train"] for side in pair), vocab_size=VOCAB_SIZE, seed=SEED
    )
    file = folder / "tokenizer.model"
    file.write_bytes(tokenizer.to_bytes())
    test = [source for source, _ in pairs["test"]]
    test = (test * -(-TEST_SENTENCES // len(test)))[:TEST_SENTENCES]
    repeats = 1 if options.multi30k or options.quick else REPEAT_TINY
    tiny = "data/tiny" if repeats == 1 else f"data/tiny, repeated {repeats} times"
    return Corpus(
        name="Multi30k" if options.multi30k else tiny,
        train=_write(folder, "train", pairs["train"] * repeats),
        once=_write(folder, "once", pairs["train"]),
        valid=_write(folder, "valid", pairs["valid"][:50]),
        test=_write_lines(folder / "test.en", test),
        tokenizer=file,
        pieces=len(tokenizer),
        pairs=len(pairs["train"]),
    )


def _read(options: Options, name: str, language: str) -> list[str]:
    if options.multi30k is None:
        return read_lines(TINY / f"{name}.{language}")
    file = options.multi30k / f"{MULTI30K[name]}.{language}.gz"
    try:
        return gzip.decompress(file.read_bytes()).decode("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"cannot read {file}: {error}") from None


def read_lines(file: Path) -> list[str]:
    """Return the lines of a file of this module."""
    return file.read_text("utf-8").removesuffix("\n").split("\n")


def _write(folder: Path, name: str, pairs: Sequence[tuple[str, str]]) -> tuple[Path, Path]:
    return (
        _write_lines(folder / f"{name}.en", [source for source, _ in pairs]),
        _write_lines(folder / f"{name}.de", [target for _, target in pairs]),
    )


def _write_lines(file: Path, lines: Sequence[str]) -> Path:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def save_batches(corpus: Corpus, file: Path, count: int) -> dict[str, Any]:
    """Write the first `count` batches of this program's first epoch.

    Each is (src (B, S), tgt_in (B, T), tgt_out (B, T)), int64, padded with 0. Returns what the
    report says about the batches.

    Raises:
        BenchmarkError: an epoch with fewer batches.
    """
    import torch

    from translate.text.corpus import Pair
    from translate.text.tokenizer import Tokenizer
    from translate.training.batching import TokenBatchSampler, collate, encode_pairs

    tokenizer = Tokenizer.load(corpus.tokenizer)
    pairs = [Pair(a, b) for a, b in zip(*map(read_lines, corpus.train), strict=True)]
    examples = encode_pairs(tokenizer, pairs)
    lengths = [example.lengths for example in examples]
    sampler = TokenBatchSampler(lengths, max_tokens=2 * TOKENS_PER_SIDE, seed=SEED)
    if len(sampler) < count:
        raise BenchmarkError(f"an epoch has {len(sampler)} batches, but {count} are needed")
    ids = {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    batches = []
    for positions, _ in zip(sampler, range(count), strict=False):
        batch = collate([examples[position] for position in positions], **ids)
        batches.append((batch.src, batch.tgt_in, batch.tgt_out))
    torch.save(batches, file)
    real = sum(int((out != tokenizer.pad_id).sum()) for _, _, out in batches)
    slots = sum(out.numel() for _, _, out in batches)
    return {
        "real_target_tokens_per_batch": round(real / count),
        "target_padding_share": round(1 - real / slots, 4),
    }


def fit(
    corpus: Corpus,
    options: Options,
    folder: Path,
    *,
    trainer: dict[str, Any],
    model: dict[str, Any] | None = None,
    batch_tokens: int = 2 * TOKENS_PER_SIDE,
    once: bool = False,
    checkout: Path = ROOT,
) -> Path:
    """Run `translate fit` with the common shape in float32, without validation.

    Args:
        corpus: the data.
        options: the command line.
        folder: where the config, the log and the run go; earlier runs there are deleted.
        trainer: settings of the Trainer, for example how many steps.
        model: settings of the model beside those of the common shape.
        batch_tokens: padded tokens of a batch, both sides together.
        once: train on the corpus without repeats.
        checkout: the source tree to run.

    Returns:
        The run's folder.
    """
    train = corpus.once if once else corpus.train
    config = {
        "seed_everything": SEED,
        "data": {
            "train": {"source": str(train[0]), "target": str(train[1])},
            "valid": {"source": str(corpus.valid[0]), "target": str(corpus.valid[1])},
            "tokenizer": str(corpus.tokenizer),
            "batch_tokens": batch_tokens,
        },
        "model": {
            **SHAPE,
            "peak_learning_rate": LEARNING_RATE,
            "label_smoothing": SMOOTHING,
            **(model or {}),
        },
        "trainer": {
            "accelerator": "cpu",
            "precision": "32-true",
            "limit_val_batches": 0,
            **trainer,
        },
    }
    runs = folder / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "benchmark.yaml"
    file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    command = [sys.executable, "-m", "translate", "fit", "--config", file, "--runs", runs]
    run(command, options, folder / "fit.log", checkout)
    return next(runs.glob("*/version_*"))


def train_checkpoint(options: Options, corpus: Corpus, checkout: Path = ROOT) -> Path:
    """Train a model for decoding; post-norm, because MarianMTModel has nothing else.

    Long enough that its translations have realistic lengths; the quick one only learns to stop.
    """
    if options.quick:
        trainer = {"max_steps": 150, "max_epochs": -1}
    else:
        trainer = {"max_epochs": 2 if options.multi30k else 6}
    folder = fit(
        corpus, options, options.work / "model", trainer=trainer, model={"norm": "post"},
        batch_tokens=1024 if options.quick else 2048, once=True, checkout=checkout,
    )  # fmt: skip
    return folder / "checkpoints" / "last.ckpt"
