"""Rows of plain text: files that are aligned line by line, and tables (tabs or CSV)."""

from __future__ import annotations

import contextlib
import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from translate.text.formats import Rows
from translate.text.normalize import normalize
from translate.text.problems import UNSAFE, DataError, Problem, ProblemLog, excerpt
from translate.text.text_files import read_lines

Columns = tuple[int | str, int | str]
Cells = Iterator[tuple[int, list[str]]]  # of each row, with its line

# What people and export programs write above the columns of a table.
_HEADINGS = (
    "source src target tgt trg sentence translation text input output "
    "en eng english englisch de deu ger german deutsch"
)
_GUESS_ROWS = 1000  # what a table contains is guessed from its first rows
_GUESS_COLUMNS = 100


def aligned_rows(source: Path, target: Path, prefix: str, log: ProblemLog) -> Rows:
    """Yield line n of one file with line n of the other.

    Args:
        prefix: the section of the settings "source" and "target", such as "data.train.".

    Raises:
        DataError: an unreadable file, unequal line counts.
    """
    sides = []
    for path, setting in ((source, "source"), (target, "target")):
        with log.catch(str(path)):
            sides.append(read_lines(path, f"{prefix}{setting}", log))
            _check_plain_text(sides[-1], path, log)
    if len(sides) < 2:
        return
    common = min(map(len, sides))
    for path, lines in zip((source, target), sides, strict=True):
        rest = lines[common:]
        if any(map(normalize, rest)):
            what = f"{source} has {len(sides[0]):,} lines but {target} has {len(sides[1]):,}"
            log.add(Problem("unequal-counts", str(path), common + 1, what=what))
        else:  # an editor added newlines; no pair is shifted
            reason = "blank line at the end of one side"
            for number, line in enumerate(rest, common + 1):
                log.leave_out("blank-end", reason, str(path), number, line)
    yield from zip(range(1, common + 1), *sides, strict=False)


def table_rows(path: Path, columns: Columns, setting: str, log: ProblemLog) -> Rows:
    """Yield two columns of a table: a .csv file, or a file whose columns are separated by tabs.

    In a .csv file, columns are separated by commas, semicolons or tabs, and quotes may enclose a
    cell (RFC 4180). In every other file, quotes have no meaning. Rows with too few columns are left
    out, and rows with more columns than most rows: a separator inside a sentence shifts the columns
    after it.

    Args:
        columns: numbers counted from 1, or the names that the first row gives to the columns.

    Raises:
        DataError: an unreadable file, broken quotes, no columns of these names, rows that end in
            CR alone, numbers instead of sentences.
    """
    lines = read_lines(path, setting, log)
    _check_plain_text(lines, path, log)
    is_csv = ".csv" in (suffix.lower() for suffix in Path(path).suffixes[-2:])
    rows = partial(_csv_rows, lines, path) if is_csv else partial(_tab_rows, lines)
    head, header = next(((n, row) for n, row in rows() if any(map(str.strip, row))), (0, []))
    source, target = (_column(column, header, path) for column in columns)
    named = any(isinstance(column, str) for column in columns)
    needed = max(source, target) + 1
    widths = Counter(len(cells) for _, cells in rows() if any(cells))
    usual = max(needed, max(widths, key=lambda width: (widths[width], width), default=0))
    if problem := _numbers(rows(), path, (source, target)):
        log.add(problem)
    too_long = f"more columns than the usual {usual}"
    for number, cells in rows():
        fits = needed <= len(cells) <= usual
        if number == head:
            guess = is_csv and fits and look_like_headings((cells[source], cells[target]))
            if named or guess:
                row = "\t".join(cells)
                log.leave_out("header", "names of columns", str(path), number, row)
                continue
        if fits:
            yield number, cells[source], cells[target]
            continue
        text = "\t".join(cells)
        if not normalize(text):
            yield number, "", ""
        elif len(cells) < needed:
            log.leave_out("few-columns", f"fewer than {needed} columns", str(path), number, text)
        else:
            if "\r" in text and not is_csv:
                what = f"{too_long} and a CR inside the line: rows end in CR alone"
                log.add(Problem("cr-line-ends", str(path), number, what=what))
            log.leave_out("many-columns", too_long, str(path), number, text)


def _column(column: int | str, header: Sequence[str], path: Path) -> int:
    """Return the index of a column, counted from 0."""
    if isinstance(column, int):
        return column - 1
    names = [normalize(cell) for cell in header]
    if column not in names:
        what = f"no column {column!r}; the first row has {excerpt(*header)}"
        raise DataError(Problem("no-column", str(path), 1, what=what))
    return names.index(column)


def _tab_rows(lines: Sequence[str]) -> Cells:
    for number, line in enumerate(lines, 1):
        yield number, line.split("\t")


def _csv_rows(lines: Sequence[str], path: Path) -> Cells:
    """Split lines at the separator with which most of the first rows have equally many cells."""

    def alike(separator: str) -> tuple[int, int]:
        unquoted = (re.sub('"[^"]*"?', "", line) for line in lines[:_GUESS_ROWS])
        counts = Counter(line.count(separator) for line in unquoted)
        counts.pop(0, None)
        return max(((rows, width) for width, rows in counts.items()), default=(0, 0))

    separator = max(",;\t", key=alike)
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    start = 1
    try:
        for cells in reader:
            yield start, cells
            start = reader.line_num + 1  # a cell in quotes may have several lines
    except csv.Error as error:
        what = f"not well-formed CSV: {error}"
        raise DataError(Problem("broken-format", str(path), start, what=what)) from None


def _numbers(rows: Cells, path: Path, chosen: tuple[int, int]) -> Problem | None:
    """Return the problem that a chosen column has numbers instead of sentences, if it does."""
    sample = [cells for _, cells in islice(rows, _GUESS_ROWS) if any(map(str.strip, cells))]
    width = min(max(map(len, sample), default=0), _GUESS_COLUMNS)
    columns = [[cells[index] for cells in sample if index < len(cells)] for index in range(width)]
    texts = [index for index in range(width) if not mostly_without_letters(columns[index])]
    wrong = [index for index in chosen if index < width and index not in texts]
    if not wrong:
        return None
    todo = ""
    if len(texts) >= 2:
        todo = f"set columns to {texts[0] + 1} and {texts[1] + 1}, which have sentences"
    what = f"column {wrong[0] + 1} has numbers instead of sentences"
    example = excerpt(*columns[wrong[0]][:2])
    return Problem("no-letters", str(path), 1, what, todo, example, severity=UNSAFE)


def look_like_headings(pair: Iterable[str]) -> bool:
    """Return whether both texts are column names of a table, not sentences."""
    return all(text.strip().casefold() in _HEADINGS.split() for text in pair)


def mostly_without_letters(texts: Sequence[str]) -> bool:
    """Return whether more than half of the texts have no letter, like Tatoeba's sentence ids."""
    return 2 * sum(any(map(str.isalpha, text)) for text in texts) < len(texts)


def _check_plain_text(lines: Sequence[str], path: Path, log: ProblemLog) -> None:
    """Report a file of another format that would be read as sentences."""
    number, line = next(((n, line) for n, line in enumerate(lines, 1) if line.strip()), (0, ""))
    line = line.strip()
    found = ""
    if re.match(r"<\?xml\b|<!DOCTYPE\b|<(tmx|html|xliff)\b", line, re.IGNORECASE):
        found = "XML or HTML, not lines of text; a translation memory belongs to tmx"
    elif line.startswith("{") and line.endswith("}"):
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(line)
            found = "JSON, not lines of text; a file with one object per line belongs to jsonl"
    elif line.startswith("%YAML") or line == "---":
        found = "YAML, not lines of text"
    if found:
        what = f"the file seems to contain {found}"
        log.add(Problem("other-format", str(path), number, what=what, example=excerpt(line)))
