"""Problems that a corpus can have: each kind has a severity, a description and advice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from translate.errors import UsageError, UserError

# unsafe: training stops, or would learn from misaligned or garbled text. warning: the user should
# look at it. note: handled automatically, nothing to do.
UNSAFE, WARNING, NOTE = SEVERITIES = ("unsafe", "warning", "note")

_LISTED_LINES = 5  # a problem lists this many line numbers at most, and counts all


class Kind(NamedTuple):
    """A severity, and the default texts for what is wrong and what to do."""

    severity: str
    what: str = ""
    todo: str = ""


_FIX_LINES = "fix or remove these lines"
_MOJIBAKE = "UTF-8 that was read as Windows-1252 (a guess)"
_READ_AS_SPACE = "it is read as a space; other programs may see two lines"
_TRANSLATE_LINE = "translate the line, or remove it from both sides"

KINDS = {
    # Files
    **dict.fromkeys(("missing-file", "folder", "unreadable"), Kind(UNSAFE)),
    **dict.fromkeys(("broken-archive", "other-archive", "broken-format"), Kind(UNSAFE)),
    "huge-line": Kind(UNSAFE, todo="split the line, or remove it"),
    "other-format": Kind(UNSAFE, todo="give the right setting, or convert the file"),
    "no-column": Kind(UNSAFE, todo="name one of these columns, or give its number"),
    "utf-16": Kind(UNSAFE, todo="convert the file: iconv -f UTF-16 -t UTF-8 OLD > NEW"),
    "utf-32": Kind(UNSAFE, todo="convert the file: iconv -f UTF-32 -t UTF-8 OLD > NEW"),
    "nul-byte": Kind(UNSAFE, todo="convert it to UTF-8, or remove the line"),
    "not-utf-8": Kind(UNSAFE, todo="if it is Windows-1252: iconv -f CP1252 -t UTF-8 OLD > NEW"),
    "cr-line-ends": Kind(UNSAFE, todo="convert the file: tr '\\r' '\\n' < OLD > NEW"),
    "unequal-counts": Kind(UNSAFE, todo="line n of one must translate line n of the other"),
    "mixed-line-ends": Kind(NOTE, "some lines end in CRLF and some in LF", "both are understood"),
    "byte-order-mark": Kind(NOTE, "a byte order mark before the first word", "it is removed"),
    # Characters
    "garbled": Kind(
        UNSAFE, f"most non-ASCII text is {_MOJIBAKE}", "undo it: iconv -f UTF-8 -t CP1252 OLD > NEW"
    ),
    "mojibake": Kind(WARNING, _MOJIBAKE, _FIX_LINES),
    "replacement-character": Kind(WARNING, "U+FFFD in place of a lost character", _FIX_LINES),
    "carriage-return": Kind(WARNING, "a carriage return inside a line", _READ_AS_SPACE),
    "separator": Kind(WARNING, "a line or paragraph separator inside a line", _READ_AS_SPACE),
    "control-character": Kind(WARNING, "a control character", "remove it"),
    "tab": Kind(
        WARNING, "a tab inside a sentence", "it is read as a space; pass a table as one file"
    ),
    "control-piece": Kind(
        WARNING, "a symbol of a tokenizer", "it is read as letters; use the untokenized text"
    ),
    "markup": Kind(
        WARNING, "a tag of HTML or XML", "it is read as letters; convert the file to plain text"
    ),
    "escaped": Kind(
        WARNING,
        "an escaped character of HTML",
        "it is read as letters; write the character itself",
    ),
    # Pairs that are left out
    **dict.fromkeys(("blank-both", "blank-end", "header"), Kind(NOTE)),
    "blank-source": Kind(WARNING, todo=_TRANSLATE_LINE),
    "blank-target": Kind(WARNING, todo=_TRANSLATE_LINE),
    "few-columns": Kind(WARNING, todo="separate columns by tabs, and set which columns to read"),
    "many-columns": Kind(WARNING, todo="remove the tab from the sentence"),
    "no-field": Kind(WARNING, todo="set the names of both fields, or fix the record"),
    "no-text": Kind(WARNING, todo="fix the record"),
    "no-segment": Kind(WARNING, todo="put the text into <seg> elements (TMX 1.4)"),
    "many-variants": Kind(WARNING, todo="split the unit"),
    "no-language": Kind(WARNING, todo="if this is wrong, set languages to the codes in the file"),
    "entity": Kind(WARNING, todo="replace the entity with its text"),
    "duplicate": Kind(WARNING, todo="remove them, or set filters.drop_duplicates to false"),
    "copy": Kind(WARNING, todo="translate the line, or check that the target is the right file"),
    "length-ratio": Kind(WARNING, todo="check that the two lines belong together"),
    # Whole corpora
    "headings": Kind(WARNING, "column names instead of sentences (a guess)", "remove the row"),
    "swapped": Kind(
        WARNING, "source looks German, target English (a guess)", "swap the files or columns"
    ),
    "no-letters": Kind(
        WARNING, "numbers instead of sentences (a guess)", "set the columns of both languages"
    ),
    "overlap": Kind(WARNING, todo="remove it from one of them: it makes scores too good"),
    "unknown-characters": Kind(WARNING, todo="the model cannot translate them"),
    "too-long": Kind(WARNING, todo="fit leaves them out; split the sentences or raise max_length"),
    "long-line": Kind(WARNING, todo="the tokenizer is not trained on such lines; split them"),
    **dict.fromkeys(("no-pairs", "too-few-to-split", "vocabulary"), Kind(UNSAFE)),
}


@dataclass
class Problem:
    """One kind of problem in one file: its first line, and the number of lines that have it.

    Args:
        kind: a key of KINDS.
        line: the first line that has it, counted from 1; 0 for the whole file.
        what: what is wrong. It names the file if `line` is 0.
        todo: what to do about it.
        example: an excerpt of the text.
        count: number of lines that have it.
        lines: the first few of these lines.

    Empty `what`, `todo` and `severity` become the defaults of the kind.
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
        """FILE:LINE, or FILE if the whole file is meant."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        """Return one line: place, what, how often, an example, what to do."""
        place = f"{self.place}: " if self.line else ""
        often = f", in {self.count:,} lines" if self.count > 1 else ""
        example = f", such as {self.example}" if self.example else ""
        todo = f"; {self.todo}" if self.todo else ""
        return f"{place}{self.what}{often}{example}{todo}"


class DataError(UserError):
    """A problem that stops reading: `fit` ends with its message, `translate check` lists it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class LeftOut(Problem):
    """The pairs that were left out for one reason: their number, and the first of them."""

    def __str__(self) -> str:
        reason = self.what.removeprefix("left out: ")
        return f"left out {self.count:,} ({reason}), first at {self.place}: {self.example}"


class ProblemLog:
    """Collects the problems of a corpus, and counts the pairs that are left out.

    Problems with the same kind, file and text become one, with a count.

    Args:
        strict: raise the first unsafe problem as a DataError, as training does. Otherwise it is
            collected like the others, as `translate check` does.
    """

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self._problems: dict[tuple[str, str, str], Problem] = {}
        self.left_out: dict[str, LeftOut] = {}  # by reason

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._problems.values())

    @property
    def unsafe(self) -> bool:
        return any(problem.unsafe for problem in self)

    def add(self, *problems: Problem) -> None:
        """Add problems; a strict log raises a DataError at an unsafe one."""
        for problem in problems:
            if self.strict and problem.unsafe:
                raise DataError(problem)
            known = self._problems.setdefault((problem.kind, problem.file, problem.what), problem)
            if known is not problem:
                known.count += problem.count
                known.lines += problem.lines[: _LISTED_LINES - len(known.lines)]

    def leave_out(self, kind: str, reason: str, file: str, line: int, *texts: str) -> None:
        """Count a pair, or a record that holds no pair, as left out; the first is the example."""
        if reason in self.left_out:
            self.left_out[reason].count += 1
        else:
            what = f"left out: {reason}"
            self.left_out[reason] = LeftOut(kind, file, line, what, example=excerpt(*texts))

    @contextmanager
    def catch(self, file: str, kind: str = "unreadable") -> Iterator[None]:
        """Turn an error about `file` into a problem of this kind, unless the log is strict."""
        try:
            yield
        except UserError as error:
            if self.strict or isinstance(error, UsageError):
                raise
            problem = error.problem if isinstance(error, DataError) else None
            self.add(problem or Problem(kind, file, what=str(error)))


def excerpt(*texts: str) -> str:
    """Quote texts on one line: shortened to 50 characters each, control characters escaped."""
    return " / ".join(repr(text if len(text) <= 50 else f"{text[:49]}…") for text in texts)
