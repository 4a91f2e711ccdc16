"""Build data/tiny and data/challenge; every run gives exactly the same files.

    python scripts/build_corpus.py            write the files and print a summary
    python scripts/build_corpus.py --check    write nothing; exit with 1 if a file would change

Most sentences are constructed from data/grammar.yaml and data/lexicon.yaml. The sentences in
data/everyday.tsv were written by hand.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))
from corpus_grammar import Draft, Grammar
from corpus_lexicon import Lexicon

DATA = Path(__file__).resolve().parent.parent / "data"
SEED = 20240917
HELD_OUT_LINES = 500  # in valid, and again in test
CHALLENGE_LINES = 120  # per file
# Unlike the constructed sentences, everyday sentences do not repeat words in other combinations.
# When each occurred once in the corpus, a model translated only a third of them correctly.
EVERYDAY_TIMES = 2
# Candidates per held-out sentence. Candidates with rare words go back to training.
CANDIDATES = 2.2
NO_FULL_STOP = 1 / 8
# How often every word of a held-out sentence must occur in training.
SEEN_AT_LEAST = 8  # in upper or lower case
SEEN_AS_WRITTEN = 4  # with the same upper and lower case
# No file contains this sentence, so a trained model must compose its translation.
NEVER = {"this is an example", "das ist ein beispiel"}

Pair = tuple[str, str]
T = TypeVar("T")


def fold(text: str) -> str:
    """Return the sentence without case and punctuation: equal results are the same sentence."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def words(text: str) -> list[str]:
    """Return the words of a sentence as written."""
    return re.findall(r"\w+", text)


def shuffled(items: Sequence[T], rng: random.Random) -> list[T]:
    """Shuffle (Fisher-Yates) with random(), which is the same in all Python versions."""
    result = list(items)
    for i in range(len(result) - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        result[i], result[j] = result[j], result[i]
    return result


def read_tsv(path: Path) -> list[Pair]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(source, target) for source, target in rows]


class SentenceDrafter:
    """Constructs sentence pairs; no sentence occurs twice on either side."""

    def __init__(self, grammar: Grammar, known: Sequence[Pair]):
        self.grammar = grammar
        self.meaning = {fold(source): fold(target) for source, target in known}
        self.targets = set(self.meaning.values())

    def draft(self, construction: str, count: int) -> list[Draft]:
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
    """Return (training, held out); sentences with the same pattern and lemmas stay together."""
    groups: dict[tuple[str, ...], list[Draft]] = {}
    for draft in drafts:
        groups.setdefault(draft.key, []).append(draft)
    held_out: list[Draft] = []
    train: list[Draft] = []
    for key in shuffled(list(groups), rng):
        (held_out if len(held_out) < held else train).extend(groups[key])
    return train, held_out


def drop_full_stops(pairs: list[Pair], rng: random.Random) -> list[Pair]:
    """Remove the final full stop of one pair in eight."""
    statements = [i for i, pair in enumerate(pairs) if pair[0].endswith(".")]
    chosen = set(shuffled(statements, rng)[: round(len(pairs) * NO_FULL_STOP)])
    return [
        (source[:-1], target[:-1]) if i in chosen else (source, target)
        for i, (source, target) in enumerate(pairs)
    ]


class Vocabulary:
    """Counts the words of the training pairs."""

    def __init__(self, train: Sequence[Pair]):
        self.counts = [Counter[str](), Counter[str]()]
        self.folded = [Counter[str](), Counter[str]()]
        for pair in train:
            for side, text in enumerate(pair):
                self.counts[side].update(words(text))
                self.folded[side].update(words(text.casefold()))

    def knows(self, pair: Pair) -> bool:
        """Return whether every word of the pair is frequent enough in training."""
        return all(
            self.counts[side][word] >= SEEN_AS_WRITTEN
            and self.folded[side][word.casefold()] >= SEEN_AT_LEAST
            for side, text in enumerate(pair)
            for word in words(text)
        )


class BuiltCorpus(NamedTuple):
    """The content of all files and facts about the corpus.

    Args:
        files: {path under data: text}.
        counts: number of sentences by construction and split, and number of lemmas.
        keys: pattern and lemmas of each constructed sentence, by its English text.
    """

    files: dict[str, str]
    counts: dict[str, int]
    keys: dict[str, tuple[str, ...]]


def build(data: Path = DATA) -> BuiltCorpus:
    """Build the corpus in memory."""
    everyday = read_tsv(data / "everyday.tsv")
    grammar = yaml.safe_load((data / "grammar.yaml").read_text(encoding="utf-8"))
    constructions = grammar["constructions"]
    lexicon = Lexicon.load(data / "lexicon.yaml")
    drafter = SentenceDrafter(Grammar(lexicon, constructions, SEED), everyday)
    rng = random.Random(SEED + 1)

    shares = spread(HELD_OUT_LINES, len(constructions))
    train: list[Pair] = list(everyday)
    held: dict[str, list[Draft]] = {}
    keys: dict[str, tuple[str, ...]] = {}
    counts = {"everyday": EVERYDAY_TIMES * len(everyday)}
    for (name, construction), share in zip(constructions.items(), shares, strict=True):
        needed = CHALLENGE_LINES + 2 * share
        drafts = drafter.draft(name, construction["train"] + needed)
        keys.update((draft.source, draft.key) for draft in drafts)
        seen, held[name] = split_by_key(drafts, round(CANDIDATES * needed), rng)
        train.extend(draft.pair for draft in seen)
        counts[name] = len(seen)

    vocabulary = Vocabulary(train)
    valid: list[Pair] = []
    test: list[Pair] = []
    files: dict[str, str] = {}
    for name, share in zip(constructions, shares, strict=True):
        needed = CHALLENGE_LINES + 2 * share
        chosen = [draft for draft in held[name] if vocabulary.knows(draft.pair)][:needed]
        if len(chosen) < needed:
            raise ValueError(f"{name}: only {len(chosen)} held-out sentences have frequent words")
        chosen_keys = {draft.key for draft in chosen}
        unused = [draft.pair for draft in held[name] if draft.key not in chosen_keys]
        train.extend(unused)
        counts[name] += len(unused)
        pairs = [draft.pair for draft in chosen]
        files[f"challenge/{name}.tsv"] = tsv(drop_full_stops(pairs[:CHALLENGE_LINES], rng))
        test.extend(pairs[CHALLENGE_LINES : CHALLENGE_LINES + share])
        valid.extend(pairs[CHALLENGE_LINES + share :])
    train.extend(everyday * (EVERYDAY_TIMES - 1))  # after counting, so repeats do not count
    for name, split in (("train", train), ("valid", valid), ("test", test)):
        pairs = drop_full_stops(shuffled(split, rng), rng)
        files[f"tiny/{name}.en"] = "".join(source + "\n" for source, _ in pairs)
        files[f"tiny/{name}.de"] = "".join(target + "\n" for _, target in pairs)
    counts.update(train=len(train), valid=len(valid), test=len(test), lemmas=len(lexicon.lemmas()))
    return BuiltCorpus(files, counts, keys)


def spread(total: int, parts: int) -> list[int]:
    """Split `total` into whole numbers that differ by at most one."""
    return [total // parts + (i < total % parts) for i in range(parts)]


def tsv(pairs: Sequence[Pair]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def save(corpus: BuiltCorpus, folder: Path, *, check: bool) -> int:
    """Write the files and print a summary; with `check`, write nothing. Return the exit code."""
    different = []
    for name, text in corpus.files.items():
        path, content = folder / name, text.encode("utf-8")
        if path.is_file() and path.read_bytes() == content:
            continue
        different.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    counts = ", ".join(f"{name} {count}" for name, count in corpus.counts.items())
    print(f"training sentences: {counts}")
    if check and different:
        print(f"would change: {', '.join(different)}", file=sys.stderr)
        return 1
    print(f"{len(corpus.files)} files are up to date; {len(different)} were rewritten")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if a file would change"
    )
    return save(build(), DATA, check=parser.parse_args().check)


if __name__ == "__main__":
    raise SystemExit(main())
