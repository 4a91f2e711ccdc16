"""What single sentences show to be wrong with a file, and which language they seem to be in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from translate.text.faults import Fault, Findings
from translate.text.filters import excerpt

# The characters that UTF-8's second and later bytes become when they are read as Windows-1252.
_TRAIL = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_SIGNS = {
    "mojibake": re.compile(f"[ÂÃ][{_TRAIL}]|â[€‚„][{_TRAIL}]|ï»¿"),
    "replacement-character": re.compile("\ufffd"),
    "carriage-return": re.compile("\r"),
    "separator": re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]"),
    "control-character": re.compile("[\x01-\x08\x0e-\x1b\x1f\x7f\x80-\x84\x86-\x9f]"),
    "tab": re.compile("\t"),
    "control-piece": re.compile("</?s>|<pad>|<unk>|▁"),
}
# One search over a sentence without any of them is all that most sentences cost.
_ANY = re.compile("[\x01-\x09\x0b-\x1f\x7f-\x9fÂÃâï<▁\u2028\u2029\ufffd]")

# Frequent words of one language that are no words of the other ("in", "die", "was", "so" are both).
_ENGLISH = frozenset(
    ("the", "of", "and", "to", "is", "are", "with", "you", "he", "she", "it", "that", "this", "my")
)
_GERMAN = frozenset(
    ("der", "das", "und", "ist", "ein", "eine", "einen", "nicht", "mit", "ich", "sie", "er", "wir")
)
# What people and export programs write above the columns of a table.
_HEADINGS = frozenset(
    ("source", "src", "target", "tgt", "trg", "sentence", "translation", "text", "input", "output",
     "en", "eng", "english", "englisch", "de", "deu", "ger", "german", "deutsch")
)  # fmt: skip
_DIFFERENT = 4  # so many stop words are needed for a guess


class SentenceWatch:
    """Looks at every sentence of one file and reports to `findings`."""

    def __init__(self, file: str, findings: Findings) -> None:
        self._file = file
        self._findings = findings
        self._looked = 0
        self._beyond_ascii = 0
        self._garbled: list[int] = []

    def look(self, line: int, *texts: str) -> None:
        """`line` counts from 1; `texts` are what it holds of one side, or of both."""
        self._looked += 1
        self._beyond_ascii += not all(map(str.isascii, texts))
        texts = tuple(filter(_ANY.search, texts))
        for kind, sign in _SIGNS.items() if texts else ():
            if found := next(filter(None, map(sign.search, texts)), None):
                around = found.string[max(0, found.start() - 20) :]
                self._findings.add(Fault(kind, self._file, line, example=excerpt(around)))
                if kind == "mojibake":
                    self._garbled.append(line)
                    return

    def finish(self) -> None:
        """Says whether the file is garbled as a whole, which strict findings raise.

        A few garbled lines in a good file are for a warning: a tenth of the lines it must be, and
        most of those that are not plain ASCII.
        """
        garbled = len(self._garbled)
        if garbled and 10 * garbled >= self._looked and 2 * garbled > self._beyond_ascii:
            self._findings.add(Fault("garbled", self._file, self._garbled[0], count=garbled))


def look_swapped(sources: Iterable[str], targets: Iterable[str]) -> bool:
    """Whether the sources seem to be German and the targets English, by their stop words."""
    return _clearly(_GERMAN, _ENGLISH, sources) and _clearly(_ENGLISH, _GERMAN, targets)


def look_wordless(texts: Sequence[str]) -> bool:
    """Whether more than half of the texts have no letter, as the numbers of Tatoeba's sentences."""
    return 2 * sum(any(map(str.isalpha, text)) for text in texts) < len(texts)


def look_like_headings(pair: Iterable[str]) -> bool:
    """Whether the pair is not sentences, but the names of a table's columns."""
    return all(text.strip().casefold() in _HEADINGS for text in pair)


def _clearly(language: frozenset[str], other: frozenset[str], texts: Iterable[str]) -> bool:
    words = Counter(word for text in texts for word in text.lower().split())
    # Different ones, for "das" alone may be Portuguese.
    found = [words[word] for word in language if word in words]
    strange = sum(words[word] for word in other)
    return len(found) >= _DIFFERENT and sum(found) >= 4 * strange
