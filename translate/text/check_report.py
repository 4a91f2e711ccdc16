"""The report of `translate check`: problems by file and line, sizes, lengths and vocabulary."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from translate.text.corpus import Corpus, Pair, ParallelFiles, characters, read_corpus
from translate.text.corpus_checks import check_corpora, unknown_characters
from translate.text.filters import Filters
from translate.text.problems import UNSAFE, Problem, ProblemLog
from translate.text.split import split_corpus
from translate.text.tokenizer import MAX_BYTES, Tokenizer

SAMPLE = 50_000  # pairs on which pieces are counted and a vocabulary is trained
_LONGEST_TEXTS = 100  # the longest sentence in pieces is looked for among the longest in characters
_ENOUGH_TO_SPLIT = 20_000  # pairs of which some can surely be held out
_COMMON_DUPLICATES = 0.05  # a share that every corpus has: people say "Thank you." often


@dataclass(frozen=True)
class Lengths:
    """Pieces per sentence on one side, bos or eos counted."""

    median: int
    percentile_99: int
    longest: int


@dataclass
class Split:
    """The size of train, valid or test.

    Args:
        pairs: number of pairs.
        left_out: number of pairs left out, by kind.
        too_long: number of pairs longer than the limit on either side.
        unknown: share of characters that train does not have.
    """

    pairs: int
    left_out: dict[str, int]
    source: Lengths | None = None
    target: Lengths | None = None
    too_long: int = 0
    unknown: float = 0.0


@dataclass
class Report:
    """What `check_files` found.

    Args:
        problems: the worst first.
        pieces: size of the vocabulary with which lengths were counted.
        smallest: pieces that a vocabulary of the training text needs at least; 0 if not tried.
        largest: pieces that such a vocabulary can have; 0 if not tried.
        sampled: whether `largest`, and the median and 99 % of lengths, come from a sample.
    """

    splits: dict[str, Split]
    max_length: int
    problems: list[Problem] = field(default_factory=list)
    pieces: int = 0
    smallest: int = 0
    largest: int = 0
    sampled: bool = False

    @property
    def safe(self) -> bool:
        return not any(problem.unsafe for problem in self.problems)


def check_files(
    files: Mapping[str, ParallelFiles | list[ParallelFiles]],
    *,
    filters: Filters = Filters(),  # noqa: B008 (frozen)
    tokenizer: Path | None = None,
    vocab_size: int = 8000,
    max_length: int = 256,
    held_out: int = 500,
    seed: int = 1,
    section: str = "",
) -> Report:
    """Read "train" and, where given, "valid" and "test", and report what is wrong.

    Unsafe is what `fit` refuses, and in "test" what `translate test` refuses.

    Args:
        files: the files of each split, "train" first.
        filters: which training pairs are left out, as in `fit`.
        tokenizer: a SentencePiece .model that counts pieces; by default a vocabulary is trained on
            (a sample of) train.
        vocab_size: pieces of that vocabulary.
        max_length: pieces that a sentence may have, bos or eos counted.
        held_out: pairs that are held out for each of "valid" and "test", as in `fit`.
        seed: decides which pairs are held out; `fit` too uses 1 by default.
        section: section of a config file that names the files ("data."), for messages only.

    Raises:
        UsageError: settings that contradict each other.
    """
    log = ProblemLog(strict=False)
    corpora = {}
    splits = {}
    for name, sources in files.items():
        setting = section and section + name
        corpus = read_corpus(sources, setting, filters if name == "train" else None, strict=False)
        for problem in corpus.problems:
            log.add(problem)
        for left in corpus.left_out:
            if left.kind != "duplicate" or left.count > _COMMON_DUPLICATES * len(corpus.pairs):
                texts = {"what": f"left out: {left.reason}", "example": left.example}
                log.add(Problem(left.kind, left.file, left.line, **texts, count=left.count))
        corpora[name] = corpus
        splits[name] = Split(len(corpus.pairs), {left.kind: left.count for left in corpus.left_out})
    for problem in check_corpora(corpora):
        log.add(problem)
    train = corpora["train"]
    sampled = any(len(corpus.pairs) > SAMPLE for corpus in corpora.values())
    report = Report(splits, max_length, sampled=sampled)
    if train.pairs:
        first_file = train.starts[0][1][0]
        fit_on = {"train": train.pairs}  # after the split
        with log.catch(first_file, "too-few-to-split"):
            # If an unsafe problem stopped reading, there are more pairs than these.
            if len(train.pairs) < _ENOUGH_TO_SPLIT and "valid" not in corpora and not log.unsafe:
                missing = {"valid", "test"}.difference(corpora)
                fit_on = split_corpus(train.pairs, missing, held_out, seed=seed)
        with log.catch(str(tokenizer or first_file), "vocabulary"):
            if tokenizer is None:
                counter = _try_vocabulary(fit_on["train"], vocab_size, report)
            else:
                counter = Tokenizer.load(tokenizer)
            report.pieces = len(counter)
            # `fit` needs a pair of each use that is short enough; `translate test` cuts long ones.
            uses = {
                "train": {"learn from": fit_on["train"], "validate on": fit_on.get("valid", [])},
                "valid": {"validate on": corpora["valid"].pairs if "valid" in corpora else []},
                "test": {},
            }
            for name, corpus in corpora.items():
                if name != "train":
                    splits[name].unknown, _ = unknown_characters(corpus, train)
                for problem in _measure(corpus, splits[name], counter, max_length, uses[name]):
                    log.add(problem)
    report.problems = log.worst_first()
    return report


def _try_vocabulary(pairs: Sequence[Pair], vocab_size: int, report: Report) -> Tokenizer:
    """Train a vocabulary on a sample of the pairs; the range of sizes goes into the report."""
    report.smallest = Tokenizer.smallest(characters(pairs), vocab_size)
    sample = [text for pair in _sample(pairs) for text in pair]
    largest, _ = Tokenizer.train(sample, vocab_size=1_000_000)
    report.largest = len(largest)
    return Tokenizer.train(sample, vocab_size=vocab_size)[0]


def _sample(items: Sequence) -> Sequence:
    """Return all items, or about SAMPLE of them at equal distances."""
    return items[:: max(1, -(-len(items) // SAMPLE))]


def _measure(
    corpus: Corpus,
    split: Split,
    tokenizer: Tokenizer,
    max_length: int,
    uses: Mapping[str, Sequence[Pair]],
) -> Iterator[Problem]:
    """Fill in the lengths of `split` and yield the problems with them.

    Args:
        uses: which pairs `fit` needs for what; it is unsafe if all pairs of a use are too long.
    """
    if not corpus.pairs:
        return

    def pieces(text: str) -> int:
        return len(tokenizer.encode(text)) + 1

    split.source = _lengths([pair.source for pair in corpus.pairs], pieces)
    split.target = _lengths([pair.target for pair in corpus.pairs], pieces)
    too_long, over_bytes = [], []
    for index, pair in enumerate(corpus.pairs):
        # A text has at most one piece per byte, one for the space before it, and bos or eos.
        longer = [text for text in pair if _bytes(text) + 2 > max_length]
        if longer and max(map(pieces, longer)) > max_length:
            too_long.append(index)
            if max(map(_bytes, longer)) > MAX_BYTES:
                over_bytes.append(index)
    split.too_long = len(too_long)
    ids = {id(corpus.pairs[index]) for index in too_long}
    impossible = [use for use, pairs in uses.items() if pairs and ids.issuperset(map(id, pairs))]
    if too_long:
        problem = corpus.problem("too-long", too_long, what=f"more than {max_length:,} pieces")
        if impossible:
            problem.severity = UNSAFE
            problem.what += f", and no shorter pair to {impossible[0]}"
        elif not uses:
            problem.todo = "translate test cuts the sources; split the sentences"
        yield problem
    if over_bytes:
        yield corpus.problem("long-line", over_bytes, what=f"more than {MAX_BYTES:,} bytes")


def _lengths(texts: Sequence[str], pieces: Callable[[str], int]) -> Lengths:
    counts = sorted(map(pieces, _sample(texts)))
    longest = max(map(pieces, heapq.nlargest(_LONGEST_TEXTS, texts, key=len)))
    last = len(counts) - 1
    return Lengths(counts[last // 2], counts[last * 99 // 100], max(longest, counts[-1]))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
