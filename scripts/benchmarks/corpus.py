"""The corpus of all measurements: pairs, tokenizer and batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.options import ROOT, SEED, TOKENS_PER_SIDE, BenchmarkError, Options

TINY = ROOT / "data" / "tiny"
MULTI30K = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
VOCAB_SIZE = 8000  # a small corpus gets fewer pieces
TEST_SENTENCES = 1000
REPEAT_TINY = 6  # makes an epoch longer than a measured run, so that no epoch ends within it


@dataclass(frozen=True)
class Corpus:
    """Files in the work folder with normalized text."""

    description: str
    train: tuple[Path, Path]  # source, target
    valid: tuple[Path, Path]
    test: Path  # TEST_SENTENCES sources, one per line
    tokenizer: Path
    pieces: int


@cache
def prepare(options: Options) -> Corpus:
    """Read the corpus, train the tokenizer and write the files."""
    from translate.text.corpus import ParallelFiles
    from translate.text.normalize import normalize
    from translate.text.tokenizer import Tokenizer

    pairs = {}
    for part, name in MULTI30K.items():
        stem = f"{options.multi30k}/{name}" if options.multi30k else f"{TINY}/{part}"
        suffix = ".gz" if options.multi30k else ""
        files = [Path(f"{stem}.{language}{suffix}") for language in ("en", "de")]
        read = ParallelFiles(*files).read().pairs
        pairs[part] = [(normalize(source), normalize(target)) for source, target in read]
    tokenizer, _ = Tokenizer.train(
        (side for pair in pairs["train"] for side in pair), vocab_size=VOCAB_SIZE, seed=SEED
    )
    folder = options.work / "data"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tokenizer.model"
    file.write_bytes(tokenizer.to_bytes())
    test = islice(cycle(source for source, _ in pairs["test"]), TEST_SENTENCES)
    name = "Multi30k" if options.multi30k else f"data/tiny, repeated {REPEAT_TINY} times"
    repeats = 1 if options.multi30k else REPEAT_TINY
    return Corpus(
        description=f"{name}: {len(pairs['train']):,} pairs, {len(tokenizer):,} joint pieces",
        train=_write_pairs(folder, "train", pairs["train"] * repeats),
        valid=_write_pairs(folder, "valid", pairs["valid"][:50]),
        test=_write_lines(folder / "test.en", test),
        tokenizer=file,
        pieces=len(tokenizer),
    )


def _write_pairs(folder: Path, name: str, pairs: Sequence[tuple[str, str]]) -> tuple[Path, Path]:
    sources, targets = zip(*pairs, strict=True)
    source, target = folder / f"{name}.en", folder / f"{name}.de"
    return _write_lines(source, sources), _write_lines(target, targets)


def _write_lines(file: Path, lines: Iterable[str]) -> Path:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def read_lines(file: str | Path) -> list[str]:
    """Return the lines of a text file."""
    return Path(file).read_text("utf-8").removesuffix("\n").split("\n")


def batches(files: Sequence[Path], tokenizer_file: Path, repeat: int = 1) -> Iterator[Any]:
    """Read the pairs of two files `repeat` times and encode them; yield the batches of an epoch."""
    from translate.text.corpus import ParallelFiles, read_corpus
    from translate.text.tokenizer import Tokenizer
    from translate.training.batching import TokenBatchSampler, collate, encode_pairs

    tokenizer = Tokenizer.load(tokenizer_file)
    examples = encode_pairs(tokenizer, read_corpus([ParallelFiles(*files)] * repeat).pairs)
    lengths = [example.lengths for example in examples]
    for positions in TokenBatchSampler(lengths, max_tokens=2 * TOKENS_PER_SIDE, seed=SEED):
        yield collate([examples[position] for position in positions], tokenizer)


def save_batches(corpus: Corpus, file: Path, count: int) -> None:
    """Write the first batches: src (B, S), tgt_in and tgt_out (B, T), int64, padded with 0."""
    import torch

    first = list(islice(batches(corpus.train, corpus.tokenizer), count))
    if len(first) < count:
        raise BenchmarkError(f"an epoch has {len(first)} batches, but {count} are needed")
    torch.save([(batch.src, batch.tgt_in, batch.tgt_out) for batch in first], file)
