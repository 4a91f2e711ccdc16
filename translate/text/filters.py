"""Filters: which sentence pairs are left out of training."""

from __future__ import annotations

from dataclasses import dataclass

from translate.text.normalize import normalize

_SHORT = 10  # shorter sides count as 10 characters: "Why?" may become "Warum denn nicht?"


@dataclass(frozen=True)
class Filters:
    """Which training pairs are left out; null switches a filter off.

    Pairs that are blank on one side, or too long for the model, are always left out.

    Args:
        length_ratio: how many times longer (in characters) one side may be than the other, which
            counts as at least 10 characters. The default is high, because German words are long
            and some translations are free: with 4, Multi30k loses only its two lines of "@@", and
            50,000 pairs of Tatoeba lose two very free translations.
        copied_words: the maximum number of words in a target that equals its source, ignoring
            case. Longer copies were not translated; names, numbers and "Okay." may be the same.
        drop_duplicates: leave out a pair whose source and target equal those of an earlier pair.
            Other translations of the same source stay.
    """

    length_ratio: float | None = 4.0
    copied_words: int | None = 3
    drop_duplicates: bool = True

    def errors(self) -> list[str]:
        """Return one message for each invalid setting."""
        errors = []
        if self.length_ratio is not None and not self.length_ratio >= 1:  # NaN is an error too
            errors.append(f"filters.length_ratio must be 1 or more, not {self.length_ratio}")
        if self.copied_words is not None and self.copied_words < 0:
            errors.append(f"filters.copied_words must be 0 or more, not {self.copied_words}")
        return errors


class PairFilter:
    """Decides which pairs to leave out; it remembers the pairs that it has seen.

    Without `filters`, only blank pairs are left out. Pairs are compared after `normalize`.
    """

    def __init__(self, filters: Filters | None = None) -> None:
        self._filters = filters
        self._seen: set[tuple[str, str]] = set()

    def reason(self, pair: tuple[str, str]) -> tuple[str, str] | None:
        """Return (kind of problem, reason) if the pair (source, target) is left out, or None."""
        source, target = normalize(pair[0]), normalize(pair[1])
        if not source and not target:
            return "blank-both", "blank on both sides"
        if not source or not target:
            side = "target" if source else "source"
            return f"blank-{side}", f"blank {side}"
        if self._filters is None:
            return None
        most, ratio = self._filters.copied_words, self._filters.length_ratio
        if most is not None and source.casefold() == target.casefold():
            words = sum(any(map(str.isalpha, word)) for word in source.split())
            if words > most:
                return "copy", f"a copy of the source, more than {most} words"
        if ratio is not None:
            shorter, longer = sorted((len(source), len(target)))
            if longer > ratio * max(shorter, _SHORT):
                return "length-ratio", f"one side more than {ratio:g} times as long"
        if self._filters.drop_duplicates:
            # Most text is normalised already, and storing `pair` itself takes no extra RAM.
            key = pair if (source, target) == pair else (source, target)
            if key in self._seen:
                return "duplicate", "exact duplicates"
            self._seen.add(key)
        return None
