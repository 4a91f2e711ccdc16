"""Which pairs are left out, and the account of them: how many, why, and where first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from translate.text.normalize import normalize

# A shorter side counts as this many characters: "Why?" may well become "Warum denn nicht?".
_SHORT = 10


@dataclass(frozen=True)
class Filters:
    """Which training pairs are left out; null switches a filter off.

    A pair that is blank on a side is always left out, and so is one that is too long for the model.

    Args:
        length_ratio: the longer side may have so many times the characters of the shorter one,
            which counts as at least 10. Generous, because long German words and free translations
            are no faults: at 4, Multi30k loses its two lines of "@@", and 50,000 pairs of Tatoeba
            lose two very free translations.
        copied_words: a target that repeats its source may have so many words with letters, case
            aside; what is longer was not translated. Names, numbers and "Okay." may be the same.
        drop_duplicates: leave out a pair that stood before with the same source and the same
            target. Other translations of a source stay.
    """

    length_ratio: float | None = 4.0
    copied_words: int | None = 3
    drop_duplicates: bool = True

    def faults(self) -> list[str]:
        """What is wrong with the settings, one entry a fault."""
        faults = []
        if self.length_ratio is not None and not self.length_ratio >= 1:
            faults.append(f"filters.length_ratio must be 1 or more, not {self.length_ratio}")
        if self.copied_words is not None and self.copied_words < 0:
            faults.append(f"filters.copied_words must be 0 or more, not {self.copied_words}")
        return faults


class Reason(NamedTuple):
    """Why a pair is left out: `kind` for programs, `text` for people."""

    kind: str
    text: str


@dataclass
class LeftOut:
    """All that was left out for one reason, and the first of it.

    `line` is counted from 1: a line of the file, or a row of a table that has no lines. `example`
    is its text, shortened.
    """

    kind: str
    reason: str
    count: int
    file: str
    line: int
    example: str

    def __str__(self) -> str:
        first = f"first at {self.file}:{self.line}: {self.example}"
        return f"left out {self.count:,} ({self.reason}), {first}"


class Tally:
    """Counts what is left out by reason, in the order in which the reasons came up."""

    def __init__(self) -> None:
        self._entries: dict[Reason, LeftOut] = {}

    def add(self, reason: Reason, file: str, line: int, *texts: str) -> None:
        entry = self._entries.get(reason)
        if entry is None:
            entry = LeftOut(*reason, 0, file, line, excerpt(*texts))
            self._entries[reason] = entry
        entry.count += 1

    def entries(self) -> list[LeftOut]:
        return list(self._entries.values())


def excerpt(*texts: str) -> str:
    """Texts on one line: quoted, shortened to 50 characters each, control characters spelled."""
    return " / ".join(repr(text if len(text) <= 50 else f"{text[:49]}…") for text in texts)


class PairFilter:
    """Judges pairs one after the other; without `filters` only blank ones are at fault."""

    def __init__(self, filters: Filters | None = None) -> None:
        self._filters = filters
        self._seen: set[tuple[str, str]] = set()

    def fault(self, pair: tuple[str, str]) -> Reason | None:
        """Why to leave out (source, target), or None. Only the normalised text counts."""
        source, target = normalize(pair[0]), normalize(pair[1])
        if not source or not target:
            if not source and not target:
                return Reason("blank-both", "blank on both sides")
            side = "target" if source else "source"
            return Reason(f"blank-{side}", f"blank {side}")
        if self._filters is None:
            return None
        most, ratio = self._filters.copied_words, self._filters.length_ratio
        if most is not None and source.casefold() == target.casefold():
            words = sum(any(map(str.isalpha, word)) for word in source.split())
            if words > most:
                return Reason("copy", f"a copy of the source, more than {most} words")
        if ratio is not None:
            shorter, longer = sorted((len(source), len(target)))
            if longer > ratio * max(shorter, _SHORT):
                return Reason("length-ratio", f"one side more than {ratio:g} times as long")
        if self._filters.drop_duplicates:
            # Most text is normalised as it stands, and `pair` itself takes no memory.
            same = (source, target) == pair
            key = pair if same else (source, target)
            if key in self._seen:
                return Reason("duplicate", "exact duplicates")
            self._seen.add(key)
        return None
