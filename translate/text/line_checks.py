"""Check each line of a corpus for characters that show damage: mojibake, control characters."""

from __future__ import annotations

import re

from translate.text.problems import Problem, ProblemLog, excerpt

# The second and later bytes of UTF-8 characters, read as Windows-1252.
_TRAIL = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_PATTERNS = {
    "mojibake": re.compile(f"[ÂÃ][{_TRAIL}]|â[€‚„][{_TRAIL}]|ï»¿"),
    "replacement-character": re.compile("\ufffd"),
    "carriage-return": re.compile("\r"),
    "separator": re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]"),
    "control-character": re.compile("[\x01-\x08\x0e-\x1b\x1f\x7f\x80-\x84\x86-\x9f]"),
    "tab": re.compile("\t"),
    "control-piece": re.compile(r"</?s>|<pad>|<unk>|▁|@-@|@,@|@\.@|@@( |$)"),
    "markup": re.compile(r"<(?!/?s>|pad>|unk>)/?[A-Za-z][\w:-]*(\s[^<>]*)?/?>|<!--|<!\[CDATA\["),
    "escaped": re.compile(r"&([A-Za-z]{2,8}|#\d{1,6}|#[xX][\dA-Fa-f]{1,6});"),
}
# Every match contains one of these characters. Most sentences have none: one search is enough.
_ANY = re.compile("[\x01-\x09\x0b-\x1f\x7f-\x9fÂÃâï<&@▁\u2028\u2029\ufffd]")


class LineChecker:
    """Checks the lines of one file."""

    def __init__(self, file: str, log: ProblemLog) -> None:
        self._file = file
        self._log = log
        self._lines = 0
        self._lines_beyond_ascii = 0
        self._mojibake: list[int] = []  # line numbers

    def check(self, line: int, *texts: str) -> None:
        """Check the sentences of a line (source, target or both); lines count from 1."""
        self._lines += 1
        self._lines_beyond_ascii += not all(map(str.isascii, texts))
        if not any(map(_ANY.search, texts)):
            return
        for kind, pattern in _PATTERNS.items():
            if found := next(filter(None, map(pattern.search, texts)), None):
                around = found.string[max(0, found.start() - 20) :]
                self._log.add(Problem(kind, self._file, line, example=excerpt(around)))
                if kind == "mojibake":
                    self._mojibake.append(line)
                    return

    def finish(self) -> None:
        """Add an unsafe problem if the whole file is garbled.

        This means: at least a tenth of all lines, and most lines that are not ASCII, are garbled.
        A few garbled lines in a good file are only a warning.
        """
        count = len(self._mojibake)
        if count and 10 * count >= self._lines and 2 * count > self._lines_beyond_ascii:
            self._log.add(Problem("garbled", self._file, self._mojibake[0], count=count))
