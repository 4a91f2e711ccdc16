"""Line-aligned files and tables to rows: (line, source, target), lines counted from 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from translate.text.faults import Fault
from translate.text.filters import Reason, Tally
from translate.text.lines import read_lines
from translate.text.normalize import normalize

Row = tuple[int, str, str]


def aligned_rows(source: Path, target: Path, prefix: str, left_out: Tally) -> Iterator[Row]:
    """Line n of one file with line n of the other.

    Raises:
        UserError: an unreadable file, unequal line counts.
    """
    names = (source, target)
    sides = []
    for name, setting in zip(names, ("source", "target"), strict=True):
        with left_out.findings.collect(str(name)):
            sides.append(read_lines(name, f"{prefix}{setting}", left_out.findings))
    if len(sides) < 2:
        return
    shorter = min(map(len, sides))
    for name, lines in zip(names, sides, strict=True):
        if any(normalize(line) for line in lines[shorter:]):
            what = f"{names[0]} has {len(sides[0]):,} lines but {names[1]} has {len(sides[1]):,}"
            left_out.findings.add(Fault("unequal-counts", str(name), shorter + 1, what=what))
            break
        # Blank lines after the end of the other side cannot shift a pair: an editor's
        # additional newline, not a lost sentence.
        reason = Reason("blank-end", "blank line at the end of one side")
        for number in range(shorter, len(lines)):
            left_out.add(reason, str(name), number + 1, lines[number])
    rows = zip(*sides, strict=False)  # the longer side has only blank lines more
    for number, (first, second) in enumerate(rows, 1):
        yield number, first, second


def table_rows(path: Path, columns: tuple[int, int], prefix: str, left_out: Tally) -> Iterator[Row]:
    """Two columns, counted from 1, of a file whose columns are separated by tabs.

    A row that is too short or longer than most is left out; quotes mean nothing.

    Raises:
        UserError: an unreadable file, several rows in one.
    """
    lines = read_lines(path, f"{prefix}tsv", left_out.findings)
    needed = max(columns)
    widths = Counter(line.count("\t") + 1 for line in lines if line.strip("\t"))
    usual = max(widths, key=lambda width: (widths[width], width), default=0)
    usual = max(usual, needed)
    too_short = Reason("few-columns", f"fewer than {needed} columns")
    # A tab inside a sentence moves everything after it one column on: half a sentence would
    # become the translation of the other half.
    too_long = Reason("many-columns", f"more columns than the usual {usual}")
    source, target = (column - 1 for column in columns)
    for number, line in enumerate(lines, 1):
        cells = line.split("\t")
        if needed <= len(cells) <= usual:
            yield number, cells[source], cells[target]
        elif not normalize(line):
            yield number, "", ""
        else:
            if len(cells) > usual and "\r" in line:
                what = f"more columns than the usual {usual}, and a CR inside: rows end in CR alone"
                left_out.findings.add(Fault("cr-line-ends", str(path), number, what=what))
            reason = too_short if len(cells) < needed else too_long
            left_out.add(reason, str(path), number, line)
