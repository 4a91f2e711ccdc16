"""The same text for every contestant: pairs, tokenizer and batches."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.options import ROOT, SEED, TOKENS_PER_SIDE, BenchmarkError, Options

TINY = ROOT / "data" / "tiny"
MULTI30K = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
VOCAB_SIZE = 8000  # a small corpus gets fewer pieces
TEST_SENTENCES = 1000
REPEAT_TINY = 6  # an epoch must be longer than a timed run, or the end of the epoch is timed too


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
    name = "Multi30k" if options.multi30k else f"data/tiny, repeated {REPEAT_TINY} times"
    pieces, repeats = len(tokenizer), 1 if options.multi30k else REPEAT_TINY
    return Corpus(
        description=f"{name}: {len(pairs['train']):,} pairs, {pieces:,} joint pieces",
        train=_write_pairs(folder, "train", pairs["train"] * repeats),
        valid=_write_pairs(folder, "valid", pairs["valid"][:50]),
        test=_write_lines(folder / "test.en", test),
        tokenizer=file,
        pieces=pieces,
    )


def _read(options: Options, name: str, language: str) -> list[str]:
    if options.multi30k is None:
        return read_lines(TINY / f"{name}.{language}")
    file = options.multi30k / f"{MULTI30K[name]}.{language}.gz"
    try:
        return gzip.decompress(file.read_bytes()).decode("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"cannot read {file}: {error}") from None


def read_lines(file: str | Path) -> list[str]:
    """Return the lines of a text file."""
    return Path(file).read_text("utf-8").removesuffix("\n").split("\n")


def _write_pairs(folder: Path, name: str, pairs: Sequence[tuple[str, str]]) -> tuple[Path, Path]:
    sources, targets = zip(*pairs, strict=True)
    return (
        _write_lines(folder / f"{name}.en", sources),
        _write_lines(folder / f"{name}.de", targets),
    )


def _write_lines(file: Path, lines: Sequence[str]) -> Path:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def save_batches(corpus: Corpus, file: Path, count: int) -> None:
    """Write the first `count` batches of this program's first epoch.

    Each is (src (B, S), tgt_in (B, T), tgt_out (B, T)), int64, padded with 0.

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
