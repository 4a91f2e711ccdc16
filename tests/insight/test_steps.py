"""A translation, word by word."""

from __future__ import annotations

import io

import pytest
import sentencepiece
import torch

from translate.decoding.translator import Translator
from translate.insight.steps import Steps
from translate.model.transformer import Transformer, TransformerConfig
from translate.text.tokenizer import Tokenizer


def test_the_words_and_the_end_come_one_by_one(translator):
    steps = Steps(translator, "I am tired because I worked.")
    found = [step.word for step in steps]
    assert " ".join(found) == "Ich bin müde , weil ich gearbeitet habe . </s>"
    assert steps.translation.text == "Ich bin müde, weil ich gearbeitet habe."


def test_a_word_comes_before_the_next_is_finished(translator):
    steps = Steps(translator, "I am tired because I worked.")
    next(iter(steps))
    assert steps.translation.text in ("Ich", "Ich b", "Ich bin")


def test_only_words_beyond_the_prefix_are_shown(translator):
    for prefix, expected in {
        "Das ist ein": ["Beispiel", "</s>"],
        "Das ist ein ": ["Beispiel", "</s>"],
        "Das ist ein Bei": ["Beispiel", "</s>"],
        "Das ist ein Beispiel": ["</s>"],
        "日本": None,
    }.items():
        steps = Steps(translator, "This is an example", prefix)
        found = [step.word for step in steps]
        assert expected is None or found == expected
        assert steps.translation.text.startswith(prefix)


def test_steps_say_the_same_as_translate(translator, pairs):
    for pair in pairs:
        steps = Steps(translator, pair.source, pair.target[:3])
        assert list(steps)
        assert [steps.translation] == translator.translate_detailed(
            [pair.source], [pair.target[:3]]
        )


def test_a_words_probability_is_the_product_over_its_pieces(translator):
    tokenizer, model = translator.tokenizer, translator.model
    pieces = tokenizer.encode("gearbeitet")
    assert len(pieces) > 2
    before = [tokenizer.bos_id, *tokenizer.encode("Ich bin müde, weil ich")]
    src = torch.tensor([[*tokenizer.encode("I am tired because I worked."), tokenizer.eos_id]])
    with torch.inference_mode():
        logits = model(src, torch.tensor([[*before, *pieces]]))[0, len(before) - 1 : -1]
        logits[:, [tokenizer.pad_id, tokenizer.bos_id, tokenizer.unk_id]] = -torch.inf
        chances = logits.softmax(dim=-1)[range(len(pieces)), pieces]
    step = next(
        step for step in Steps(translator, "I am tired because I worked.")
        if step.word == "gearbeitet"
    )  # fmt: skip
    assert step.probability == pytest.approx(float(chances.prod()), rel=1e-4)


def test_candidates_are_other_words_likeliest_first(translator):
    for step in Steps(translator, "This is an example", candidates=4):
        names = [name for name, _ in step.candidates]
        chances = [chance for _, chance in step.candidates]
        assert len(names) == 4
        assert step.word not in names
        assert chances == sorted(chances, reverse=True)
        assert sum(chances) + step.probability < 1 + 1e-5
        assert not any("▁" in name for name in names)


def test_attention_is_shared_out_over_all_source_words(translator):
    for step in Steps(translator, "Where is the station?"):
        assert {name for name, _ in step.attended} == {
            "Where", "is", "the", "station", "?", "</s>",
        }  # fmt: skip
        shares = [share for _, share in step.attended]
        assert sum(shares) == pytest.approx(1, abs=1e-4)
        assert shares == sorted(shares, reverse=True)


def test_the_end_is_missing_when_the_limit_came_first(translator):
    steps = Steps(translator, "I am tired because I worked.", max_new=3)
    assert "</s>" not in [step.word for step in steps]
    assert steps.translation.limit_reached


def test_a_blank_sentence_has_no_steps(translator):
    steps = Steps(translator, " \u200b")
    assert list(steps) == []
    assert steps.translation.text == ""


# S17
def test_half_a_character_is_never_shown():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["ein Beispiel"] * 5), model_writer=model, vocab_size=300,
        model_type="bpe", byte_fallback=True, hard_vocab_limit=False,
        minloglevel=3, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
    )  # fmt: skip
    tokenizer = Tokenizer(model.getvalue())
    first_bytes = tokenizer.encode("😀")[:-2]
    config = TransformerConfig(vocab_size=len(tokenizer), pad_id=0, d_model=16, d_ff=16)
    translator = Translator(Transformer(config), tokenizer)
    with torch.no_grad():  # whatever was said before, the first byte comes next
        translator.model.embedding.weight.zero_()
        translator.model.embedding.weight[first_bytes[-1]] = 1
        translator.model.decoder_norm.bias.fill_(1)
    steps = Steps(translator, "😀", "ein", max_new=3)
    shown = [text for step in steps for text in (step.word, *(name for name, _ in step.candidates))]
    assert steps.translation.text == "ein"
    assert any("<0x" in text for text in shown)
    assert "\ufffd" not in "".join(shown)
