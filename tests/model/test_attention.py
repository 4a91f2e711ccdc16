"""The numbers of the lesson, the equality of the two paths, and the effect of masks."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from translate.model.attention import MultiHeadAttention, SelfAttention, scores_to_weights
from translate.model.masks import causal_mask, padding_mask

# Raschka, "Build a Large Language Model (From Scratch)", chapter 3: six tokens, d_in = 3.
LESSON = torch.tensor(
    [
        [0.43, 0.15, 0.89],  # Your
        [0.55, 0.87, 0.66],  # journey
        [0.57, 0.85, 0.64],  # starts
        [0.22, 0.58, 0.33],  # with
        [0.77, 0.25, 0.10],  # one
        [0.05, 0.80, 0.55],  # step
    ]
)


def near(actual: torch.Tensor, expected: list) -> None:
    assert_close(actual, torch.tensor(expected), atol=1e-4, rtol=0)


@pytest.fixture
def lesson_attention() -> SelfAttention:
    torch.manual_seed(123)
    return SelfAttention(3, 2)


def test_lesson_without_trained_weights():
    scores = LESSON @ LESSON[1]
    near(scores, [0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])
    weights = scores.softmax(-1)
    near(weights, [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581])
    near(weights @ LESSON, [0.4419, 0.6515, 0.5683])


def test_lesson_stages_of_self_attention(lesson_attention):
    stages = lesson_attention.stages(LESSON)
    near(lesson_attention.W_query, [[0.2961, 0.5166], [0.2517, 0.6886], [0.0740, 0.8665]])
    near(lesson_attention.W_key, [[0.1366, 0.1025], [0.1841, 0.7264], [0.3153, 0.6871]])
    near(lesson_attention.W_value, [[0.0756, 0.1966], [0.3164, 0.4017], [0.1186, 0.8274]])
    near(
        stages.queries,
        [
            [0.2309, 1.0966],
            [0.4306, 1.4551],
            [0.4300, 1.4343],
            [0.2355, 0.7990],
            [0.2983, 0.6565],
            [0.2568, 1.0533],
        ],
    )
    near(
        stages.keys,
        [
            [0.3669, 0.7646],
            [0.4433, 1.1419],
            [0.4361, 1.1156],
            [0.2408, 0.6706],
            [0.1827, 0.3292],
            [0.3275, 0.9642],
        ],
    )
    near(
        stages.values,
        [
            [0.1855, 0.8812],
            [0.3951, 1.0037],
            [0.3879, 0.9831],
            [0.2393, 0.5493],
            [0.1492, 0.3346],
            [0.3221, 0.7863],
        ],
    )
    near(stages.scores[1], [1.2705, 1.8524, 1.8111, 1.0795, 0.5577, 1.5440])
    near(stages.weights[1], [0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820])
    near(
        lesson_attention(LESSON),
        [
            [0.2996, 0.8053],
            [0.3061, 0.8210],
            [0.3058, 0.8203],
            [0.2948, 0.7939],
            [0.2927, 0.7891],
            [0.2990, 0.8040],
        ],
    )


def test_row_two_of_the_batch_equals_token_two_alone(lesson_attention):
    stages = lesson_attention.stages(LESSON)
    query = LESSON[1] @ lesson_attention.W_query
    weights = (stages.keys @ query / math.sqrt(2)).softmax(-1)
    assert_close(stages.context[1], weights @ stages.values)


def test_lesson_with_linear_layers_and_causal_weights():
    torch.manual_seed(789)
    layers = [nn.Linear(3, 2, bias=False) for _ in range(3)]
    attention = SelfAttention(3, 2)
    with torch.no_grad():
        for weight, layer in zip(attention.parameters(), layers, strict=True):
            weight.copy_(layer.weight.T)
    near(
        attention(LESSON),
        [
            [-0.0739, 0.0713],
            [-0.0748, 0.0703],
            [-0.0749, 0.0702],
            [-0.0760, 0.0685],
            [-0.0763, 0.0679],
            [-0.0754, 0.0693],
        ],
    )
    causal = attention.stages(LESSON, causal_mask(6)[0, 0]).weights
    near(causal[1, :2], [0.5517, 0.4483])
    near(causal[2, :3], [0.3800, 0.3097, 0.3103])
    near(causal[5], [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529])
    assert causal.triu(1).eq(0).all()


def lesson_multi_head(n_heads: int) -> MultiHeadAttention:
    """The lesson's layers map width 3 to 2; ours keep the width, so their matrices are put in.

    The lesson draws query, key, value, then the output projection.
    """
    attention = MultiHeadAttention(2, n_heads)
    torch.manual_seed(123)
    layers = [nn.Linear(3, 2, bias=False) for _ in range(3)]
    attention.W_query, attention.W_key, attention.W_value = layers
    attention.out_proj = nn.Linear(2, 2)
    return attention


def test_lesson_causal_attention_is_one_head_before_the_output_projection():
    attention = lesson_multi_head(1)
    record = []
    attention(LESSON[None], mask=causal_mask(6), record=record)
    near(
        record[0].context[0, 0],
        [
            [-0.4519, 0.2216],
            [-0.5874, 0.0058],
            [-0.6300, -0.0632],
            [-0.5675, -0.0843],
            [-0.5526, -0.0981],
            [-0.5299, -0.1081],
        ],
    )


def test_lesson_multi_head_causal_attention():
    attention = lesson_multi_head(2)
    x = LESSON[None]
    near(
        attention(x, mask=causal_mask(6))[0],
        [
            [0.3190, 0.4858],
            [0.2943, 0.3897],
            [0.2856, 0.3593],
            [0.2693, 0.3873],
            [0.2639, 0.3928],
            [0.2575, 0.4028],
        ],
    )


def test_one_head_equals_the_lessons_self_attention():
    single, multi = SelfAttention(6, 6), MultiHeadAttention(6, 1)
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            getattr(multi, name).weight.copy_(getattr(single, name).T)
        multi.out_proj.weight.copy_(torch.eye(6))
        multi.out_proj.bias.zero_()
    x = torch.randn(5, 6)
    assert_close(multi(x[None])[0], single(x))


def both_paths(attention, x, memory, mask):
    """Output and gradients of the fused and of the explicit path, from the same weights."""
    results = []
    for explicit_up_to in (0, 64):
        attention.explicit_up_to = explicit_up_to
        attention.zero_grad()
        x_, memory_ = x.clone().requires_grad_(), memory.clone().requires_grad_()
        output = attention(x_, memory_, mask)
        output.square().sum().backward()
        grads = [p.grad.clone() for p in attention.parameters()]
        results.append((output.detach(), x_.grad, memory_.grad, *grads))
    return results


@pytest.mark.parametrize("kind", ["none", "padding", "causal", "causal and padding"])
def test_fused_and_explicit_path_agree_forward_and_backward(kind):  # A02
    ids = torch.tensor([[5, 5, 5, 5, 5], [5, 5, 0, 0, 0], [5, 0, 0, 0, 0]])
    mask = {
        "none": None,
        "padding": padding_mask(ids, 0),
        "causal": causal_mask(5),
        "causal and padding": padding_mask(ids, 0) & causal_mask(5),
    }[kind]
    x = torch.randn(3, 5, 8)
    fused, explicit = both_paths(MultiHeadAttention(8, 2), x, x, mask)
    for a, b in zip(fused, explicit, strict=True):
        assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("n_new", [1, 2, 5])
@pytest.mark.parametrize("explicit_up_to", [0, 64])
@pytest.mark.parametrize("padded", [False, True])
def test_causal_means_the_last_positions_and_adds_to_padding(
    n_new, explicit_up_to, padded
):  # A07, A11, A12
    attention = MultiHeadAttention(8, 2)
    attention.explicit_up_to = explicit_up_to
    x = torch.randn(2, 5, 8)
    mask = padding_mask(torch.tensor([[0, 5, 5, 5, 5], [5, 5, 5, 0, 0]]), 0) if padded else None
    causal = causal_mask(n_new, 5)
    output = attention(x[:, 5 - n_new :], x, causal if mask is None else causal & mask)
    for row in range(2):
        for i in range(5 - n_new, 5):
            real = [j for j in range(i + 1) if mask is None or mask[row, 0, 0, j]]
            if real:
                alone = attention(x[row, None, i : i + 1], x[row, None, real])
            else:
                alone = attention.out_proj.bias.expand(1, 1, 8)
            assert_close(output[row, i - 5 + n_new], alone[0, 0], atol=1e-5, rtol=1e-5)


def test_fully_masked_rows_give_zero_context_and_no_nan_in_any_gradient():  # A01, A02
    attention = MultiHeadAttention(8, 2)
    x = torch.randn(2, 4, 8)
    mask = torch.tensor([[True] * 4, [False] * 4])[:, None, None, :]
    fused, explicit = both_paths(attention, x, x, mask)
    for a, b in zip(fused, explicit, strict=True):
        assert a.isfinite().all()
        assert_close(a, b, atol=1e-5, rtol=1e-5)
    assert_close(fused[0][1], attention.out_proj.bias.expand(4, 8).detach())
    alone, _ = both_paths(attention, x[:1], x[:1], mask[:1])
    assert_close(fused[1][:1], alone[1], atol=1e-5, rtol=1e-5)


def test_padding_gets_exactly_no_weight_and_its_content_does_not_matter():  # A03
    attention = MultiHeadAttention(8, 2)
    memory = torch.randn(1, 6, 8)
    mask = padding_mask(torch.tensor([[5, 5, 5, 0, 0, 0]]), 0)
    x, record = torch.randn(1, 2, 8), []
    before = attention(x, memory, mask, record=record)
    weights = record[0].weights
    assert weights[..., 3:].eq(0).all()
    assert_close(weights.sum(-1), torch.ones(1, 2, 2))
    memory[:, 3:] = torch.randn(1, 3, 8) * 100
    assert torch.equal(before, attention(x, memory, mask, record=[]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.int64])
def test_masks_that_are_not_boolean_are_refused(dtype):  # A05
    attention = MultiHeadAttention(8, 2)
    x = torch.randn(1, 3, 8)
    with pytest.raises(TypeError, match="boolean"):
        attention(x, mask=torch.ones(3, 3, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("explicit", [False, True])
def test_half_precision_is_finite_and_padding_weighs_nothing(dtype, explicit):  # A06, A07
    attention = MultiHeadAttention(8, 2).to(dtype)
    x = torch.randn(2, 4, 8, dtype=dtype) * 10
    ids = torch.tensor([[0, 5, 5, 5], [5, 5, 0, 0]])  # left- and right-padded
    mask = padding_mask(ids, 0) & causal_mask(4)
    record = [] if explicit else None
    attention.explicit_up_to = 0
    assert attention(x, mask=mask, record=record).isfinite().all()
    if explicit:
        weights = record[0].weights
        assert weights.masked_select(~mask.expand_as(weights)).eq(0).all()


@pytest.mark.parametrize("n_heads", [1, 2, 8])
def test_scores_are_scaled_by_the_width_of_a_head(n_heads):  # A16
    attention = MultiHeadAttention(64, n_heads)
    x, record = torch.randn(1, 4, 64), []
    attention(x, record=record)
    stages = record[0]
    outside = (stages.queries @ stages.keys.mT / math.sqrt(64 / n_heads)).softmax(-1)
    assert_close(stages.weights, outside)


def test_each_sentence_of_a_batch_gets_its_own_mask_in_every_head():  # A15
    attention = MultiHeadAttention(8, 4)
    x, record = torch.randn(2, 6, 8), []
    mask = padding_mask(torch.tensor([[5, 5, 5, 0, 0, 0], [5] * 6]), 0)
    attention(x, mask=mask, record=record)
    assert record[0].weights[0, ..., 3:].eq(0).all()
    for row, length in ((0, 3), (1, 6)):
        alone, one = [], x[row : row + 1, :length]
        attention(one, record=alone)
        both = record[0].weights[row, :, :length, :length]
        assert_close(both, alone[0].weights[0], atol=1e-5, rtol=1e-5)


def test_equals_nn_multihead_attention_with_copied_weights():
    ours, theirs = MultiHeadAttention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
    copy_attention(ours, theirs)
    x = torch.randn(2, 5, 8)
    ids = torch.tensor([[5, 5, 5, 0, 0], [5] * 5])
    results = []
    for run in (
        lambda z: ours(z, mask=padding_mask(ids, 0)),
        lambda z: theirs(z, z, z, key_padding_mask=ids == 0)[0],  # there True means "ignore"
    ):
        z = x.clone().requires_grad_()
        output = run(z)
        output.square().sum().backward()
        results.append((output, z.grad))
    for a, b in zip(*results, strict=True):
        assert_close(a, b, atol=1e-5, rtol=1e-5)
    assert_close(
        torch.cat([m.weight.grad for m in (ours.W_query, ours.W_key, ours.W_value)]),
        theirs.in_proj_weight.grad,
        atol=1e-5,
        rtol=1e-5,
    )


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Copy our weights into PyTorch's attention, whose input biases are initially zero."""
    with torch.no_grad():
        theirs.in_proj_weight.copy_(
            torch.cat([ours.W_query.weight, ours.W_key.weight, ours.W_value.weight])
        )
        theirs.out_proj.weight.copy_(ours.out_proj.weight)
        theirs.out_proj.bias.copy_(ours.out_proj.bias)


def test_scores_grow_with_width_and_scaling_holds_them():
    """The lesson's reason for √d_k: unscaled dot products have variance d_k, scaled ones 1."""
    wide = torch.randn(2, 512, 256)
    scores = wide[0] @ wide[1].T
    assert 200 < scores.var() < 320
    unscaled, scaled = scores.softmax(-1), scores_to_weights(scores, 1 / 16)
    assert unscaled.max(-1).values.mean() > 0.5  # nearly one-hot: no gradient to learn from
    assert scaled.max(-1).values.mean() < 0.1


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="n_heads 3 does not divide d_model 8"):
        MultiHeadAttention(8, 3)
