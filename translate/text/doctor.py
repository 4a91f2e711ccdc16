"""What is wrong with a corpus, by file and line, and what it is good for: `translate check`."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from translate.text.corpus import Corpus, Pair, ParallelFiles, read_corpus
from translate.text.faults import UNSAFE, Fault, Findings
from translate.text.filters import Filters, LeftOut, excerpt
from translate.text.normalize import fold, normalize
from translate.text.sentences import look_like_headings, look_swapped, look_wordless
from translate.text.split import split_corpus
from translate.text.tokenizer import MAX_BYTES, Tokenizer

SAMPLE = 50_000  # pairs on which pieces are counted and a vocabulary is tried
_LONGEST = 100  # sentences a side that may be the one with the most pieces
_GUESSED = 10_000  # pairs from which the languages are guessed
_SHOWN = 10  # unknown characters that are named
_SMALL = 20_000  # pairs from which on some can be held out, unless they are hardly pairs at all
_REPEATED = 0.05  # so many duplicates are in every corpus: people say "Thank you." often


@dataclass(frozen=True)
class Lengths:
    """Pieces of the sentences of one side, the start or end sign counted."""

    median: int
    percentile_99: int
    longest: int


@dataclass
class Split:
    """The size of train, valid or test.

    `left_out` counts by kind; `too_long` pairs pass the limit on either side; `unknown` is the
    share of characters that train does not have.
    """

    pairs: int
    left_out: dict[str, int]
    source: Lengths | None = None
    target: Lengths | None = None
    too_long: int = 0
    unknown: float = 0.0


@dataclass
class Report:
    """What `examine` found; `faults` come worst first.

    `pieces` is the size of the vocabulary that lengths were counted with; one of the training text
    can have `smallest` to `largest` pieces (0: not tried). `sampled` tells that the largest, and
    the median and 99 % of lengths, are those of a sample.
    """

    splits: dict[str, Split]
    max_length: int
    faults: list[Fault] = field(default_factory=list)
    pieces: int = 0
    smallest: int = 0
    largest: int = 0
    sampled: bool = False

    @property
    def safe(self) -> bool:
        return not any(fault.unsafe for fault in self.faults)


def examine(
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
    """Read "train" and, where given, "valid" and "test", and say what is wrong.

    Unsafe is what `fit` refuses, and of "test" what `translate test` does.

    Args:
        files: where the splits lie, "train" first.
        filters: which training pairs are left out, as for `fit`.
        tokenizer: a SentencePiece .model that counts pieces; without one a vocabulary is trained
            on (a sample of) train.
        vocab_size: pieces of that vocabulary.
        max_length: pieces a sentence may have, start or end sign counted.
        held_out: pairs that are held out for each of "valid" and "test", as for `fit`.
        seed: decides which ones; `fit` has 1 too where nothing else is set.
        section: of a config file that names the files ("data."), for messages only.

    Raises:
        UsageError: settings that contradict each other.
    """
    findings = Findings(strict=False)
    corpora = {
        name: read_corpus(
            part, section and section + name, filters if name == "train" else None, findings
        )
        for name, part in files.items()
    }
    for corpus in corpora.values():
        for entry in corpus.left_out:
            if entry.kind != "duplicate" or entry.count > _REPEATED * len(corpus.pairs):
                findings.add(_left_out(entry))
    for fault in compare(corpora):
        findings.add(fault)
    report = Report(
        {
            name: Split(len(corpus.pairs), {part.kind: part.count for part in corpus.left_out})
            for name, corpus in corpora.items()
        },
        max_length,
        sampled=any(len(corpus.pairs) > SAMPLE for corpus in corpora.values()),
    )
    train = corpora["train"]
    parts = {"train": train.pairs}  # those to learn from, and those held out
    counting: Tokenizer | None = None
    if train.pairs:
        with findings.collect(train.starts[0][1][0], "too-few-to-split"):
            # Where reading stopped, there are more pairs than it found.
            if len(train.pairs) < _SMALL and "valid" not in corpora and not findings.unsafe():
                missing = {"valid", "test"}.difference(corpora)
                parts = split_corpus(train.pairs, missing, held_out, seed=seed)
        with findings.collect(str(tokenizer or train.starts[0][1][0]), "vocabulary"):
            if tokenizer is None:
                counting = _try_vocabulary(replace(train, pairs=parts["train"]), vocab_size, report)
            else:
                counting = Tokenizer.load(tokenizer)
    if counting is not None:
        report.pieces = len(counting)
        for name, corpus in corpora.items():
            if name != "train":
                report.splits[name].unknown, _ = _unknown_characters(corpus, train)
            uses = {  # what `fit` does with the pairs; `translate test` cuts what is too long
                "train": {"learn from": parts["train"], "validate on": parts.get("valid", [])},
                "valid": {"validate on": corpus.pairs},
                "test": {},
            }[name]
            for fault in _measure(corpus, report.splits[name], counting, max_length, uses):
                findings.add(fault)
    report.faults = findings.worst_first()
    return report


def compare(corpora: Mapping[str, Corpus]) -> Iterator[Fault]:
    """What stands out once whole corpora are seen, "train" first: `fit` says it, `check` lists it.

    The wrong order of languages, numbers or names of columns in place of sentences, sentences that
    two corpora share, and characters that "train" does not have.
    """
    for corpus in corpora.values():
        sample = corpus.pairs[:_GUESSED]
        sides = [pair.source for pair in sample], [pair.target for pair in sample]
        for side, texts in enumerate(sides):
            if look_wordless(texts):
                place = corpus.file_and_line(0, side)
                yield Fault("no-letters", *place, example=excerpt(texts[0]))
        if look_swapped(*sides):
            yield Fault("swapped", *corpus.file_and_line(0), example=excerpt(*sample[0]))
        firsts = dict.fromkeys(start for start, _ in corpus.starts)  # of sources with pairs
        for start in firsts:
            if start < len(corpus.pairs) and look_like_headings(corpus.pairs[start]):
                example = excerpt(*corpus.pairs[start])
                yield Fault("headings", *corpus.file_and_line(start), example=example)
    for (name, first), (_, second) in combinations(corpora.items(), 2):
        yield from _overlap(name, first, second)
    for name, corpus in corpora.items():
        if name != "train":
            _, fault = _unknown_characters(corpus, corpora["train"])
            if fault is not None:
                yield fault


def _left_out(entry: LeftOut) -> Fault:
    return Fault(
        entry.kind,
        entry.file,
        entry.line,
        what=f"left out: {entry.reason}",
        example=entry.example,
        count=entry.count,
    )


def _overlap(name: str, first: Corpus, second: Corpus) -> Iterator[Fault]:
    folded = [fold(pair.source) for pair in second.pairs]
    shared = set(folded).intersection(fold(pair.source) for pair in first.pairs)
    indices = [index for index, source in enumerate(folded) if source in shared]
    if indices:
        yield Fault(
            "overlap",
            *second.file_and_line(indices[0]),
            what=f"a source sentence that {name} has too, case and spaces aside",
            todo="take it out of one of them: a score on sentences seen before means little",
            example=excerpt(second.pairs[indices[0]].source),
            count=len(indices),
        )


def _unknown_characters(corpus: Corpus, train: Corpus) -> tuple[float, Fault | None]:
    """The share of characters that `train` does not have, and the fault if there are any."""
    unknown: Counter[str] = Counter()
    total = 0
    having: list[tuple[int, int]] = []
    for index, pair in enumerate(corpus.pairs if train.pairs else ()):
        for side, text in enumerate(pair):
            text = normalize(text).replace(" ", "")
            total += len(text)
            if not train.characters.issuperset(text):
                having.append((index, side))
                unknown.update(sign for sign in text if sign not in train.characters)
    if not having:
        return 0.0, None
    share = unknown.total() / total
    named = " ".join(list(unknown)[:_SHOWN]) + (" …" if len(unknown) > _SHOWN else "")
    return share, Fault(
        "unknown-characters",
        *corpus.file_and_line(*having[0]),
        what=f"characters that train does not have ({named}), {share:.2%} of all",
        todo="they cannot be translated",
        count=len({index for index, _ in having}),
    )


def _try_vocabulary(corpus: Corpus, vocab_size: int, report: Report) -> Tokenizer:
    """A vocabulary of a sample of the pairs; the range of sizes goes into the report."""
    report.smallest = Tokenizer.smallest(corpus.characters, vocab_size)
    sample = [text for pair in _sample(corpus.pairs) for text in pair]
    largest, _ = Tokenizer.train(sample, vocab_size=1_000_000)
    report.largest = len(largest)
    return Tokenizer.train(sample, vocab_size=vocab_size)[0]


def _sample(items: Sequence) -> Sequence:
    """All of them, or so many at even distances."""
    return items[:: max(1, -(-len(items) // SAMPLE))]


def _measure(
    corpus: Corpus,
    split: Split,
    tokenizer: Tokenizer,
    max_length: int,
    uses: Mapping[str, Sequence[Pair]],
) -> Iterator[Fault]:
    """Writes lengths into `split`. `uses`: what parts of it are for, which may not all be long."""
    if not corpus.pairs:
        return

    def pieces(text: str) -> int:
        return len(tokenizer.encode(text)) + 1

    split.source = _lengths([pair.source for pair in corpus.pairs], pieces)
    split.target = _lengths([pair.target for pair in corpus.pairs], pieces)
    unfit, unlearned = [], []
    for index, pair in enumerate(corpus.pairs):
        # A text has at most as many pieces as bytes, and one for the space before it.
        longer = [text for text in pair if _bytes(text) + 2 > max_length]
        if longer and max(map(pieces, longer)) > max_length:
            unfit.append(index)
            if max(map(_bytes, longer)) > MAX_BYTES:
                unlearned.append(index)
    split.too_long = len(unfit)
    long = {id(corpus.pairs[index]) for index in unfit}
    spoilt = [use for use, part in uses.items() if part and long.issuperset(map(id, part))]
    for kind, what, indices in (
        ("too-long", f"more than {max_length:,} pieces", unfit),
        ("long-line", f"more than {MAX_BYTES:,} bytes", unlearned),
    ):
        if not indices:
            continue
        place, example = corpus.file_and_line(indices[0]), excerpt(*corpus.pairs[indices[0]])
        fault = Fault(kind, *place, what=what, example=example, count=len(indices))
        if kind == "too-long" and spoilt:
            fault.severity = UNSAFE
            fault.what += f", and no shorter pair to {spoilt[0]}"
        elif kind == "too-long" and not uses:
            fault.todo = "translate test cuts the sources; split the sentences"
        yield fault


def _lengths(texts: Sequence[str], pieces: Callable[[str], int]) -> Lengths:
    counts = sorted(map(pieces, _sample(texts)))
    longest = max(map(pieces, heapq.nlargest(_LONGEST, texts, key=len)))
    at = len(counts) - 1
    return Lengths(counts[at // 2], counts[at * 99 // 100], max(longest, counts[-1]))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
