"""The blocks equal PyTorch's own layers with copied weights, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from translate.model.attention import MultiHeadAttention
from translate.model.layers import DecoderBlock, EncoderBlock, sinusoidal_positions
from translate.model.masks import causal_mask, padding_mask

D, H, FF = 8, 2, 16
SRC = torch.tensor([[5, 5, 5, 0, 0], [5] * 5])
TGT = torch.tensor([[5, 5, 0, 0], [5] * 4])


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.copy_(
        torch.cat([ours.W_query.weight, ours.W_key.weight, ours.W_value.weight])
    )
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())


def copy_rest(ours, theirs, residuals) -> None:
    theirs.linear1.load_state_dict(ours.feed_forward.sublayer[0].state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.sublayer[2].state_dict())
    for i, residual in enumerate(residuals, start=1):
        getattr(theirs, f"norm{i}").load_state_dict(residual.norm.state_dict())


def assert_same_function(run_ours, run_theirs, x, *, real) -> None:
    """Equal outputs at real positions, and equal gradients with respect to the input."""
    results = []
    for run in (run_ours, run_theirs):
        x_ = x.clone().requires_grad_()
        output = run(x_)[real]
        output.square().sum().backward()
        results.append((output.detach(), x_.grad))
    for a, b in zip(*results, strict=True):
        assert_close(a, b, atol=1e-5, rtol=1e-5)


def randomise(module: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.5)
    return module


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_encoder_block_equals_nn_transformer_encoder_layer(norm):
    ours = randomise(EncoderBlock(D, H, FF, 0.0, norm))
    theirs = nn.TransformerEncoderLayer(
        D, H, FF, 0.0, batch_first=True, norm_first=norm == "pre"
    )  # in training mode: the inference path of eval() is another kernel
    with torch.no_grad():
        copy_attention(ours.self_attention.sublayer, theirs.self_attn)
        copy_rest(ours, theirs, [ours.self_attention, ours.feed_forward])
    assert_same_function(
        lambda x: ours(x, padding_mask(SRC, 0)),
        lambda x: theirs(x, src_key_padding_mask=SRC == 0),
        torch.randn(2, 5, D),
        real=SRC != 0,
    )


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_decoder_block_equals_nn_transformer_decoder_layer(norm):
    ours = randomise(DecoderBlock(D, H, FF, 0.0, norm))
    theirs = nn.TransformerDecoderLayer(D, H, FF, 0.0, batch_first=True, norm_first=norm == "pre")
    residuals = [ours.self_attention, ours.cross_attention, ours.feed_forward]
    with torch.no_grad():
        copy_attention(ours.self_attention.sublayer, theirs.self_attn)
        copy_attention(ours.cross_attention.sublayer, theirs.multihead_attn)
        copy_rest(ours, theirs, residuals)
    memory = torch.randn(2, 5, D)
    ahead = torch.ones(4, 4, dtype=torch.bool).triu(1)  # there True means "ignore"
    assert_same_function(
        lambda x: ours(x, memory, padding_mask(SRC, 0), causal_mask(4)),
        lambda x: theirs(
            x,
            memory,
            tgt_mask=ahead,
            tgt_key_padding_mask=TGT == 0,
            memory_key_padding_mask=SRC == 0,
        ),
        torch.randn(2, 4, D),
        real=TGT != 0,
    )


def test_pre_norm_leaves_the_residual_stream_a_plain_sum():
    block = EncoderBlock(D, H, FF, 0.0, "pre")
    with torch.no_grad():
        for last in (block.self_attention.sublayer.out_proj, block.feed_forward.sublayer[2]):
            last.weight.zero_()
            last.bias.zero_()
    x = torch.randn(2, 5, D)
    assert torch.equal(block(x, padding_mask(SRC, 0)), x)


def test_sinusoidal_positions_follow_the_paper():
    table = sinusoidal_positions(50, D)
    assert table.shape == (50, D)
    assert_close(table[0], torch.tensor([0.0, 1.0] * (D // 2)))
    assert_close(table[7, 2], torch.tensor(7 / 10_000 ** (2 / D)).sin())
    assert_close(table[7, 3], torch.tensor(7 / 10_000 ** (2 / D)).cos())
    assert len(table.unique(dim=0)) == 50
