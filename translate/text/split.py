"""An order that a seed decides, and the split of a corpus that it decides."""

from __future__ import annotations

import random
from collections.abc import Container, Sequence

from translate.errors import UserError
from translate.text.corpus import Pair
from translate.text.normalize import fold


def shuffled(count: int, seed: str) -> list[int]:
    """0 .. count-1 in an order that `seed` alone decides.

    `random.shuffle` may change between Python versions; `random()` from a text seed may not
    (Python documentation, "Notes on Reproducibility"), so the order is a sort by random keys.
    """
    draw = random.Random(seed).random
    keys = [draw() for _ in range(count)]
    return sorted(range(count), key=keys.__getitem__)


def split_by_source(
    pairs: Sequence[Pair], *, held_out: int, seed: int
) -> tuple[list[Pair], list[Pair]]:
    """Split into (train, held out), both in corpus order, so that no source stands in both.

    Pairs whose sources `fold` to the same text go to one side together. A source is never held
    out if one of its pairs is blank or copied (source equals target). The held-out side has
    `held_out` pairs, or a few more where the sources' groups do not add up to exactly that.

    Raises:
        UserError: so many cannot be held out with something left to train on.
    """
    if held_out < 0:
        raise ValueError(f"held_out is {held_out}, expected 0 or more")
    groups: dict[str, list[int]] = {}
    for index, pair in enumerate(pairs):
        groups.setdefault(fold(pair.source), []).append(index)

    def fit(source: str) -> bool:
        targets = [fold(pairs[index].target) for index in groups[source]]
        return bool(source) and all(target not in ("", source) for target in targets)

    sources = list(groups)
    chosen: set[int] = set()
    too_big = []
    for position in shuffled(len(sources), f"split {seed}"):
        if len(chosen) == held_out:
            break
        group = groups[sources[position]]
        if fit(sources[position]):
            if len(group) <= held_out - len(chosen):
                chosen.update(group)
            else:
                too_big.append(group)
    if len(chosen) < held_out and too_big:
        chosen.update(min(too_big, key=len))
    if len(chosen) < held_out or (held_out and len(chosen) == len(pairs)):
        count = sum(map(fit, sources))
        raise UserError(
            f"cannot hold out {held_out:,} of {len(pairs):,} pairs: {count:,} different "
            f"{'sentence' if count == 1 else 'sentences'} could be held out and one must stay "
            f"to train on; {'hold out fewer, or ' if held_out > 1 else ''}set data.valid to "
            "validation files of their own"
        )
    train = [pair for index, pair in enumerate(pairs) if index not in chosen]
    return train, [pairs[index] for index in sorted(chosen)]


def split_corpus(
    pairs: Sequence[Pair], missing: Container[str], held_out: int, *, seed: int
) -> dict[str, list[Pair]]:
    """ "train", and "valid" and "test" where they are `missing`, held out from `pairs`.

    Each gets `held_out` pairs, but at most a tenth of all; "valid" gets one at least, for
    without any no checkpoint is the best.

    Raises:
        UserError: see `split_by_source`.
    """
    parts = {"train": list(pairs)}
    tenth = min(held_out, len(pairs) // 10)
    for name, count in (("valid", max(1, tenth)), ("test", tenth)):
        if name in missing and count:
            parts["train"], parts[name] = split_by_source(parts["train"], held_out=count, seed=seed)
    return parts
