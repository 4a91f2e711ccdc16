"""The same text for every contestant: pairs, tokenizer, batches, a trained model."""

from __future__ import annotations

import gzip
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmark_parts.children import run
from benchmark_parts.common import SCRIPTS, SHAPE, BenchmarkError, Options

TINY = SCRIPTS.parent / "data" / "tiny"
MULTI30K = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
VOCAB_SIZE = 8000  # a corpus that supports no more gets fewer
TEST_SENTENCES = 1000
REPEAT_TINY = 6  # an epoch must be longer than a timed run, or its end would be timed too
SEED = 1
SMOOTHING = 0.1
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Corpus:
    """Files in the work folder, all text normalised the way this program does it."""

    name: str
    train: tuple[Path, Path]  # source, target; the tiny corpus repeated
    once: tuple[Path, Path]  # the same without repeats
    valid: tuple[Path, Path]
    test: Path  # sources, one a line, exactly TEST_SENTENCES lines
    tokenizer: Path
    pieces: int
    pairs: int  # of `once`

    def describe(self) -> dict[str, Any]:
        return {
            "corpus": self.name,
            "pairs": self.pairs,
            "pieces": self.pieces,
            "test_sentences": TEST_SENTENCES,
        }


def prepare(options: Options) -> Corpus:
    """Read the corpus, train the tokenizer, write the files. BenchmarkError: files missing."""
    from translate.text.normalize import normalize
    from translate.text.tokenizer import Tokenizer

    folder = options.work / "data"
    folder.mkdir(parents=True, exist_ok=True)
    sides = {}
    for name in ("train", "valid", "test"):
        source, target = (_read(options, name, language) for language in ("en", "de"))
        pairs = [(normalize(a), normalize(b)) for a, b in zip(source, target, strict=True)]
        sides[name] = [pair for pair in pairs if all(pair)]
    tokenizer, _ = Tokenizer.train(
        (side for pair in sides["train"] for side in pair), vocab_size=VOCAB_SIZE, seed=SEED
    )
    place = folder / "tokenizer.model"
    place.write_bytes(tokenizer.to_bytes())
    test = [source for source, _ in sides["test"]]
    test = (test * -(-TEST_SENTENCES // len(test)))[:TEST_SENTENCES]
    repeats = 1 if options.multi30k or options.quick else REPEAT_TINY
    tiny = "data/tiny" if repeats == 1 else f"data/tiny, repeated {repeats} times"
    return Corpus(
        name="Multi30k" if options.multi30k else tiny,
        train=_write(folder, "train", sides["train"] * repeats),
        once=_write(folder, "once", sides["train"]),
        valid=_write(folder, "valid", sides["valid"][:50]),
        test=_write_lines(folder / "test.en", test),
        tokenizer=place,
        pieces=len(tokenizer),
        pairs=len(sides["train"]),
    )


def _read(options: Options, name: str, language: str) -> list[str]:
    if options.multi30k is None:
        return (TINY / f"{name}.{language}").read_text("utf-8").splitlines()
    file = options.multi30k / f"{MULTI30K[name]}.{language}.gz"
    try:
        return gzip.decompress(file.read_bytes()).decode("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"cannot read {file}: {error}") from None


def _write(folder: Path, name: str, pairs: Sequence[tuple[str, str]]) -> tuple[Path, Path]:
    return (
        _write_lines(folder / f"{name}.en", [source for source, _ in pairs]),
        _write_lines(folder / f"{name}.de", [target for _, target in pairs]),
    )


def _write_lines(file: Path, lines: Sequence[str]) -> Path:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def save_batches(corpus: Corpus, file: Path, *, max_tokens: int, count: int) -> dict[str, Any]:
    """Write the first `count` batches of this program's first epoch, as it would train on them.

    Each is (src (B, S), tgt_in (B, T), tgt_out (B, T)), int64, padded with 0. Returns what a
    reader should know of them.
    """
    import torch

    from translate.text.corpus import Pair
    from translate.text.tokenizer import Tokenizer
    from translate.training.batching import TokenBatchSampler, collate, encode_pairs

    tokenizer = Tokenizer.load(corpus.tokenizer)
    sides = [side.read_text("utf-8").removesuffix("\n").split("\n") for side in corpus.train]
    examples = encode_pairs(tokenizer, [Pair(a, b) for a, b in zip(*sides, strict=True)])
    lengths = [example.lengths for example in examples]
    sampler = TokenBatchSampler(lengths, max_tokens=max_tokens, seed=SEED)
    if len(sampler) < count:
        raise BenchmarkError(f"an epoch has {len(sampler)} batches, {count} are needed")
    ids = {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    batches = []
    for positions, _ in zip(sampler, range(count), strict=False):
        batch = collate([examples[position] for position in positions], **ids)
        batches.append((batch.src, batch.tgt_in, batch.tgt_out))
    torch.save(batches, file)
    real = sum(int((out != tokenizer.pad_id).sum()) for _, _, out in batches)
    cells = sum(out.numel() for _, _, out in batches)
    return {
        "batches_in_epoch": len(sampler),
        "real_target_tokens_per_batch": round(real / count),
        "target_padding_share": round(1 - real / cells, 4),
    }


def fit_config(
    corpus: Corpus,
    *,
    train: tuple[Path, Path],
    batch_tokens: int,
    trainer: dict[str, Any],
    model: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The config of `translate fit` for the common shape, without validation."""
    return {
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
        "trainer": {"accelerator": "cpu", "limit_val_batches": 0, **trainer},
    }


def fit(config: dict[str, Any], folder: Path, options: Options) -> Path:
    """Run `translate fit` as a process of its own; returns its run folder, the only one left."""
    runs = folder / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "benchmark.yaml"
    file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    command = [sys.executable, "-m", "translate", "fit", "--config", file, "--runs", runs]
    run(command, options, folder / "fit.log")
    return next(runs.glob("*/version_*"))


def train_checkpoint(options: Options, corpus: Corpus) -> Path:
    """A model for decoding; post-norm, because MarianMTModel knows nothing else.

    Long enough that its outputs have the lengths of translations; the quick one is only long
    enough to stop.
    """
    if options.quick:
        trainer = {"max_steps": 150, "max_epochs": -1}
    else:
        trainer = {"max_epochs": 2 if options.multi30k else 6}
    config = fit_config(
        corpus,
        train=corpus.once,
        batch_tokens=1024 if options.quick else 2048,
        trainer=trainer,
        model={"norm": "post"},
    )
    folder = fit(config, options.work / "model", options)
    return folder / "checkpoints" / "last.ckpt"
