"""Batches: shifted labels, a budget with padding counted, one order for every worker."""

from __future__ import annotations

import random
from array import array
from functools import partial
from types import SimpleNamespace

import torch
from hypothesis import given
from hypothesis import strategies as st

from translate.text.corpus import Pair
from translate.text.tokenizer import Tokenizer
from translate.training.batching import Example, TokenBatchSampler, collate, encode_pairs

PAD, BOS, EOS = 0, 2, 3
collate_ids = partial(collate, tokenizer=SimpleNamespace(pad_id=PAD, bos_id=BOS, eos_id=EOS))


def example(source: int, target: int) -> Example:
    """An example with these numbers of source and target pieces."""
    return Example(array("i", [*range(4, 4 + source), EOS]), array("i", range(4, 4 + target)))


def lengths_like_sentences(count: int) -> list[tuple[int, int]]:
    draw = random.Random(0)
    sources = [min(60, 3 + int(draw.expovariate(0.1))) for _ in range(count)]
    return [(length, max(2, length + draw.randint(-3, 3))) for length in sources]


def padded(batch: list[int], lengths: list[tuple[int, int]]) -> int:
    return len(batch) * sum(max(lengths[i][side] for i in batch) for side in (0, 1))


# Examples


def test_pairs_become_ids_in_their_order():
    pairs = [Pair("a cat", "eine Katze"), Pair("a dog", "ein Hund")]
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], vocab_size=100)[0]
    examples = encode_pairs(tokenizer, pairs)
    assert len(examples) == 2
    assert list(examples[1].source) == [*tokenizer.encode("a dog"), tokenizer.eos_id]
    assert list(examples[1].target) == tokenizer.encode("ein Hund")


# Batches


def test_labels_are_the_decoder_input_shifted_by_one():  # T01
    batch = collate_ids([example(2, 4)])
    assert batch.tgt_in.shape == batch.tgt_out.shape
    assert batch.tgt_in[0, 0] == BOS
    assert batch.tgt_out[0, -1] == EOS
    assert torch.equal(batch.tgt_out[0, :-1], batch.tgt_in[0, 1:])
    assert batch.src.tolist() == [[4, 5, EOS]]


def test_every_label_row_has_exactly_one_end_sign_and_pads_after_it_only():  # T02
    batch = collate_ids([example(3, target) for target in (0, 1, 5, 2)])
    for row in batch.tgt_out.tolist():
        assert row.count(EOS) == 1
        assert set(row[row.index(EOS) + 1 :]) <= {PAD}
        assert PAD not in row[: row.index(EOS)]
    for name in ("src", "tgt_in", "tgt_out"):
        assert getattr(batch, name).dtype == torch.int64


def test_the_special_ids_are_those_of_the_tokenizer():  # A22
    special = SimpleNamespace(pad_id=9, bos_id=8, eos_id=7)
    batch = collate([example(1, 1), example(1, 2)], special)
    assert batch.tgt_in.tolist() == [[8, 4, 9], [8, 4, 5]]
    assert batch.tgt_out.tolist() == [[4, 7, 9], [4, 5, 7]]


# The sampler

some_lengths = st.lists(st.tuples(st.integers(1, 70), st.integers(1, 70)), min_size=1, max_size=80)


@given(
    lengths=some_lengths,
    max_tokens=st.integers(1, 600),
    shuffle=st.booleans(),
    epoch=st.integers(0, 3),
)
def test_an_epoch_has_each_pair_once_and_no_batch_over_budget(lengths, max_tokens, shuffle, epoch):
    sampler = TokenBatchSampler(lengths, max_tokens=max_tokens, shuffle=shuffle)
    count = len(sampler)
    sampler.set_epoch(epoch)
    batches = list(sampler)
    assert len(batches) == count == len(sampler)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or padded(batch, lengths) <= max_tokens for batch in batches)


def test_the_order_is_a_function_of_seed_and_epoch_alone():  # T19
    lengths = lengths_like_sentences(300)

    def order(seed: int, epoch: int) -> list[list[int]]:
        sampler = TokenBatchSampler(lengths, max_tokens=300, seed=seed)
        sampler.set_epoch(epoch)
        torch.rand(1)
        random.random()
        return list(sampler)

    assert order(0, 1) == order(0, 1)
    assert order(0, 0) != order(0, 1) != order(1, 1)


def test_little_padding_yet_other_neighbours_in_the_next_epoch():
    lengths = lengths_like_sentences(5000)
    sampler = TokenBatchSampler(lengths, max_tokens=1000)
    first = list(sampler)
    real, used = sum(map(sum, lengths)), sum(padded(batch, lengths) for batch in first)
    assert real <= used  # nothing was lost, so the next line measures padding
    assert (used - real) / used < 0.15
    sampler.set_epoch(1)
    mates = {index: set(batch) for batch in first for index in batch}
    again = [
        (len(mates[index] & set(batch)) - 1) / (len(batch) - 1)
        for batch in sampler
        for index in batch
        if len(batch) > 1
    ]
    assert sum(again) / len(again) < 0.3
    # Short and long batches come mixed, not sorted.
    sizes = [len(batch) for batch in first]
    assert sizes not in (sorted(sizes), sorted(sizes, reverse=True))


def test_without_shuffling_batches_come_in_order_of_length_and_stay_the_same():
    lengths = [(3, 3), (9, 9), (3, 3), (9, 9), (3, 3)]
    sampler = TokenBatchSampler(lengths, max_tokens=36, shuffle=False)
    assert list(sampler) == [[0, 2, 4], [1, 3]]
    sampler.set_epoch(5)
    assert list(sampler) == [[0, 2, 4], [1, 3]]


def test_a_resumed_epoch_goes_on_where_it_stopped_and_the_next_is_whole():  # T14
    lengths = lengths_like_sentences(100)
    straight = TokenBatchSampler(lengths, max_tokens=200)
    resumed = TokenBatchSampler(lengths, max_tokens=200)
    straight.set_epoch(2)
    resumed.set_epoch(2)
    resumed.skip = 3
    assert len(resumed) == len(straight)
    assert list(resumed) == list(straight)[3:]
    assert list(resumed) == list(straight)[3:]  # a DataLoader with workers begins twice
    resumed.set_epoch(2)
    assert list(resumed) == list(straight)[3:]
    straight.set_epoch(3)
    resumed.set_epoch(3)
    assert list(resumed) == list(straight)
    resumed.skip = len(resumed)
    assert list(resumed) == []
