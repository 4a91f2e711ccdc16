"""The stages by name: predicted shapes, one token alone, and the first stage that is wrong."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from translate.insight.trace import (
    Rule,
    compare_stages,
    lesson_trace,
    model_trace,
    row_of,
    rules,
    run_stages,
    single_token,
)
from translate.model.attention import MultiHeadAttention, SelfAttention, Stages
from translate.model.masks import causal_mask

B, T, S, D = 2, 5, 7, 12


def test_a_shape_follows_from_its_rule_and_a_product_needs_equal_inner_letters():
    assert Rule("r", "", (("a", "b"), ("b", "c"))).shape == ("a", "c")
    assert str(Rule("r", "", (("a", "b"), ("b", "c")))) == "(a, b) @ (b, c) -> (a, c)"
    assert Rule("r", "", (("a", "b"),)).predict({"a": 2, "b": 3}) == (2, 3)
    with pytest.raises(ValueError, match="inner sizes differ"):
        _ = Rule("r", "", (("a", "b"), ("a", "b"))).shape


def test_the_rules_are_those_of_every_stage_in_order():
    assert ("x", *(rule.stage for rule in rules())) == Stages._fields
    assert [rule.shape for rule in rules("T", "S")] == [
        ("T", "d_k"), ("S", "d_k"), ("S", "d_k"), ("T", "S"), ("T", "S"), ("T", "d_k"),
    ]  # fmt: skip


def test_the_lesson_has_the_predicted_shapes_and_the_books_numbers():
    trace = lesson_trace()
    stages = trace.stages._asdict()
    for rule in trace.rules:
        assert stages[rule.stage].shape == rule.predict(trace.sizes)
    assert trace.sizes == {"n": 6, "d_in": 3, "d_k": 2}
    assert_close(trace.stages.context[1], torch.tensor([0.3061, 0.8210]), atol=1e-4, rtol=0)


def test_the_lesson_leaves_the_random_state_unchanged():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    lesson_trace()
    assert_close(torch.rand(3), expected)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_head_of_a_model_has_the_predicted_shapes_and_equals_every_token_alone(
    build, tokenizer, norm, kind
):
    model = build(n_heads=4, encoder_layers=2, decoder_layers=3, norm=norm)
    source, target = tokenizer.encode("This is an example"), tokenizer.encode("Das ist")
    for layer, head in ((0, 0), (1, 3)):
        trace = model_trace(model, tokenizer, source, target, kind=kind, layer=layer, head=head)
        stages = trace.stages._asdict()
        for rule in trace.rules:
            assert stages[rule.stage].shape == rule.predict(trace.sizes)
        assert len(trace.rows) == len(trace.x)
        assert len(trace.columns) == len(trace.memory)
        for row in range(len(trace.x)):
            assert compare_stages(row_of(trace.stages, row), single_token(trace, row)) is None


def test_rows_and_columns_are_named_after_queries_and_keys(build, tokenizer):
    model = build(n_heads=1)
    source, target = tokenizer.encode("This is"), tokenizer.encode("Das")
    names = {
        kind: model_trace(model, tokenizer, source, target, kind=kind, layer=0, head=0)
        for kind in ("encoder", "decoder", "cross")
    }
    assert names["encoder"].rows == names["encoder"].columns == names["cross"].columns
    assert names["encoder"].rows[-1] == "</s>"
    assert names["decoder"].rows == names["decoder"].columns == names["cross"].rows
    assert names["decoder"].rows[0] == "<s>"
    assert names["decoder"].mask.tolist() == causal_mask(len(target) + 1)[0, 0].tolist()
    assert names["encoder"].mask is names["cross"].mask is None


def self_attention() -> tuple[SelfAttention, torch.Tensor]:
    torch.manual_seed(0)
    return SelfAttention(T, 3), torch.randn(T, T)


class ScaledByInput(SelfAttention):
    """Divides by √d_in instead of √d_k."""

    def stages(self, x, mask=None):
        right = super().stages(x, mask)
        weights = (right.scores / math.sqrt(x.shape[-1])).softmax(-1)
        return right._replace(weights=weights, context=weights @ right.values)


class KeysAgainstQueries(SelfAttention):
    """Transposes the queries instead of the keys: row i then says which tokens attend to i."""

    def stages(self, x, mask=None):
        right = super().stages(x, mask)
        scores = right.keys @ right.queries.T
        weights = (scores / math.sqrt(scores.shape[-1])).softmax(-1)
        return right._replace(scores=scores, weights=weights, context=weights @ right.values)


class SoftmaxOverQueries(SelfAttention):
    def stages(self, x, mask=None):
        right = super().stages(x, mask)
        weights = (right.scores / math.sqrt(right.keys.shape[-1])).softmax(-2)
        return right._replace(weights=weights, context=weights @ right.values)


class InvertedMask(SelfAttention):
    def stages(self, x, mask=None):
        return super().stages(x, ~mask | torch.eye(len(x), dtype=torch.bool))


class ValuesAreKeys(SelfAttention):
    def stages(self, x, mask=None):
        right = super().stages(x, mask)
        return right._replace(values=right.keys, context=right.weights @ right.keys)


class SummedContext(SelfAttention):
    """Adds the values without their weights."""

    def stages(self, x, mask=None):
        right = super().stages(x, mask)
        return right._replace(context=right.values.sum(0).expand_as(right.context))


@pytest.mark.parametrize(
    ("broken", "stage"),
    [
        (ValuesAreKeys, "values"),
        (KeysAgainstQueries, "scores"),
        (ScaledByInput, "weights"),
        (SoftmaxOverQueries, "weights"),
        (InvertedMask, "weights"),
        (SummedContext, "context"),
    ],
)
def test_the_first_wrong_stage_is_named(broken, stage):
    right, x = self_attention()
    wrong = broken(T, 3)
    wrong.load_state_dict(right.state_dict())
    mask = causal_mask(T)[0, 0]
    assert compare_stages(run_stages(right, x, mask=mask), run_stages(right, x, mask=mask)) is None
    found = compare_stages(run_stages(right, x, mask=mask), run_stages(wrong, x, mask=mask))
    assert found.startswith(f"{stage}: numbers differ by up to ")


class HeadsNotTransposed(MultiHeadAttention):
    def merge_heads(self, context):
        b, heads, t, d_k = context.shape
        return context.reshape(b, t, heads * d_k)


def test_heads_merged_without_transposing_show_in_the_output():
    right, wrong = MultiHeadAttention(D, 4), HeadsNotTransposed(D, 4)
    wrong.load_state_dict(right.state_dict())
    x = torch.randn(B, T, D)
    assert compare_stages(run_stages(right, x), run_stages(wrong, x)).startswith("output: ")


def test_a_wrong_shape_is_named_before_any_number():
    right, x = self_attention()
    stages = run_stages(right, x)
    other = {**stages, "queries": stages["queries"] + 1, "context": stages["context"].T}
    assert compare_stages(stages, other) == "context: shape (5, 3) against (3, 5)"


def test_one_head_equals_the_lesson_and_keys_come_from_the_memory():
    single = MultiHeadAttention(D, 1)
    lesson = SelfAttention(D, D)
    with torch.no_grad():
        lesson.W_query.copy_(single.W_query.weight.T)
        lesson.W_key.copy_(single.W_key.weight.T)
        lesson.W_value.copy_(single.W_value.weight.T)
    x = torch.randn(B, T, D)
    ours = {name: stage[0, 0] for name, stage in run_stages(single, x).items() if stage.ndim == 4}
    assert compare_stages(ours, run_stages(lesson, x[0])) is None
    crossed = run_stages(single, x, torch.randn(B, S, D))
    assert crossed["scores"].shape == (B, 1, T, S)
    assert crossed["output"].shape == (B, T, D)


def test_nan_disagrees():
    right, x = self_attention()
    stages = run_stages(right, x)
    broken = {**stages, "weights": torch.full_like(stages["weights"], math.nan)}
    assert compare_stages(stages, broken) == "weights: numbers differ by up to nan"


def test_a_model_in_training_mode_is_refused(build, tokenizer):
    model = build().train()
    with pytest.raises(ValueError, match="training mode"):
        model_trace(model, tokenizer, [5], [6], kind="cross", layer=0, head=0)
