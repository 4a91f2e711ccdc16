"""What can be wrong with text to train on: each kind has a name, a weight and an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from translate.errors import UsageError, UserError

# Unsafe: training stops, or would learn from misaligned or garbled text. A warning is for a person
# to look at. A note is taken care of and changes nothing.
UNSAFE, WARNING, NOTE = SEVERITIES = ("unsafe", "warning", "note")

_LISTED = 5  # lines that a fault names; the others are counted


class Kind(NamedTuple):
    """`what` and `todo` serve every fault of the kind that does not say it better itself."""

    severity: str
    what: str = ""
    todo: str = ""


KINDS = {
    # Files
    "missing-file": Kind(UNSAFE),
    "folder": Kind(UNSAFE),
    "unreadable": Kind(UNSAFE),
    "broken-archive": Kind(UNSAFE),
    "other-archive": Kind(UNSAFE),
    "broken-format": Kind(UNSAFE),
    "utf-16": Kind(UNSAFE, todo="convert the file: iconv -f UTF-16 -t UTF-8 OLD > NEW"),
    "utf-32": Kind(UNSAFE, todo="convert the file: iconv -f UTF-32 -t UTF-8 OLD > NEW"),
    "nul-byte": Kind(
        UNSAFE,
        "a NUL byte, so this is UTF-16 or no text file",
        "convert it to UTF-8 or take the line out",
    ),
    "not-utf-8": Kind(
        UNSAFE,
        "not UTF-8",
        "if the file is Windows-1252, convert it: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW",
    ),
    "cr-line-ends": Kind(
        UNSAFE,
        "the lines end in CR alone, so all of them would be one",
        "convert the file: tr '\\r' '\\n' < OLD > NEW",
    ),
    "unequal-counts": Kind(UNSAFE, todo="line n of one must translate line n of the other"),
    "no-pairs": Kind(UNSAFE),
    "garbled": Kind(
        UNSAFE,
        "most text beyond ASCII is UTF-8 that was read as Windows-1252 (a guess)",
        "undo it: iconv -f UTF-8 -t WINDOWS-1252 OLD > NEW",
    ),
    "mixed-line-ends": Kind(NOTE, "line ends of two kinds, CRLF and LF", "both are read alike"),
    "byte-order-mark": Kind(NOTE, "a byte order mark before the first word", "it is taken off"),
    # Sentences
    "mojibake": Kind(
        WARNING,
        "UTF-8 that was read as Windows-1252 (a guess)",
        "mend these lines or take them out",
    ),
    "replacement-character": Kind(
        WARNING, "U+FFFD, which stands for a lost character", "mend these lines or take them out"
    ),
    "carriage-return": Kind(
        WARNING,
        "a carriage return inside a line",
        "it is read as a space; other programs may see two lines",
    ),
    "separator": Kind(
        WARNING,
        "a line or paragraph separator inside a line",
        "it is read as a space; other programs may see two lines",
    ),
    "control-character": Kind(WARNING, "a control character", "take it out"),
    "tab": Kind(
        WARNING,
        "a tab inside a sentence",
        "it is read as a space; a table of both languages is given alone",
    ),
    "control-piece": Kind(
        WARNING,
        "a tokenizer's own sign, spelled out",
        "it is learned as plain letters; give the text as it was before that tokenizer",
    ),
    # Pairs that are left out
    "blank-both": Kind(NOTE),
    "blank-end": Kind(NOTE),
    "blank-source": Kind(WARNING, todo="translate the line, or take it out of both sides"),
    "blank-target": Kind(WARNING, todo="translate the line, or take it out of both sides"),
    "few-columns": Kind(
        WARNING, todo="columns end in tabs: name those of the two languages, or mend the row"
    ),
    "many-columns": Kind(WARNING, todo="take the tab out of the sentence"),
    "no-field": Kind(WARNING, todo="name the fields of the two languages, or mend the record"),
    "no-text": Kind(WARNING, todo="mend the record"),
    "no-language": Kind(WARNING, todo="name the languages as the file does, if that is not meant"),
    "entity": Kind(WARNING, todo="write the text in place of the entity"),
    "duplicate": Kind(WARNING, todo="take them out, or set filters.drop_duplicates to false"),
    "copy": Kind(WARNING, todo="translate the line, or see whether the target is the right file"),
    "length-ratio": Kind(WARNING, todo="see whether the two lines belong together"),
    # Pairs
    "headings": Kind(
        WARNING,
        "names of columns in place of sentences (a guess)",
        "take the row out, or it is learned as a translation",
    ),
    "swapped": Kind(
        WARNING,
        "the source looks German and the target English (a guess)",
        "swap the two files, or the two columns",
    ),
    "no-letters": Kind(
        WARNING,
        "most of it has no letter: numbers in place of sentences (a guess)",
        "name the columns, or fields, of the two languages",
    ),
    "overlap": Kind(WARNING),
    "unknown-characters": Kind(WARNING),
    "too-long": Kind(WARNING, todo="fit leaves them out; split the sentences or raise max_length"),
    "long-line": Kind(WARNING, todo="no tokenizer is trained on such lines; split them"),
    "too-few-to-split": Kind(UNSAFE),
    "vocabulary": Kind(UNSAFE),
}


@dataclass
class Fault:
    """One kind of fault in one file: the first place, and how many lines have it.

    `line` counts from 1; 0 means the whole file. `lines` are the first few.
    """

    kind: str
    file: str
    line: int = 0
    what: str = ""
    todo: str = ""
    example: str = ""
    count: int = 1
    severity: str = ""
    lines: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        kind = KINDS[self.kind]
        self.severity = self.severity or kind.severity
        self.what = self.what or kind.what
        self.todo = self.todo or kind.todo
        if self.line and not self.lines:
            self.lines = [self.line]

    @property
    def unsafe(self) -> bool:
        return self.severity == UNSAFE

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        """One line: place, what, how often, an example, what to do.

        Where the whole file is meant, `what` names it.
        """
        place = f"{self.place}: " if self.line else ""
        often = f", in {self.count:,} lines" if self.count > 1 else ""
        example = f", such as {self.example}" if self.example else ""
        todo = f"; {self.todo}" if self.todo else ""
        return f"{place}{self.what}{often}{example}{todo}"


class DataError(UserError):
    """Text that cannot be trained on: the error that `fit` ends with, the fault `check` lists."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Findings:
    """Faults as they are found, a kind in a file once however often it comes.

    `strict` is for training: the first unsafe fault is raised. Without it all are collected.
    """

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self._faults: dict[tuple[str, str, str], Fault] = {}

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults.values())

    @contextmanager
    def collect(self, file: str, kind: str = "unreadable") -> Iterator[None]:
        """What ends the reading of `file` is one fault more, unless the findings are strict."""
        try:
            yield
        except UsageError:
            raise
        except UserError as error:
            if self.strict:
                raise
            fault = getattr(error, "fault", None) or Fault(kind, file, what=str(error))
            self.add(fault)

    def add(self, fault: Fault) -> None:
        """Raises DataError if it is unsafe and the findings are strict."""
        if self.strict and fault.unsafe:
            raise DataError(fault)
        known = self._faults.setdefault((fault.kind, fault.file, fault.what), fault)
        if known is not fault:
            known.count += fault.count
            known.lines += fault.lines[: _LISTED - len(known.lines)]

    def unsafe(self) -> int:
        """How many faults are unsafe."""
        return sum(fault.unsafe for fault in self)

    def worst_first(self) -> list[Fault]:
        """By severity, then in the order found."""
        return sorted(self, key=lambda fault: SEVERITIES.index(fault.severity))
