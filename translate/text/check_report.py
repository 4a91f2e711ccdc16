"""The report of `translate check`: problems by file and line, sizes, lengths and vocabulary."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from translate.text.corpus import Corpus, Pair, Sources, characters, read_corpus
from translate.text.corpus_checks import check_corpora, unknown_characters
from translate.text.filters import Filters
from translate.text.problems import SEVERITIES, UNSAFE, Problem, ProblemLog
from translate.text.split import split_corpus
from translate.text.tokenizer import MAX_BYTES, Tokenizer

SAMPLE = 50_000  # from larger corpora, pieces are counted and trained on this many pairs
_LONGEST_TEXTS = 100  # pieces are also counted in this many sentences with most characters
_ENOUGH_TO_SPLIT = 20_000  # with this many pairs, some can always be held out
_COMMON_DUPLICATES = 0.05  # a normal share of duplicates: people say "Thank you." often


@dataclass
class Split:
    """The size of train, valid or test.

    Args:
        pairs: number of pairs.
        left_out: number of pairs left out, by kind.
        source: pieces per source sentence, including eos: "median", "percentile_99" and "longest";
            None if they were not counted.
        target: the same for the target sentences.
        too_long: number of pairs longer than the limit on either side.
        unknown: share of characters that train does not have.
    """

    pairs: int
    left_out: dict[str, int]
    source: dict[str, int] | None = None
    target: dict[str, int] | None = None
    too_long: int = 0
    unknown: float = 0.0


@dataclass
class Report:
    """What `check_files` found.

    Args:
        problems: the worst first.
        pieces: size of the vocabulary in whose pieces lengths were counted; 0 if there is none.
        smallest: size of the smallest vocabulary that the training text supports; 0 if not tried.
        largest: size of the largest such vocabulary; 0 if not tried.
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
    files: Mapping[str, Sources],
    *,
    filters: Filters = Filters(),  # noqa: B008 (frozen)
    tokenizer: Path | None = None,
    vocab_size: int = 8000,
    max_length: int = 256,
    held_out: int = 500,
    seed: int = 1,
    section: str = "",
) -> Report:
    """Read "train" and, if given, "valid" and "test", and report what is wrong.

    A problem is unsafe if `fit` refuses the data; in "test", if `translate test` refuses it.

    Args:
        files: the files of each split, "train" first.
        filters: which training pairs are left out, as in `fit`.
        tokenizer: a SentencePiece .model that counts pieces; by default a vocabulary is trained on
            (a sample of) train.
        vocab_size: size of that vocabulary.
        max_length: maximum number of pieces in a sentence, including bos or eos.
        held_out: number of pairs to hold out for each of "valid" and "test", as in `fit`.
        seed: decides which pairs are held out; the default is that of `fit`.
        section: section of the config file that names the files ("data."), for messages only.

    Raises:
        UsageError: contradictory settings.
    """
    log = ProblemLog(strict=False)
    corpora = {}
    splits = {}
    for name, sources in files.items():
        setting = section and section + name
        corpus = read_corpus(sources, setting, filters if name == "train" else None, strict=False)
        corpora[name] = corpus
        log.add(*corpus.problems)
        left_out: Counter[str] = Counter()
        for left in corpus.left_out:
            left_out[left.kind] += left.count  # several reasons may have the same kind
            if left.kind != "duplicate" or left.count > _COMMON_DUPLICATES * len(corpus.pairs):
                log.add(Problem(**vars(left)))  # not a LeftOut, which `str` describes for `fit`
        splits[name] = Split(len(corpus.pairs), dict(left_out))
    log.add(*check_corpora(corpora))
    sampled = any(len(corpus.pairs) > SAMPLE for corpus in corpora.values())
    report = Report(splits, max_length, sampled=sampled)
    train = corpora["train"]
    if train.pairs:
        fit_pairs = {"train": train.pairs}
        first_file = train.starts[0][1][0]
        with log.catch(first_file, "too-few-to-split"):
            # If an unsafe problem stopped reading, there are more pairs than these.
            if len(train.pairs) < _ENOUGH_TO_SPLIT and "valid" not in corpora and not log.unsafe:
                missing = {"valid", "test"}.difference(corpora)
                fit_pairs = split_corpus(train.pairs, missing, held_out, seed=seed)
        with log.catch(str(tokenizer or first_file), "vocabulary"):
            counter = _vocabulary(tokenizer, fit_pairs["train"], vocab_size, report)
            known = characters(train.pairs)
            for name, corpus in corpora.items():
                # What `fit` does with which pairs; `translate test` cuts long sentences.
                uses = {"validate on": corpus.pairs} if name == "valid" else {}
                if name == "train":
                    held_out_pairs = fit_pairs.get("valid", [])
                    uses = {"learn from": fit_pairs["train"], "validate on": held_out_pairs}
                else:
                    splits[name].unknown, _ = unknown_characters(corpus, known)
                log.add(*_measure(corpus, splits[name], counter, max_length, uses))
    report.problems = sorted(log, key=lambda problem: SEVERITIES.index(problem.severity))
    return report


def _vocabulary(
    path: Path | None, pairs: Sequence[Pair], vocab_size: int, report: Report
) -> Tokenizer:
    """Return a tokenizer, trained on `pairs` unless `path` names one; write sizes to `report`."""
    if path is not None:
        tokenizer = Tokenizer.load(path)
    else:
        report.smallest = Tokenizer.smallest(characters(pairs), vocab_size)
        sample = [text for pair in _sample(pairs) for text in pair]
        report.largest = len(Tokenizer.train(sample, vocab_size=1_000_000)[0])
        tokenizer, _ = Tokenizer.train(sample, vocab_size=vocab_size)
    report.pieces = len(tokenizer)
    return tokenizer


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
    """Write the lengths of `corpus` into `split` and yield problems of long sentences.

    Args:
        uses: the pairs that `fit` needs for each purpose. It is unsafe if all pairs for a purpose
            are too long.
    """
    if not corpus.pairs:
        return

    def pieces(text: str) -> int:
        return len(tokenizer.encode(text)) + 1

    def too_long(pair: Pair) -> bool:
        # A text has at most one piece per byte, one for the space before it, and bos or eos.
        longer = (text for text in pair if len(text.encode()) + 2 > max_length)
        return any(pieces(text) > max_length for text in longer)

    split.source = _lengths([pair.source for pair in corpus.pairs], pieces)
    split.target = _lengths([pair.target for pair in corpus.pairs], pieces)
    indices = [index for index, pair in enumerate(corpus.pairs) if too_long(pair)]
    split.too_long = len(indices)
    if indices:
        problem = corpus.problem("too-long", indices, what=f"more than {max_length:,} pieces")
        impossible = [use for use, pairs in uses.items() if pairs and all(map(too_long, pairs))]
        if impossible:
            problem.severity = UNSAFE
            problem.what += f", and no shorter pair to {impossible[0]}"
        elif not uses:
            problem.todo = "translate test cuts the sources; split the sentences"
        yield problem
    if huge := [i for i in indices if any(len(t.encode()) > MAX_BYTES for t in corpus.pairs[i])]:
        yield corpus.problem("long-line", huge, what=f"more than {MAX_BYTES:,} bytes")


def _lengths(texts: Sequence[str], pieces: Callable[[str], int]) -> dict[str, int]:
    counts = sorted(map(pieces, _sample(texts)))
    longest = max(map(pieces, heapq.nlargest(_LONGEST_TEXTS, texts, key=len)))
    last = len(counts) - 1
    median, percentile_99 = counts[last // 2], counts[last * 99 // 100]
    longest = max(longest, counts[-1])
    return {"median": median, "percentile_99": percentile_99, "longest": longest}
