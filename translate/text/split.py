"""Split a corpus into train, valid and test, which share no source sentence."""

from __future__ import annotations

import random
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from translate.errors import UserError
from translate.text.normalize import fold

if TYPE_CHECKING:  # corpus.py imports lxml and zstandard, which decoding does not need
    from translate.text.corpus import Pair


def shuffled(count: int, seed: str) -> list[int]:
    """Return 0 .. count-1 in an order that depends on `seed` alone.

    It sorts by random keys, because `random.shuffle` may change between Python versions, whereas
    `random()` with a string as seed does not (Python documentation, "Notes on Reproducibility").
    """
    draw = random.Random(seed).random
    keys = [draw() for _ in range(count)]
    return sorted(range(count), key=keys.__getitem__)


def split_by_source(
    pairs: Sequence[Pair], *, held_out: int, seed: int
) -> tuple[list[Pair], list[Pair]]:
    """Split into (train, held out), both in corpus order, so that they share no source sentence.

    Pairs with the same source (after `fold`) go to the same side. They are never held out if the
    target of one of them is blank or a copy of the source. The held-out side has `held_out` pairs,
    or a few more if the groups of equal sources do not add up to exactly that number.

    Raises:
        UserError: too few pairs to hold out `held_out` and keep at least one for training.
    """
    groups: dict[str, list[int]] = {}
    for index, pair in enumerate(pairs):
        groups.setdefault(fold(pair.source), []).append(index)
    by_source = list(groups.items())
    chosen: set[int] = set()
    too_large: list[list[int]] = []
    for position in shuffled(len(by_source), f"split {seed}"):
        if len(chosen) == held_out:
            break
        source, group = by_source[position]
        blank_or_copy = {"", source}.intersection(fold(pairs[index].target) for index in group)
        if not source or blank_or_copy:
            continue
        if len(chosen) + len(group) <= held_out:
            chosen.update(group)
        else:
            too_large.append(group)
    if len(chosen) < held_out and too_large:
        smallest = min(too_large, key=len)
        chosen.update(smallest)
    reason = ""
    if len(chosen) < held_out:  # these are all that can be held out
        reason = f"only {len(chosen):,} are neither blank nor a copy of their source"
    elif held_out and len(chosen) == len(pairs):
        reason = "at least one pair with another source sentence must remain to train on"
    if reason:
        fewer = "lower data.held_out, " if held_out > 1 else ""
        raise UserError(
            f"cannot hold out {held_out:,} of {len(pairs):,} pair{'s' * (len(pairs) > 1)}: "
            f"{reason}; add pairs, {fewer}or set data.valid to a file of validation pairs"
        )
    train = [pair for index, pair in enumerate(pairs) if index not in chosen]
    return train, [pairs[index] for index in sorted(chosen)]


def split_corpus(
    pairs: Sequence[Pair], missing: Container[str], held_out: int, *, seed: int
) -> dict[str, list[Pair]]:
    """Return "train", and "valid" and "test" if they are `missing`, held out from `pairs`.

    Each gets `held_out` pairs, but at most a tenth of all. "valid" gets at least one pair, because
    the best checkpoint is chosen on it.

    Raises:
        UserError: see `split_by_source`.
    """
    train = list(pairs)
    splits = {}
    tenth = min(held_out, len(pairs) // 10)
    for name, count in (("valid", max(1, tenth)), ("test", tenth)):
        if name in missing and count:
            train, splits[name] = split_by_source(train, held_out=count, seed=seed)
    return {"train": train, **splits}
