"""The figures of the inside, against what can be worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from translate.insight.measure import inspect, norm, parts, update_ratios

PAD, BOS, EOS = 0, 2, 3
SRC = torch.tensor([[5, 6, 7, EOS], [8, EOS, PAD, PAD], [9, 4, EOS, PAD]])
TGT_IN = torch.tensor([[BOS, 5, 6], [BOS, 7, PAD], [BOS, 8, 9]])
TGT_OUT = torch.tensor([[5, 6, EOS], [7, EOS, PAD], [8, 9, EOS]])


@torch.no_grad()
def without_attention(model):
    """All scores 0, so that everything in sight is looked at alike."""
    for name, matrix in model.named_parameters():
        if "W_query" in name:
            matrix.zero_()
    return model


def test_equal_scores_have_the_entropy_of_what_is_in_sight(model):
    seen = inspect(without_attention(model), SRC, TGT_IN, TGT_OUT)
    encoder, decoder, cross = (seen.attention[kind, 0] for kind in ("encoder", "decoder", "cross"))
    assert {each.largest_score for each in (encoder, decoder, cross)} == {0.0}
    for each in (encoder, decoder, cross):
        assert each.evenness == pytest.approx(1)
    # Sentences of 4, 2 and 3 tokens: as many rows, each with that many in sight.
    assert encoder.entropy == pytest.approx(sum(n * math.log(n) for n in (4, 2, 3)) / 9)
    assert encoder.end_share == pytest.approx(3 / 9)  # n rows of 1 / n each
    assert cross.entropy == pytest.approx((3 * math.log(4) + 2 * math.log(2) + 3 * math.log(3)) / 8)
    assert cross.end_share == pytest.approx((3 / 4 + 2 / 2 + 3 / 3) / 8)
    assert decoder.entropy == pytest.approx((3 * math.log(2) + 2 * math.log(3)) / 8)


def test_padding_counts_for_nothing(model):
    wide = [torch.nn.functional.pad(ids, (0, 3)) for ids in (SRC, TGT_IN, TGT_OUT)]
    narrow, padded = inspect(model, SRC, TGT_IN, TGT_OUT), inspect(model, *wide)
    for place, figures in narrow.attention.items():
        assert figures == pytest.approx(padded.attention[place], rel=1e-4)
    assert narrow.residual == pytest.approx(padded.residual, rel=1e-4)
    assert narrow.nll == pytest.approx(padded.nll, rel=1e-5)
    assert narrow.nll_of_another_source == pytest.approx(padded.nll_of_another_source, rel=1e-5)


def test_a_decoder_that_cannot_see_the_source_does_not_miss_it(model):
    seen = inspect(model, SRC, TGT_IN, TGT_OUT)
    assert abs(seen.nll - seen.nll_of_another_source) > 1e-4
    with torch.no_grad():
        for block in model.decoder:
            block.cross_attention.out_proj.weight.zero_()
    deaf = inspect(model, SRC, TGT_IN, TGT_OUT)
    assert deaf.nll == pytest.approx(deaf.nll_of_another_source, abs=1e-6)


def test_the_loss_and_the_sizes_are_those_of_the_model(model):
    seen = inspect(model, SRC, TGT_IN, TGT_OUT)
    logits = model(SRC, TGT_IN)
    expected = nn.functional.cross_entropy(
        logits.flatten(0, 1), TGT_OUT.flatten(), ignore_index=PAD
    )
    assert seen.nll == pytest.approx(expected.item(), rel=1e-5)
    assert set(seen.residual) == {
        (part, layer) for part in ("encoder", "decoder") for layer in (0, 1)
    }
    assert all(size > 0 for size in seen.residual.values())


def test_sharp_scores_are_seen_as_such(model):
    with torch.no_grad():
        model.decoder[1].cross_attention.W_query.weight.mul_(1000)
    seen = inspect(model, SRC, TGT_IN, TGT_OUT)
    sharp = seen.attention["cross", 1]
    assert sharp.largest_score > 50
    assert sharp.evenness < 0.5
    assert seen.attention["encoder", 0].largest_score < 50


def test_the_model_is_left_as_it_was(model):
    for training in (True, False):
        model.train(training)
        state = torch.get_rng_state()
        inspect(model, SRC, TGT_IN, TGT_OUT)
        assert model.training == training
        assert torch.equal(torch.get_rng_state(), state)
    assert not any(block._forward_hooks for block in model.modules())


def test_every_parameter_belongs_to_one_part(model):
    found = parts(model)
    assert set(found) == {"embedding", "encoder", "decoder"}
    assert sum(map(len, found.values())) == len(list(model.parameters()))
    assert len({id(each) for part in found.values() for each in part}) == sum(
        map(len, found.values())
    )


def test_norms_and_update_ratios_are_those_of_all_numbers_together():
    assert norm([torch.tensor([3.0]), torch.tensor([[4.0]])]) == pytest.approx(5)
    assert norm([]) == 0.0
    before = {"a": [torch.tensor([3.0, 4.0])], "b": [torch.zeros(2)]}
    after = {"a": [torch.tensor([3.0, 4.5])], "b": [torch.zeros(2)]}
    assert update_ratios(before, after) == pytest.approx({"a": 0.1, "b": 0.0})
