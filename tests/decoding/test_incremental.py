"""The key-value cache: filled in place, the same function as the blocks, rows that leave it."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from translate.decoding.incremental import DecoderCache, Seats
from translate.model.attention import project, side_by_side
from translate.model.layers import DecoderBlock
from translate.model.masks import padding_mask

D, H, FF = 8, 2, 16


def block(norm: str = "pre") -> DecoderBlock:
    made = DecoderBlock(D, H, FF, 0.0, norm)
    for parameter in made.parameters():
        parameter.normal_(std=0.5)
    return made


@torch.no_grad()
def test_cache_is_filled_in_place_and_returns_views():
    memory = torch.zeros(1, 2, 2, H, 5, D // H)
    layer = DecoderCache([block()], memory, max_length=6).layers[0]
    x = torch.randn(2, 3, D)
    attention = layer.block.self_attention
    weight = side_by_side(attention.W_query, attention.W_key, attention.W_value)
    expected = project(x, weight, H, D // H)
    _, keys, _ = layer.extend(x[:, :2])
    storage = keys.data_ptr()
    queries, keys, values = layer.extend(x[:, 2:])
    assert keys.data_ptr() == storage
    assert_close(queries, expected[0][:, :, 2:])
    assert_close(keys, expected[1])
    assert_close(values, expected[2])
    assert layer.length == 3


@torch.no_grad()
def test_keeping_rows_of_a_cache_copies_only_those_that_move():
    memory = torch.arange(5.0)[:, None, None, None].expand(1, 2, 5, H, 4, D // H).clone()
    cache = DecoderCache([block()], memory, max_length=6)
    layer = cache.layers[0]
    before = layer.extend(torch.randn(5, 2, D))[1].clone()
    where = layer.memory.data_ptr(), layer.room.data_ptr()
    for rows, left in (([0, 4, 2], [0, 4, 2]), ([1, 0], [4, 0]), ([0], [4])):
        cache.keep(rows)
        assert (layer.memory.data_ptr(), layer.room.data_ptr()) == where
        assert layer.memory[0, :, 0, 0, 0].tolist() == left
        keys = layer.room[0, :2].permute(1, 2, 0, 3)  # (T, R, H, K) -> (R, H, T, K)
        assert torch.equal(keys, before[left])


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("padded", [False, True])
@torch.no_grad()
def test_a_step_is_the_block_for_one_position(norm, padded):  # A08 A11 A17
    layers = [block(norm), block(norm)]
    memory = torch.randn(2, 2, 3, H, 5, D // H)
    mask = padding_mask(torch.tensor([[5] * 5, [5, 5, 5, 0, 0], [5, 0, 0, 0, 0]]), 0)
    src_mask = mask if padded else None
    x = torch.randn(3, 4, D)
    expected = x
    for layer, own in zip(layers, memory, strict=True):
        expected = layer(expected, own, src_mask)
    cache = DecoderCache(layers, memory, max_length=4)
    steps = [cache.step(x[:, i].clone(), src_mask) for i in range(4)]
    assert_close(torch.stack(steps, dim=1), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_hypotheses_of_a_source_share_its_memory_and_their_past_until_they_part():
    """Against one memory and one past a hypothesis, through two steps and a source that leaves."""
    layers = [block(), block()]
    memory = torch.randn(2, 2, 3, H, 5, D // H)
    mask = padding_mask(torch.tensor([[5] * 5, [5, 5, 5, 0, 0], [5, 0, 0, 0, 0]]), 0)
    cache = DecoderCache(layers, memory.clone(), max_length=4, beam=3)
    first = torch.randn(3, D)
    cache.step(first.clone(), mask)

    # Rows 1 and 4 go on from source 1; 0, 2 and 3 from source 0; source 2 is done.
    cache.regroup([0, 1, 0, 0, 1], [0, 1], Seats(*map(torch.tensor, PARTED)))
    second = torch.randn(5, D)
    outputs = [cache.step(second.clone(), mask[:2])]
    # Row 3 of source 0 goes on twice, row 0 not at all, and source 1 comes first.
    cache.regroup([4, 1, 3, 3], [1, 0], Seats(*map(torch.tensor, TURNED)))
    third = torch.randn(4, D)
    outputs.append(cache.step(third.clone(), mask[[1, 0]]))

    owners = [0, 1, 0, 0, 1]
    alone = DecoderCache(layers, memory[:, :, owners].clone(), max_length=4)
    alone.step(first[owners].clone(), mask[owners])
    expected = [alone.step(second.clone(), mask[owners])]
    alone.keep([4, 1, 3, 3])
    expected.append(alone.step(third.clone(), mask[[1, 1, 0, 0]]))
    for found, wanted in zip(outputs, expected, strict=True):
        assert_close(found, wanted, atol=1e-5, rtol=1e-5)


PARTED = [[0, 2, 3], [1, 4, 1]], [0, 3, 1, 2, 4]
TURNED = [[0, 1], [2, 3]], [0, 1, 2, 3]


@torch.no_grad()
def test_the_memory_stays_where_it_is_when_hypotheses_part():
    memory = torch.arange(2.0)[:, None, None, None].expand(1, 2, 2, H, 4, D // H).clone()
    cache = DecoderCache([block()], memory, max_length=6, beam=2)
    layer = cache.layers[0]
    layer.extend(torch.randn(2, 1, D))
    before, version = layer.memory.data_ptr(), memory._version
    cache.regroup([0, 1, 0, 1], [0, 1], Seats(torch.tensor([[0, 2], [1, 3]]), torch.arange(4)))
    assert layer.memory.data_ptr() == before
    assert layer.memory.shape[1] == 2 and layer.room.shape[2] == 4
    assert memory._version == version  # nothing was written to it
    assert torch.equal(layer.room[0, 0, 2:], layer.room[0, 0, :2])
