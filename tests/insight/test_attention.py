"""Attention between words and between pieces."""

from __future__ import annotations

import pytest
import torch

from translate.insight.attention import (
    AttentionMaps,
    attention_maps,
    join_pieces,
    pieces,
)
from translate.insight.plots import attention_heatmap
from translate.text.words import Word

TEXTS = ["This is an example.", "Das ist ein Beispiel.", "Wir \U0001f600 E-Mail, gut!", "a ▁ b"]


def maps_of(model, tokenizer, source: str, target: str, **options) -> AttentionMaps:
    return attention_maps(
        model, tokenizer, tokenizer.encode(source), tokenizer.encode(target), **options
    )


def test_pieces_join_to_words_with_sums_over_the_source_and_means_over_the_target():
    pieces = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.0, 0.4, 0.6]])
    target = [Word("a", 0, 2), Word("b", 2, 3)]
    source = [Word("x", 0, 1), Word("y", 1, 3)]
    joined = join_pieces(pieces, target, source)
    torch.testing.assert_close(joined, torch.tensor([[0.3, 0.7], [0.0, 1.0]]))


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("by_word", [True, False])
@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
@pytest.mark.parametrize("source", ["a", TEXTS[0], TEXTS[2], TEXTS[3], "neu \u0635 \U0001f680"])
@pytest.mark.parametrize("target", ["", "gut", TEXTS[1], TEXTS[2]])
def test_rows_sum_to_one_and_labels_are_the_words(
    build, tokenizer, heads, by_word, kind, source, target
):  # B07 B08 B09
    maps = maps_of(
        build(n_heads=heads), tokenizer, source, target, kind=kind, layer=1, by_word=by_word
    )
    rows, columns = maps.rows, maps.columns
    assert maps.weights.shape == (heads, len(rows), len(columns))
    torch.testing.assert_close(
        maps.weights.sum(dim=2), torch.ones(heads, len(rows)), rtol=1e-4, atol=1e-4
    )
    if kind == "decoder":
        assert rows == columns and rows[0] == "<s>"
    else:
        assert rows[-1] == columns[-1] == "</s>"
    assert "<pad>" not in rows + columns
    assert all(rows + columns)


def test_the_example_has_its_words_on_both_axes(build, tokenizer):
    maps = maps_of(build(), tokenizer, TEXTS[0], TEXTS[1])
    assert maps.columns == ["This", "is", "an", "example", ".", "</s>"]
    assert maps.rows == ["Das", "ist", "ein", "Beispiel", ".", "</s>"]


def test_axes_say_whether_words_or_pieces_are_on_them(build, tokenizer):
    texts = (build(), tokenizer, TEXTS[0], TEXTS[1])
    maps = maps_of(*texts, kind="encoder")
    assert (maps.row_name, maps.column_name) == (
        "source word that attends",
        "source word attended to",
    )
    pieces_maps = maps_of(*texts, by_word=False)
    assert pieces_maps.row_name == "target piece being predicted"
    assert attention_heatmap(pieces_maps, "").axes[0].get_ylabel() == pieces_maps.row_name


def test_names_of_pieces_join_to_the_text(build, tokenizer):
    ids = tokenizer.encode("This Beispielgut E-Mail.")
    names = [piece.text for piece in pieces(tokenizer, ids)]
    assert len(names) == len(ids)
    assert not any("▁" in name for name in names)
    # A hyphen before letters joins them to the name before; every other name starts a word.
    text = "".join(name[1:] if name[0] == "-" and len(name) > 1 else f" {name}" for name in names)
    assert text.replace(" -", "-").replace(" .", ".") == " This Beispielgut E-Mail."


def test_panels_are_those_of_the_layer_and_head(build, tokenizer):
    model = build(n_heads=4, decoder_layers=3)
    texts = (model, tokenizer, TEXTS[0], TEXTS[1])
    one = maps_of(*texts, layer=2, head=1)
    heads, layers, mean = maps_of(*texts, layer=2), maps_of(*texts, head=1), maps_of(*texts)
    assert one.titles == ["layer 3, head 2"]
    assert heads.titles[1] == layers.titles[2] == one.titles[0]
    torch.testing.assert_close(heads.weights[1], one.weights[0])
    torch.testing.assert_close(layers.weights[2], one.weights[0])
    every = torch.stack([maps_of(*texts, layer=layer).weights for layer in range(3)])
    torch.testing.assert_close(mean.weights[0], every.mean(dim=(0, 1)))


def test_the_decoder_never_attends_to_later_tokens(build, tokenizer):
    maps = maps_of(build(), tokenizer, TEXTS[0], TEXTS[1], kind="decoder", layer=0, by_word=False)
    assert maps.weights.triu(1).eq(0).all()
    assert maps.weights.tril().gt(0).any(dim=2).all()


def test_a_row_of_cross_attention_does_not_depend_on_the_word_it_predicts(build, tokenizer):
    model = build()
    first = maps_of(model, tokenizer, TEXTS[0], "Das ist").weights[0]
    other = maps_of(model, tokenizer, TEXTS[0], "gut ist").weights[0]
    torch.testing.assert_close(first[0], other[0])
    assert not torch.allclose(first[1], other[1], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("depths", [(1, 3), (3, 1)])
def test_depths_may_differ(build, tokenizer, depths):  # G06
    model = build(encoder_layers=depths[0], decoder_layers=depths[1])
    assert maps_of(model, tokenizer, TEXTS[0], TEXTS[1]).weights.isfinite().all()


def test_a_text_beyond_max_length_is_shown_as_far_as_the_model_reads_it(build, tokenizer):
    weights = maps_of(build(max_length=6), tokenizer, "gut " * 50, "Das ist " * 50).weights[0]
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(weights)))


def test_a_model_in_training_mode_is_refused(build, tokenizer):  # B07
    with pytest.raises(ValueError, match="training mode"):
        maps_of(build().train(), tokenizer, "a", "b")
