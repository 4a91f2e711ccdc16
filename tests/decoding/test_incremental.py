"""The cached decoder equals the plain one while hypotheses grow, end or split."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from translate.decoding.incremental import CachedDecoder, PlainDecoder
from translate.model.transformer import Transformer, TransformerConfig

PAD, VOCABULARY = 0, 23


def model(norm: str = "pre") -> Transformer:
    torch.manual_seed(0)
    config = TransformerConfig(
        VOCABULARY, PAD, d_model=16, n_heads=4, d_ff=32, dropout=0.0, norm=norm, max_length=32
    )
    made = Transformer(config).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.4)
    return made


MODELS = {norm: model(norm) for norm in ("pre", "post")}
pieces = st.integers(4, VOCABULARY - 1)


@st.composite
def batches(draw, most: int = 4) -> torch.Tensor:
    """Sources of different lengths, padded."""
    rows = draw(st.lists(st.lists(pieces, min_size=1, max_size=7), min_size=1, max_size=most))
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


# A08, A11, A12, A17
@given(batches(), st.lists(st.integers(1, 4), min_size=1, max_size=5), st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_cached_equals_plain_however_the_pieces_arrive_and_rows_leave(norm, src, steps, data):
    plain = PlainDecoder(MODELS[norm], src)
    cached = CachedDecoder(MODELS[norm], src, max_length=sum(steps))
    rows = len(src)
    for n_new in steps:
        row = st.lists(pieces, min_size=n_new, max_size=n_new)
        new = data.draw(st.lists(row, min_size=rows, max_size=rows))
        assert_close(cached.step(new), plain.step(new), atol=1e-4, rtol=1e-4)
        order = data.draw(st.permutations(range(rows)))
        kept = order[: data.draw(st.integers(1, rows))]
        plain.keep(kept)
        cached.keep(kept)
        rows = len(kept)


@given(batches(3), st.data())
@settings(max_examples=60, deadline=None)
def test_hypotheses_that_split_equal_plain_decoding_of_each(src, data):
    """In a beam search, rows share a source, split and end, and sources end."""
    width, decoded = 3, MODELS["pre"]
    cached = CachedDecoder(decoded, src, max_length=5, beam=width)
    plain = PlainDecoder(decoded, src)
    owners = list(range(len(src)))  # the source of each row
    new = [[2]] * len(src)
    for _ in range(4):
        assert_close(cached.step(new), plain.step(new), atol=1e-4, rtol=1e-4)
        current = sorted(set(owners))
        staying = data.draw(st.permutations(current))
        staying = staying[: data.draw(st.integers(1, len(staying)))]
        chosen = []  # (row, source as counted from now on)
        for source, old in enumerate(staying):
            own = [row for row, owner in enumerate(owners) if owner == old]
            picks = data.draw(st.lists(st.sampled_from(own), min_size=1, max_size=width))
            chosen += [(row, source) for row in picks]
        chosen = data.draw(st.permutations(chosen))
        rows, owners = [row for row, _ in chosen], [source for _, source in chosen]
        groups = [
            [row for row, owner in enumerate(owners) if owner == source]
            for source in range(len(staying))
        ]
        cached.regroup(rows, staying, groups)
        plain.keep(rows)
        new = [[data.draw(pieces)] for _ in rows]


def test_the_plain_decoder_keeps_the_attention_of_the_latest_step():
    plain = PlainDecoder(MODELS["pre"], torch.tensor([[5, 6, 7]]))
    plain.step([[2, 8]])
    plain.step([[9]])
    assert plain.record.cross[-1].weights.shape == (1, 4, 3, 3)


def test_rows_that_stay_in_place_are_not_copied():
    cached = CachedDecoder(MODELS["pre"], torch.randint(4, VOCABULARY, (5, 4)), max_length=6)
    cached.step([[2]] * 5)
    places = cached.memory.data_ptr(), cached.cache.data_ptr()
    before = cached.cache[0, 0, 0, :, 0, 0].clone()  # one number of each row
    for rows, left in (([0, 4, 2], [0, 4, 2]), ([1, 0], [4, 0]), ([0], [4])):
        cached.keep(rows)
        assert (cached.memory.data_ptr(), cached.cache.data_ptr()) == places
        assert torch.equal(cached.blocks[0].cache[0, 0, :, 0, 0], before[left])


def test_the_memory_is_stored_once_per_source_when_hypotheses_split():
    cached = CachedDecoder(
        MODELS["pre"], torch.randint(4, VOCABULARY, (2, 4)), max_length=6, beam=2
    )
    cached.step([[2]] * 2)
    before = cached.memory.clone()
    cached.regroup([0, 1, 0, 1], [0, 1], [[0, 2], [1, 3]])
    assert cached.blocks[0].memory.shape[1] == 2
    assert torch.equal(cached.memory, before)
    assert torch.equal(cached.blocks[0].cache[0, 0, 2:], cached.blocks[0].cache[0, 0, :2])
