"""Measurements of a model, against values computed by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from translate.insight.measure import inspect, parameters_by_module, update_ratios
from translate.model.attention import MultiHeadAttention

PAD, BOS, EOS = 0, 2, 3
SRC = torch.tensor([[5, 6, 7, EOS], [8, EOS, PAD, PAD], [9, 4, EOS, PAD]])
TGT_IN = torch.tensor([[BOS, 5, 6], [BOS, 7, PAD], [BOS, 8, 9]])
TGT_OUT = torch.tensor([[5, 6, EOS], [7, EOS, PAD], [8, 9, EOS]])


@torch.no_grad()
def uniform(model):
    """Make all scores 0, so that every token attends equally to all allowed tokens."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.W_query.weight.zero_()
    return model


def test_equal_scores_have_the_maximum_entropy(model):
    seen = inspect(uniform(model), SRC, TGT_IN, TGT_OUT)
    encoder, decoder, cross = (seen.attention[kind, 0] for kind in ("encoder", "decoder", "cross"))
    assert {each.max_score for each in (encoder, decoder, cross)} == {0.0}
    for each in (encoder, decoder, cross):
        assert each.relative_entropy == pytest.approx(1)
    # Sources of 4, 2 and 3 tokens: n queries with n allowed keys each.
    assert encoder.entropy == pytest.approx(sum(n * math.log(n) for n in (4, 2, 3)) / 9)
    assert encoder.boundary_weight == pytest.approx(3 / 9)  # of n queries, each gives eos 1 / n
    assert cross.entropy == pytest.approx((3 * math.log(4) + 2 * math.log(2) + 3 * math.log(3)) / 8)
    assert cross.boundary_weight == pytest.approx((3 / 4 + 2 / 2 + 3 / 3) / 8)
    assert decoder.entropy == pytest.approx((3 * math.log(2) + 2 * math.log(3)) / 8)


def test_padding_changes_no_measurement(model):
    wide = [torch.nn.functional.pad(ids, (0, 3)) for ids in (SRC, TGT_IN, TGT_OUT)]
    narrow, padded = inspect(model, SRC, TGT_IN, TGT_OUT), inspect(model, *wide)
    for place, figures in narrow.attention.items():
        assert figures == pytest.approx(padded.attention[place], rel=1e-4)
    assert narrow.residual_rms == pytest.approx(padded.residual_rms, rel=1e-4)
    assert narrow.nll == pytest.approx(padded.nll, rel=1e-5)
    assert narrow.nll_wrong_source == pytest.approx(padded.nll_wrong_source, rel=1e-5)


def test_a_decoder_without_cross_attention_has_the_same_loss_with_a_wrong_source(model):
    seen = inspect(model, SRC, TGT_IN, TGT_OUT)
    assert abs(seen.nll - seen.nll_wrong_source) > 1e-4
    with torch.no_grad():
        for block in model.decoder:
            block.cross_attention.sublayer.out_proj.weight.zero_()
    blind = inspect(model, SRC, TGT_IN, TGT_OUT)
    assert blind.nll == pytest.approx(blind.nll_wrong_source, abs=1e-6)


def test_the_losses_are_those_of_the_model(model):
    seen = inspect(model, SRC, TGT_IN, TGT_OUT)
    for nll, src in ((seen.nll, SRC), (seen.nll_wrong_source, SRC.roll(1, 0))):
        logits = model(src, TGT_IN).flatten(0, 1)
        expected = nn.functional.cross_entropy(logits, TGT_OUT.flatten(), ignore_index=PAD)
        assert nll == pytest.approx(expected.item(), rel=1e-5)
    alone = inspect(model, SRC[:1], TGT_IN[:1], TGT_OUT[:1])
    assert alone.nll_wrong_source is None


def test_the_rms_is_that_of_what_each_block_returns(model):
    found = inspect(model, SRC, TGT_IN, TGT_OUT).residual_rms
    expected = {}

    def hook(stack: str, layer: int, real: torch.Tensor):
        def measure(module, inputs, x):
            expected[stack, layer] = x[real].square().mean().sqrt().item()

        return measure

    for layer in (0, 1):
        model.encoder[layer].register_forward_hook(hook("encoder", layer, SRC != PAD))
        model.decoder[layer].register_forward_hook(hook("decoder", layer, TGT_OUT != PAD))
    model(SRC, TGT_IN)
    assert len(expected) == 4
    assert found == pytest.approx(expected, rel=1e-4)


def test_large_queries_have_large_scores_and_low_entropy(model):
    with torch.no_grad():
        model.decoder[1].cross_attention.sublayer.W_query.weight.mul_(1000)
    seen = inspect(model, SRC, TGT_IN, TGT_OUT)
    sharp = seen.attention["cross", 1]
    assert sharp.max_score > 50
    assert sharp.relative_entropy < 0.5
    assert seen.attention["encoder", 0].max_score < 50


def test_the_model_is_left_as_it_was(model):
    for training in (True, False):
        model.train(training)
        state = torch.get_rng_state()
        inspect(model, SRC, TGT_IN, TGT_OUT)
        assert model.training == training
        assert torch.equal(torch.get_rng_state(), state)


def test_every_parameter_belongs_to_one_module(model):
    found = [id(each) for group in parameters_by_module(model).values() for each in group]
    assert sorted(found) == sorted(id(each) for each in model.parameters())


def test_update_ratios_divide_by_the_norm_of_the_weights():
    before = {"a": [torch.tensor([3.0, 0.0]), torch.tensor([[4.0]])], "b": [torch.zeros(2)]}
    after = {"a": [torch.tensor([3.0, 0.4]), torch.tensor([[4.3]])], "b": [torch.zeros(2)]}
    assert update_ratios(before, after) == pytest.approx({"a": 0.1, "b": 0.0})
