"""Build data/tiny and data/challenge, byte for byte the same each time.

    python scripts/build_corpus.py            write the files and print a summary
    python scripts/build_corpus.py --check    write nothing; exit 1 if any file would change

data/grammar.yaml and data/lexicon.yaml give the constructed sentences, data/everyday.tsv has
those written by hand.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))
from corpus_grammar import Draft, Grammar
from corpus_lexicon import Lexicon

DATA = Path(__file__).resolve().parent.parent / "data"
SEED = 20240917
HELD_OUT_LINES = 500  # in valid and in test
CHALLENGE_LINES = 120
# Nothing repeats the words of an everyday sentence in other combinations, as the patterns do for
# theirs: written once, a trained model got only a third of them right
EVERYDAY_TIMES = 2
SPARE = 2.2  # candidates for each held-out sentence: those with rare words go back to training
NO_FULL_STOP = 1 / 8
# how often every word of a held-out sentence occurs in training: in any case, and as written
SEEN_AT_LEAST = 8
SEEN_AS_WRITTEN = 4
# the sentence a trained model must compose by itself
NEVER = {"this is an example", "das ist ein beispiel"}

Pair = tuple[str, str]
T = TypeVar("T")


def fold(text: str) -> str:
    """The sentence without case and punctuation; sentences that fold alike count as the same."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def words(text: str) -> list[str]:
    """The word forms of a sentence as written."""
    return re.findall(r"\w+", text)


def shuffled(items: Sequence[T], rng: random.Random) -> list[T]:
    """Fisher-Yates on random(), whose numbers never change between Python versions."""
    result = list(items)
    for i in range(len(result) - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        result[i], result[j] = result[j], result[i]
    return result


def read_tsv(path: Path) -> list[Pair]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(source, target) for source, target in rows]


class Draws:
    """Draws new sentences and keeps the mapping a function: no sentence twice on either side."""

    def __init__(self, grammar: Grammar, known: Sequence[Pair]):
        self.grammar = grammar
        self.meaning = {fold(source): fold(target) for source, target in known}
        self.targets = set(self.meaning.values())

    def new(self, construction: str, count: int) -> list[Draft]:
        drafts: list[Draft] = []
        for _ in range(60 * count):
            draft = self.grammar.draft(construction)
            source, target = fold(draft.source), fold(draft.target)
            if self.meaning.get(source, target) != target:
                both = f"{draft.target!r} and {self.meaning[source]!r}"
                raise ValueError(f"{construction}: {draft.source!r} would mean {both}")
            if {source, target} & NEVER or source in self.meaning or target in self.targets:
                continue
            self.meaning[source] = target
            self.targets.add(target)
            drafts.append(draft)
            if len(drafts) == count:
                return drafts
        raise ValueError(f"{construction}: only {len(drafts)} of {count} different sentences found")


def split_by_key(
    drafts: list[Draft], held: int, rng: random.Random
) -> tuple[list[Draft], list[Draft]]:
    """(training, held out): sentences of one key, pattern and words, fall on the same side."""
    groups: dict[tuple[str, ...], list[Draft]] = {}
    for draft in drafts:
        groups.setdefault(draft.key, []).append(draft)
    held_out: list[Draft] = []
    train: list[Draft] = []
    for key in shuffled(list(groups), rng):
        (held_out if len(held_out) < held else train).extend(groups[key])
    return train, held_out


def drop_full_stops(pairs: list[Pair], rng: random.Random) -> list[Pair]:
    """Take the final full stop from one sentence in eight, on both sides."""
    statements = [i for i, pair in enumerate(pairs) if pair[0].endswith(".")]
    chosen = set(shuffled(statements, rng)[: round(len(pairs) * NO_FULL_STOP)])
    return [
        (source[:-1], target[:-1]) if i in chosen else (source, target)
        for i, (source, target) in enumerate(pairs)
    ]


class Known:
    """Says whether every word of a sentence pair is well known from training."""

    def __init__(self, train: Sequence[Pair]):
        self.counts = [Counter[str](), Counter[str]()]
        self.folded = [Counter[str](), Counter[str]()]
        for pair in train:
            for side, text in enumerate(pair):
                self.counts[side].update(words(text))
                self.folded[side].update(words(text.casefold()))

    def __call__(self, pair: Pair) -> bool:
        return all(
            self.counts[side][word] >= SEEN_AS_WRITTEN
            and self.folded[side][word.casefold()] >= SEEN_AT_LEAST
            for side, text in enumerate(pair)
            for word in words(text)
        )


def build(data: Path = DATA) -> tuple[dict[str, str], dict[str, Any]]:
    """All files of the corpus as {path under data: text}, and the counts for the summary."""
    everyday = read_tsv(data / "everyday.tsv")
    grammar = yaml.safe_load((data / "grammar.yaml").read_text(encoding="utf-8"))
    constructions = grammar["constructions"]
    lexicon = Lexicon.load(data / "lexicon.yaml")
    draws = Draws(Grammar(lexicon, constructions, SEED), everyday)
    rng = random.Random(SEED + 1)

    shares = spread(HELD_OUT_LINES, len(constructions))
    train: list[Pair] = list(everyday)
    held: dict[str, list[Draft]] = {}
    counts: dict[str, Any] = {"everyday": EVERYDAY_TIMES * len(everyday)}
    for (name, construction), share in zip(constructions.items(), shares, strict=True):
        needed = CHALLENGE_LINES + 2 * share
        drafts = draws.new(name, construction["train"] + needed)
        seen, held[name] = split_by_key(drafts, round(SPARE * needed), rng)
        train.extend(draft.pair for draft in seen)
        counts[name] = len(seen)

    known = Known(train)
    valid: list[Pair] = []
    test: list[Pair] = []
    files: dict[str, str] = {}
    for name, share in zip(constructions, shares, strict=True):
        needed = CHALLENGE_LINES + 2 * share
        chosen = [draft for draft in held[name] if known(draft.pair)][:needed]
        if len(chosen) < needed:
            raise ValueError(f"{name}: only {len(chosen)} held-out sentences of well known words")
        keys = {draft.key for draft in chosen}
        left_over = [draft.pair for draft in held[name] if draft.key not in keys]
        train.extend(left_over)
        counts[name] += len(left_over)
        pairs = [draft.pair for draft in chosen]
        files[f"challenge/{name}.tsv"] = tsv(drop_full_stops(pairs[:CHALLENGE_LINES], rng))
        test.extend(pairs[CHALLENGE_LINES : CHALLENGE_LINES + share])
        valid.extend(pairs[CHALLENGE_LINES + share :])
    train.extend(everyday * (EVERYDAY_TIMES - 1))  # after Known: twice is no better known
    for name, split in (("train", train), ("valid", valid), ("test", test)):
        pairs = drop_full_stops(shuffled(split, rng), rng)
        files[f"tiny/{name}.en"] = "".join(source + "\n" for source, _ in pairs)
        files[f"tiny/{name}.de"] = "".join(target + "\n" for _, target in pairs)
    counts.update(train=len(train), valid=len(valid), test=len(test), lemmas=len(lexicon.lemmas()))
    return files, counts


def spread(total: int, parts: int) -> list[int]:
    """total in whole parts that differ by at most one."""
    return [total // parts + (i < total % parts) for i in range(parts)]


def tsv(pairs: Sequence[Pair]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on a change")
    check = parser.parse_args().check
    files, counts = build()
    different = []
    for name, text in files.items():
        path, content = DATA / name, text.encode("utf-8")
        if path.is_file() and path.read_bytes() == content:
            continue
        different.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    print("training sentences: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    if check and different:
        print("not as built: " + ", ".join(different), file=sys.stderr)
        return 1
    print(f"{len(files)} files {'are as built' if check else 'written'}; {len(different)} differed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
