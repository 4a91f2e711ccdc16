"""Checks that need whole corpora: swapped languages, headings, overlap, unknown characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from translate.text.corpus import Corpus, characters
from translate.text.normalize import fold, normalize
from translate.text.problems import Problem
from translate.text.tables import look_like_headings, mostly_without_letters

_GUESS_PAIRS = 10_000  # languages are guessed from this many pairs
_STOP_WORDS = 4  # a guess needs this many different stop words
_LISTED_CHARACTERS = 10

# Frequent words that only one language has ("in", "die", "was" and "so" are words of both).
_ENGLISH = "the of and to is are with you he she it that this my"
_GERMAN = "der das und ist ein eine einen nicht mit ich sie er wir"


def check_corpora(corpora: Mapping[str, Corpus]) -> Iterator[Problem]:
    """Yield the problems of whole corpora.

    These are swapped languages, numbers or column names instead of sentences, source sentences that
    two corpora share, and characters that "train" does not have.

    Args:
        corpora: by name, "train" first.
    """
    for corpus in corpora.values():
        sides = list(zip(*corpus.pairs[:_GUESS_PAIRS], strict=True))
        known = {problem.kind for problem in corpus.problems}
        for side, texts in enumerate(sides):
            if "no-letters" not in known and mostly_without_letters(texts):
                yield corpus.problem("no-letters", [0], side)
        if sides and look_swapped(*sides):
            yield corpus.problem("swapped", [0])
        # The first pair of each source. A source without pairs has the same start as the next.
        for start in dict.fromkeys(start for start, _ in corpus.starts):
            if start < len(corpus.pairs) and look_like_headings(corpus.pairs[start]):
                yield corpus.problem("headings", [start])
    for (name, first), (_, second) in combinations(corpora.items(), 2):
        if indices := _overlap(first, second):
            what = f"a source sentence that is also in {name}, ignoring case and spaces"
            yield second.problem("overlap", indices, what=what)
    train, *others = corpora.values()
    known = characters(train.pairs) if others else set()
    for corpus in others:
        _, problem = unknown_characters(corpus, known)
        if problem is not None:
            yield problem


def look_swapped(sources: Iterable[str], targets: Iterable[str]) -> bool:
    """Return whether the sources seem German and the targets English, by their stop words."""
    return _looks_like(_GERMAN, _ENGLISH, sources) and _looks_like(_ENGLISH, _GERMAN, targets)


def _looks_like(language: str, other: str, texts: Iterable[str]) -> bool:
    """Return whether the texts have many stop words of a language and few of the other."""
    words = Counter(word for text in texts for word in text.lower().split())
    # Several different words are needed, because "das" alone may be Portuguese.
    found = [words[word] for word in language.split() if word in words]
    others = sum(words[word] for word in other.split())
    return len(found) >= _STOP_WORDS and sum(found) >= 4 * others


def _overlap(first: Corpus, second: Corpus) -> list[int]:
    """Return the indices of the pairs in `second` whose source sentence is also in `first`."""
    folded = [fold(pair.source) for pair in second.pairs]
    shared = set(folded).intersection(fold(pair.source) for pair in first.pairs)
    return [index for index, source in enumerate(folded) if source in shared]


def unknown_characters(corpus: Corpus, known: set[str]) -> tuple[float, Problem | None]:
    """Return the share of characters that are not in `known`, and a problem if there are any.

    Args:
        known: the characters of train; if empty, the share is 0.
    """
    unknown: Counter[str] = Counter()
    total = 0
    sides: dict[int, int] = {}  # for each pair with unknown characters, the first side with one
    for index, pair in enumerate(corpus.pairs if known else ()):
        for side, text in enumerate(pair):
            text = normalize(text).replace(" ", "")
            total += len(text)
            if not known.issuperset(text):
                sides.setdefault(index, side)
                unknown.update(character for character in text if character not in known)
    if not sides:
        return 0.0, None
    share = unknown.total() / total
    more = " …" if len(unknown) > _LISTED_CHARACTERS else ""
    listed = " ".join(list(unknown)[:_LISTED_CHARACTERS]) + more
    what = f"characters that train does not have ({listed}), {share:.2%} of all"
    first_side = next(iter(sides.values()))
    return share, corpus.problem("unknown-characters", list(sides), first_side, what)
