"""Aligned text of every format to pairs: two line-aligned files, or one tab-separated file."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from translate.errors import UsageError, UserError
from translate.text.lines import read_lines
from translate.text.normalize import fold, normalize


class Pair(NamedTuple):
    """A source sentence and its translation, as they stand in the file."""

    source: str
    target: str


@dataclass(frozen=True)
class Corpus:
    """Pairs in file order, and one line a reason for what was left out."""

    pairs: list[Pair]
    notes: list[str]


@dataclass
class ParallelFiles:
    """Where parallel text lies: `source` and `target` line by line, or one `tsv`.

    Args:
        source: file with one source sentence a line, plain or gzip, UTF-8.
        target: file with its translations, line for line.
        tsv: instead of both, a file with a pair a line, separated by tabs; quotes mean nothing.
        columns: which columns of `tsv` hold source and target, counted from 1.

    In a YAML file a relative path is meant from that file, elsewhere from the working directory.
    """

    source: Path | None = None
    target: Path | None = None
    tsv: Path | None = None
    columns: tuple[int, int] = (1, 2)

    def read(self, setting: str = "") -> Corpus:
        """Read the pairs. `setting` is the section's name ("data.train"), for messages only.

        A pair that is blank on either side is left out and counted; so is a row with too few or
        too many columns. "Blank" is what `normalize` leaves nothing of.

        Raises:
            UserError: contradicting settings, an unreadable file, unequal line counts, no pairs.
        """
        self.check(setting)
        prefix = f"{setting}." if setting else ""
        left_out = _LeftOut()
        if self.tsv is not None:
            name = str(self.tsv)
            rows = self._table_rows(read_lines(self.tsv, f"{prefix}tsv"), left_out)
            places = (name, name)
        else:
            name = f"{self.source} and {self.target}"
            rows = self._aligned_rows(prefix, left_out)
            places = (str(self.source), str(self.target))
        pairs = []
        for number, pair in rows:
            blank = [not normalize(side) for side in pair]
            if all(blank):
                left_out.add("blank on both sides", places[0], number)
            elif any(blank):
                side = blank.index(True)
                left_out.add(f"blank {('source', 'target')[side]}", places[side], number)
            else:
                pairs.append(pair)
        notes = left_out.notes(name)
        if not pairs:
            reason = "; ".join(notes) or f"{name}: no lines"
            raise UserError(f"no sentence pairs in {setting or 'the data'}: {reason}")
        return Corpus(pairs, notes)

    def check(self, setting: str = "") -> None:
        """Refuse settings that contradict each other, before any file is opened.

        Raises:
            UsageError: with what to set.
        """
        prefix = f"{setting}." if setting else ""
        aligned = [name for name in ("source", "target") if getattr(self, name) is not None]
        if self.tsv is not None and aligned:
            raise UsageError(
                f"{prefix}tsv and {prefix}{aligned[0]} are both set: give either one tsv file "
                "or a source and a target file"
            )
        if self.tsv is None and len(aligned) < 2:
            missing = "source" if "source" not in aligned else "target"
            hint = "" if aligned else f", or {prefix}tsv for one file with both"
            raise UsageError(f"{prefix}{missing} is not set: give the path of its text file{hint}")
        if self.tsv is None and self.source == self.target:
            raise UsageError(f"{prefix}source and {prefix}target are the same file: {self.source}")
        first, second = self.columns
        if first < 1 or second < 1 or first == second:
            raise UsageError(
                f"{prefix}columns is {list(self.columns)}: give two different column numbers, "
                "counted from 1"
            )

    def _aligned_rows(self, prefix: str, left_out: _LeftOut) -> list[tuple[int, Pair]]:
        names = (self.source, self.target)
        sides = [
            read_lines(self.source, f"{prefix}source"),
            read_lines(self.target, f"{prefix}target"),
        ]
        shorter = min(map(len, sides))
        for name, lines in zip(names, sides, strict=True):
            if any(normalize(line) for line in lines[shorter:]):
                raise UserError(
                    f"{names[0]} has {len(sides[0]):,} lines but {names[1]} has "
                    f"{len(sides[1]):,}: line n of one must translate line n of the other"
                )
            # Blank lines after the end of the other side cannot shift a pair: an editor's
            # additional newline, not a lost sentence.
            for number in range(shorter + 1, len(lines) + 1):
                left_out.add("blank line at the end of one side", str(name), number)
        rows = zip(*sides, strict=False)  # the longer side has only blank lines more
        return [(number, Pair(*row)) for number, row in enumerate(rows, 1)]

    def _table_rows(self, lines: list[str], left_out: _LeftOut) -> list[tuple[int, Pair]]:
        table = [line.split("\t") for line in lines]
        widths = Counter(len(cells) for cells in table if any(cells))
        first, second = self.columns
        usual = max(widths, key=lambda width: (widths[width], width), default=0)
        usual = max(usual, first, second)
        rows = []
        for number, cells in enumerate(table, 1):
            if not any(normalize(cell) for cell in cells):
                left_out.add("blank on both sides", str(self.tsv), number)
            elif len(cells) < max(first, second):
                left_out.add(f"fewer than {max(first, second)} columns", str(self.tsv), number)
            elif len(cells) > usual:
                # A tab inside a sentence moves everything after it one column on: half a
                # sentence would become the translation of the other half.
                left_out.add(f"more columns than the usual {usual}", str(self.tsv), number)
            else:
                rows.append((number, Pair(cells[first - 1], cells[second - 1])))
        return rows


class _LeftOut:
    """Counts what is left out by reason, and remembers where each reason came up first."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def add(self, reason: str, path: str, number: int) -> None:
        self._counts[reason] += 1
        self._first.setdefault(reason, f"{path}:{number}")

    def notes(self, name: str) -> list[str]:
        return [
            f"{name}: left out {count:,} ({reason}), first at {self._first[reason]}"
            for reason, count in self._counts.items()
        ]


def shuffled(count: int, seed: str) -> list[int]:
    """0 .. count-1 in an order that `seed` alone decides.

    `random.shuffle` may change between Python versions; `random()` from a text seed may not
    (Python documentation, "Notes on Reproducibility"), so the order is a sort by random keys.
    """
    draw = random.Random(seed).random
    keys = [draw() for _ in range(count)]
    return sorted(range(count), key=keys.__getitem__)


def split_by_source(
    pairs: Sequence[Pair], *, held_out: int, seed: int
) -> tuple[list[Pair], list[Pair]]:
    """Split into (train, held out), both in corpus order, so that no source stands in both.

    Pairs whose sources `fold` to the same text go to one side together. A source is never held
    out if one of its pairs is blank or copied (source equals target). The held-out side has
    `held_out` pairs, or a few more where the sources' groups do not add up to exactly that.

    Raises:
        UserError: so many cannot be held out with something left to train on.
    """
    if held_out < 0:
        raise ValueError(f"held_out is {held_out}, expected 0 or more")
    groups: dict[str, list[int]] = {}
    unfit = set()
    for index, pair in enumerate(pairs):
        source, target = fold(pair.source), fold(pair.target)
        groups.setdefault(source, []).append(index)
        if not source or not target or source == target:
            unfit.add(source)
    fit = [source for source in groups if source not in unfit]
    chosen: set[int] = set()
    too_big = []
    for position in shuffled(len(fit), f"split {seed}"):
        group = groups[fit[position]]
        if len(group) <= held_out - len(chosen):
            chosen.update(group)
        else:
            too_big.append(group)
    if len(chosen) < held_out and too_big:
        chosen.update(min(too_big, key=len))
    if len(chosen) < held_out or (held_out and len(chosen) == len(pairs)):
        raise UserError(
            f"cannot hold out {held_out:,} of {len(pairs):,} pairs: {len(fit):,} different "
            f"{'sentence' if len(fit) == 1 else 'sentences'} could be held out and one must stay "
            f"to train on; {'hold out fewer, or ' if held_out > 1 else ''}set data.valid to "
            "validation files of their own"
        )
    train = [pair for index, pair in enumerate(pairs) if index not in chosen]
    return train, [pairs[index] for index in sorted(chosen)]
