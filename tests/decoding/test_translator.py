"""Text in, text out, on a model that knows its dozen sentences by heart."""

from __future__ import annotations

import random
import unicodedata
import warnings
from dataclasses import replace

import pytest
import torch

from translate.decoding.beam import ScoredHypothesis
from translate.decoding.prefix import Prefix
from translate.decoding.translator import Translation, Translator
from translate.errors import UserError
from translate.insight.steps import Steps
from translate.model.transformer import Transformer, TransformerConfig

EXAMPLE = "This is an example"


# G05, T02
def test_every_sentence_gets_its_own_translation_and_ends_by_itself(translator, pairs):
    found = translator.translate_detailed([pair.source for pair in pairs])
    assert [translation.text for translation in found] == [pair.target for pair in pairs]
    assert not any(translation.limit_reached for translation in found)
    assert len({translation.text.split()[0] for translation in found}) >= 8


# G05
def test_without_the_source_the_model_says_something_else(translator, pairs):
    ids = translator.tokenizer.encode
    src = torch.tensor([[*ids(pairs[0].source), translator.tokenizer.eos_id]])
    tgt_in = torch.tensor([[translator.tokenizer.bos_id, *ids(pairs[0].target)]])
    with torch.inference_mode():
        memory, mask = translator.model.encode(src)
        seen = translator.model.logits(translator.model.decode(tgt_in, memory, mask))
        blind = translator.model.logits(translator.model.decode(tgt_in, memory * 0, mask))
    assert (seen - blind).abs().max() > 1


# G07, G09
@pytest.mark.parametrize("beam", [1, 3])
def test_cut_at_any_character_a_translation_is_completed_alone_and_in_a_batch(
    translator, pairs, beam
):
    cut = [
        (pair.source, pair.target[:end], pair.target)
        for pair in pairs
        for end in range(len(pair.target) + 1)
    ]
    random.Random(0).shuffle(cut)
    sources, prefixes, targets = map(list, zip(*cut, strict=True))
    together = translator.translate_detailed(sources, prefixes, batch_size=50, beam=beam)
    for translation, prefix, target in zip(together, prefixes, targets, strict=True):
        assert translation.text == target
        assert not translation.limit_reached
        assert translation.prefix_finished == (prefix == target)
    for row in range(0, len(cut), 5):
        (alone,) = translator.translate_detailed([sources[row]], [prefixes[row]], beam=beam)
        assert replace(alone, score=None) == replace(together[row], score=None)
        assert alone.score == pytest.approx(together[row].score, abs=1e-4)


@pytest.mark.parametrize(
    "prefix",
    ["Das  ist\tein Bei", "  Das", "Das\u00a0ist ", "Xylophon", "日本", "das IST", "Das ist ein,"],
)
def test_the_output_starts_with_exactly_the_characters_given(translator, prefix):
    assert translator.translate([EXAMPLE], [prefix])[0].startswith(prefix)


def test_spacing_and_composition_of_a_prefix_do_not_change_what_follows(translator):
    source = "I am tired because I worked."
    prefix = unicodedata.normalize("NFD", "Ich\u00a0bin  mü")
    assert translator.translate([source], [prefix]) == [prefix + "de, weil ich gearbeitet habe."]


def test_a_trailing_space_asks_for_a_new_word(translator):
    assert translator.translate([EXAMPLE], ["Das ist ein "]) == ["Das ist ein Beispiel"]
    # Without it "ein" is open and may become "eine".
    assert translator.translate(["This is a cat."], ["Das ist ein"]) == ["Das ist eine Katze."]
    (closed,) = translator.translate(["This is a cat."], ["Das ist ein "])
    assert closed.startswith("Das ist ein ")


@pytest.mark.parametrize("prefix", ["Das ist ein Beispiel", "Das ist ein Beispiel "])
def test_a_finished_prefix_comes_back_unchanged_and_is_said_to_be_finished(translator, prefix):
    (translation,) = translator.translate_detailed([EXAMPLE], [prefix])
    assert translation.text == prefix
    assert translation.prefix_finished
    assert "finished" in translation.notes()[0]


def test_a_sentence_without_a_prefix_is_never_said_to_be_a_finished_prefix(translator):
    assert not translator.translate_detailed([EXAMPLE])[0].prefix_finished


# G09
def test_the_limit_counts_after_the_prefix_and_is_said(translator):
    pieces = translator.tokenizer.encode("Das ist ein")
    (translation,) = translator.translate_detailed(["This is a cat."], ["Das ist ein"], max_new=2)
    assert len(translation.ids) <= len(pieces) + 2
    assert translation.limit_reached
    assert "limit" in translation.notes()[0]


# A20, G02
@pytest.mark.parametrize("batch_size", [1, 3, 12])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("beam", [1, 5])
def test_neither_batch_size_nor_order_changes_a_translation(
    translator, pairs, batch_size, order, beam
):
    sources = [pair.source for pair in pairs][::order]
    found = translator.translate(sources, batch_size=batch_size, beam=beam)
    assert found == [pair.target for pair in pairs][::order]


# G14
@pytest.mark.parametrize("blank", ["", "  ", "\u00a0\u200b", "\n"])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_blank_sentence_stays_empty_and_disturbs_nobody(translator, blank, beam):
    assert translator.translate([blank, "No", blank], beam=beam) == ["", "Nein", ""]
    assert translator.translate([blank], beam=beam) == [""]
    assert translator.translate([], beam=beam) == []
    assert [len(one) for one in translator.n_best([blank, "No"], beam=3)] == [1, 3]


# G15
@pytest.mark.parametrize("beam", [1, 3])
def test_the_text_has_no_piece_marks_and_no_space_before_punctuation(translator, pairs, beam):
    for text in translator.translate([pair.source for pair in pairs], beam=beam):
        assert "▁" not in text
        assert not any(f" {sign}" in text for sign in ".,!?“")
    assert translator.translate(['She says: "Yes!"'], beam=beam) == ["Sie sagt: „Ja!“"]


# G16
def test_n_best_is_sorted_of_unlike_texts_and_begins_with_the_translation(translator, pairs):
    sources = [pair.source for pair in pairs]
    prefixes = [pair.target[: 3 * (n % 2)] for n, pair in enumerate(pairs)]
    for length_penalty in (0.0, 1.0):
        best = translator.translate_detailed(
            sources, prefixes, beam=4, length_penalty=length_penalty
        )
        found = translator.n_best(sources, prefixes, beam=4, length_penalty=length_penalty)
        assert {len(ranked) for ranked in found} <= {1, 2, 3, 4}
        for ranked, first, prefix in zip(found, best, prefixes, strict=True):
            assert (ranked[0].text, ranked[0].ids) == (first.text, first.ids)
            scores = [translation.score for translation in ranked]
            assert scores == sorted(scores, reverse=True)
            assert len({translation.text for translation in ranked}) == len(ranked)
            assert all(translation.text.startswith(prefix) for translation in ranked)


def test_two_ways_to_cut_a_text_into_pieces_are_one_translation(translator, monkeypatch):
    tokenizer = translator.tokenizer
    by_text = {tokenizer.piece(piece): piece for piece in range(len(tokenizer))}
    spelled = [by_text[character] for character in "▁Nein"]
    assert spelled != tokenizer.encode("Nein") and tokenizer.decode(spelled) == "Nein"

    class Found:
        def __init__(self, *args, **kwargs): ...

        def run(self):
            ways = (tokenizer.encode("Nein"), spelled, tokenizer.encode("Ja"))
            return [
                [ScoredHypothesis(Prefix(), "", 9, ids, score=-n) for n, ids in enumerate(ways)]
            ]

    monkeypatch.setattr("translate.decoding.translator.BeamSearch", Found)
    (ranked,) = translator.n_best(["No"], beam=3)
    assert [(one.text, one.score) for one in ranked] == [("Nein", 0), ("Ja", -2)]


# G16
def test_one_hypothesis_is_greedy_search(translator, pairs):
    sources = [pair.source for pair in pairs] + ["garden morning tired", "No No No"]
    greedy = translator.translate_detailed(sources)
    found = translator.n_best(sources, beam=1)
    assert [[replace(one, score=None) for one in ranked] for ranked in found] == [
        [one] for one in greedy
    ]
    assert all(one.score is None for one in greedy)
    assert all(ranked[0].score <= 0 for ranked in found)


# S09
@pytest.mark.parametrize("text", ["</s>", "<pad> <s>", "<unk>", "No </s> No"])
def test_control_pieces_spelled_out_are_text(translator, text):
    control = {translator.tokenizer.pad_id, translator.tokenizer.bos_id}
    control.add(translator.tokenizer.eos_id)
    (translation,) = translator.translate_detailed([text], [text])
    assert translation.text.startswith(text)
    assert not control & set(translation.ids)


@pytest.fixture
def short(tokenizer) -> Translator:
    """An untrained model with 32 positions."""
    shape = {"d_model": 16, "n_heads": 4, "d_ff": 16, "max_length": 32}
    config = TransformerConfig(vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, **shape)
    return Translator(Transformer(config), tokenizer)


# A24
def test_a_source_beyond_the_model_is_cut_with_a_warning(short):
    source = "This is an example. " * 200
    (translation,) = short.translate_detailed([source])
    assert len(translation.ids) <= 31
    kept = short.tokenizer.decode(short.tokenizer.encode(source)[:31])
    assert f"{kept} {translation.dropped}".split() == source.split()
    with pytest.warns(UserWarning, match="sentence 2: the source is too long"):
        short.translate(["No", source])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short.translate(["No"])


# A24
def test_a_prefix_beyond_the_model_is_refused(short):
    with pytest.raises(UserError, match=r"the prefix 'Das ist.*has \d+ pieces.*at most 31"):
        short.translate(["No"], ["Das ist " * 100])


# G03
@pytest.mark.parametrize("beam", [1, 4])
def test_an_untrained_model_ends_at_the_limit(short, pairs, beam):
    found = short.translate_detailed([pair.source for pair in pairs[:5]], beam=beam)
    for translation, pair in zip(found, pairs, strict=False):
        assert len(translation.ids) <= 2 * len(short.tokenizer.encode(pair.source)) + 18
        assert translation.limit_reached


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_in_training_stays_in_training_and_translates_without_dropout(short, beam):
    short.model.train()
    texts = {short.translate([EXAMPLE], beam=beam)[0] for _ in range(3)}
    assert len(texts) == 1
    assert short.model.training


def test_arguments_that_cannot_be_meant_are_refused(translator):
    with pytest.raises(TypeError, match="not one string"):
        translator.translate("No")
    with pytest.raises(ValueError, match="1 prefixes for 2 sentences"):
        translator.translate(["No", "No"], ["N"])
    with pytest.raises(ValueError, match="batch_size must be at least 1, not 0"):
        translator.translate(["No"], batch_size=0)
    with pytest.raises(ValueError, match=r"beam must lie in \[1, 1000\], not 0"):
        translator.translate(["No"], beam=0)
    for penalty in (-0.1, 11, float("nan")):
        with pytest.raises(
            ValueError, match=rf"length_penalty must lie in \[0, 10\], not {penalty}"
        ):
            translator.n_best(["No"], beam=2, length_penalty=penalty)
    with pytest.raises(ValueError, match="max_new must be at least 1, not 0"):
        translator.translate(["No"], max_new=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_it_works_where_the_model_is(checkpoint_file, pairs):
    translator = Translator.load(checkpoint_file)
    translator.model.to("cuda")
    found = translator.translate(
        [pair.source for pair in pairs], [pair.target[:2] for pair in pairs]
    )
    assert found == [pair.target for pair in pairs]
    assert translator.translate([pair.source for pair in pairs], beam=3) == found
    assert [step.word for step in Steps(translator, "No")] == ["Nein", "</s>"]


def test_nothing_to_say_about_an_ordinary_translation():
    assert Translation("Nein", [5]).notes() == []


def test_an_empty_translation_is_said_unless_the_sentence_is_blank(config, tokenizer, scripted):
    model = scripted(config(vocab_size=len(tokenizer)), [tokenizer.eos_id] * 32)
    empty, blank = Translator(model.eval(), tokenizer).translate_detailed(["No", " "])
    assert (empty.text, blank.text) == ("", "")
    assert empty.notes() == ["empty: the model ended the translation before the first word"]
    assert blank.notes() == []


def test_characters_the_model_has_never_seen_are_said(translator):
    found = translator.translate_detailed(["No", "No 20", "No 7"])
    assert [list(translation.unknown) for translation in found] == [[], ["2", "0"], ["7"]]
    assert [translation.notes()[:1] for translation in found] == [
        [],
        ["the model has never seen '2', '0': they were read as unknown"],
        ["the model has never seen '7': it was read as unknown"],
    ]
    steps = Steps(translator, "No 7")
    assert list(steps) and steps.translation.unknown == ["7"]
    assert "'8', ...: they" in Translation("", [], unknown="123456789").notes()[0]


@pytest.mark.parametrize("arguments", [([1],), ([None],), (["No"], [2])])
def test_what_is_no_text_is_a_type_error_in_words(translator, arguments):
    with pytest.raises(TypeError, match="must be a string, not"):
        translator.translate(*arguments)
