"""Cross-attention between words."""

from __future__ import annotations

import pytest
import torch

from translate.insight.attention import join_pieces, word_attention
from translate.model.transformer import Transformer, TransformerConfig
from translate.text.tokenizer import Tokenizer
from translate.text.words import Word

TEXTS = ["This is an example.", "Das ist ein Beispiel.", "Wir \U0001f600 E-Mail, gut!", "a ▁ b"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS * 3, vocab_size=60)[0]


def build(tokenizer: Tokenizer, **settings) -> Transformer:
    torch.manual_seed(0)
    settings = {"d_model": 16, "n_heads": 4, "d_ff": 32, "max_length": 80, **settings}
    config = TransformerConfig(vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, **settings)
    return Transformer(config).eval()


def test_pieces_join_to_words_with_sums_over_the_source_and_means_over_the_target():
    pieces = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.0, 0.4, 0.6]])
    target = [Word("a", 0, 2), Word("b", 2, 3)]
    source = [Word("x", 0, 1), Word("y", 1, 3)]
    joined = join_pieces(pieces, target, source)
    torch.testing.assert_close(joined, torch.tensor([[0.3, 0.7], [0.0, 1.0]]))


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("source", ["a", TEXTS[0], TEXTS[2], TEXTS[3], "neu \u0635 \U0001f680"])
@pytest.mark.parametrize("target", ["", "gut", TEXTS[1], TEXTS[2]])
def test_rows_sum_to_one_and_labels_are_the_words(tokenizer, heads, source, target):  # B07 B08 B09
    weights, rows, columns = word_attention(
        build(tokenizer, n_heads=heads), tokenizer, source, target
    )
    assert weights.shape == (len(rows), len(columns))
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(rows)), rtol=1e-4, atol=1e-4)
    assert rows[-1] == columns[-1] == "</s>"
    assert "<pad>" not in rows + columns
    assert all(rows + columns)


def test_the_example_has_its_words_on_both_axes(tokenizer):
    _, rows, columns = word_attention(build(tokenizer), tokenizer, TEXTS[0], TEXTS[1])
    assert columns == ["This", "is", "an", "example", ".", "</s>"]
    assert rows == ["Das", "ist", "ein", "Beispiel", ".", "</s>"]


def test_a_row_is_what_the_decoder_looks_at_before_it_knows_the_word(tokenizer):
    model = build(tokenizer)
    first = word_attention(model, tokenizer, TEXTS[0], "Das ist")
    other = word_attention(model, tokenizer, TEXTS[0], "gut ist")
    torch.testing.assert_close(first.weights[0], other.weights[0])
    assert not torch.allclose(first.weights[1], other.weights[1], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("depths", [(1, 3), (3, 1)])
def test_depths_may_differ(tokenizer, depths):  # G06
    model = build(tokenizer, encoder_layers=depths[0], decoder_layers=depths[1])
    assert word_attention(model, tokenizer, TEXTS[0], TEXTS[1]).weights.isfinite().all()


def test_a_text_beyond_the_models_length_is_shown_as_far_as_it_was_read(tokenizer):
    model = build(tokenizer, max_length=6)
    weights, _, _ = word_attention(model, tokenizer, "gut " * 50, "Das ist " * 50)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(weights)))


def test_dropout_may_not_blur_the_picture(tokenizer):  # B07
    with pytest.raises(ValueError, match="training mode"):
        word_attention(build(tokenizer).train(), tokenizer, "a", "b")
