"""Pairs to padded integer batches of about equal size.

Shapes: B batch, S longest source, T longest target of the batch, both with their end or start sign.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler

from translate.errors import UserError
from translate.text.corpus import Pair
from translate.text.split import shuffled
from translate.text.tokenizer import Tokenizer


class Example(NamedTuple):
    """One encoded pair.

    `source` ends in eos. `target` has neither bos nor eos: `collate` adds them. `index` is the
    pair's position in the list it came from, so that filtering loses no connection to the text.
    Arrays of C ints take a quarter of the room of lists: of a million pairs, 0.2 GiB.
    """

    source: array[int]
    target: array[int]
    index: int

    @property
    def lengths(self) -> tuple[int, int]:
        """Positions taken in a batch: (S, T), each side with its one bos or eos counted."""
        return len(self.source), len(self.target) + 1


@dataclass
class Batch:
    """int64 tensors: src (B, S), tgt_in (B, T), tgt_out (B, T), indices (B,).

    tgt_in is bos, w1, ..., wn and tgt_out is w1, ..., wn, eos; both and src are filled with pad.
    indices are the examples' `index`.
    """

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    indices: Tensor


def encode_pairs(tokenizer: Tokenizer, pairs: Iterable[Pair]) -> list[Example]:
    """Examples in the order of `pairs`, each with its position as `index`."""
    return [
        Example(
            array("i", [*tokenizer.encode(pair.source), tokenizer.eos_id]),
            array("i", tokenizer.encode(pair.target)),
            index,
        )
        for index, pair in enumerate(pairs)
    ]


def keep_fitting(examples: Sequence[Example], max_length: int) -> tuple[list[Example], str]:
    """The examples that fit a model of `max_length` positions, and a note ("" if all do).

    The limit holds for each side with its end or start sign counted: `max_length - 1` pieces
    pass, `max_length` pieces do not. Nothing is cut: half a sentence has no known translation.

    Raises:
        UserError: none of the examples fits.
    """
    kept = [example for example in examples if max(example.lengths) <= max_length]
    if len(kept) == len(examples):
        return kept, ""
    first = next(example for example in examples if max(example.lengths) > max_length)
    note = (
        f"left out {len(examples) - len(kept):,} of {len(examples):,} pairs longer than "
        f"max_length {max_length} (pieces with start or end sign), first pair {first.index + 1:,} "
        f"with {first.lengths[0]:,} and {first.lengths[1]:,}"
    )
    if not kept:
        raise UserError(f"no pairs left: {note}; raise max_length or split the sentences")
    return kept, note


def collate(examples: Sequence[Example], *, pad_id: int, bos_id: int, eos_id: int) -> Batch:
    """Pad examples to one Batch, in the order given."""

    def padded(rows: list[array[int]]) -> Tensor:
        filled = np.full((len(rows), max(map(len, rows))), pad_id)
        for place, row in zip(filled, rows, strict=True):
            place[: len(row)] = row
        return torch.from_numpy(filled)

    bos, eos = array("i", [bos_id]), array("i", [eos_id])
    return Batch(
        src=padded([example.source for example in examples]),
        tgt_in=padded([bos + example.target for example in examples]),
        tgt_out=padded([example.target + eos for example in examples]),
        indices=torch.tensor([example.index for example in examples]),
    )


class TokenBatchSampler(Sampler[list[int]]):
    """Batches of positions in `lengths`, under a budget of tokens with padding counted.

    A batch costs rows * (longest source + longest target), pads included, and no batch costs
    more than `max_tokens`; only a pair that alone costs more has a batch to itself.

    Pairs of about the same length share a batch: each belongs to a bucket by its longer side
    (bounds at most an eighth apart). An epoch shuffles the pairs within buckets, cuts the row of
    buckets into batches, and shuffles the batches. Cuts are made by bucket bounds and not by the
    pairs' own lengths, so they are the same in every epoch, and so is the number of batches.

    The order is a function of `seed` and the epoch alone: no global random state, no workers.

    Args:
        lengths: (source, target) length of each example, `Example.lengths`.
        max_tokens: the budget of one batch.
        seed: of the order.
        shuffle: False gives the same batches in order of length, each in order of position.

    Raises:
        UserError: no pairs.
    """

    def __init__(
        self,
        lengths: Sequence[tuple[int, int]],
        *,
        max_tokens: int,
        seed: int = 0,
        shuffle: bool = True,
    ) -> None:
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}, expected 1 or more")
        if not lengths:
            raise UserError("no pairs to make batches of")
        self._seed = seed
        self._shuffle = shuffle
        self._epoch = 0
        self._skip = 0
        self._buckets = [_bucket(pair) for pair in lengths]
        self._spans = _cut(lengths, self._buckets, max_tokens)

    def __len__(self) -> int:
        """Batches of an epoch: the same number in every epoch, whatever is skipped."""
        return len(self._spans)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order; another epoch is a whole one, whatever was skipped."""
        if epoch != self._epoch:
            self._skip = 0
        self._epoch = epoch

    def skip_batches(self, count: int) -> None:
        """Leave out the first `count` batches of this epoch: resume in the middle of it.

        Not of one iteration: a DataLoader with workers begins twice and uses the second.
        """
        if not 0 <= count <= len(self):
            raise ValueError(f"cannot skip {count} of {len(self)} batches")
        self._skip = count

    def __iter__(self) -> Iterator[list[int]]:
        order = range(len(self._buckets))
        batches = range(len(self._spans))
        if self._shuffle:
            order = shuffled(len(order), f"pairs {self._seed} {self._epoch}")
            batches = shuffled(len(batches), f"batches {self._seed} {self._epoch}")
        # sorted() is stable: within a bucket the shuffled order stays.
        order = sorted(order, key=self._buckets.__getitem__)
        spans = [self._spans[batch] for batch in batches[self._skip :]]
        return iter([order[start:stop] for start, stop in spans])


def _bucket(lengths: tuple[int, int]) -> int:
    """Upper bound of the bucket: the longer side, rounded up to four binary digits.

    By the longer side and not by the sum, because the sum puts (3, 9) beside (9, 3). On Multi30k
    and Tatoeba this pads 8 % and draws other neighbours each epoch; a grid over both sides pads
    3 % but leaves a third of the neighbours the same.
    """
    longer = max(lengths)
    step = 1 << max(0, longer.bit_length() - 4)
    return -(-longer // step) * step


def _cut(
    lengths: Sequence[tuple[int, int]], buckets: Sequence[int], max_tokens: int
) -> list[tuple[int, int]]:
    """Spans (start, stop) of the pairs sorted by bucket, each one batch within the budget."""
    bounds: dict[int, tuple[int, int]] = {}
    for bucket, (source, target) in zip(buckets, lengths, strict=True):
        longest = bounds.get(bucket, (0, 0))
        bounds[bucket] = max(longest[0], source), max(longest[1], target)
    spans = []
    start = 0
    widest = (0, 0)
    for position, bucket in enumerate(sorted(buckets)):
        source, target = bounds[bucket]
        wider = max(widest[0], source), max(widest[1], target)
        if position > start and (position + 1 - start) * sum(wider) > max_tokens:
            spans.append((start, position))
            start, wider = position, (source, target)
        widest = wider
    return [*spans, (start, len(lengths))]
