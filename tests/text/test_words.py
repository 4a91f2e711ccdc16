"""Pieces grouped into words: every piece in exactly one, no piece marks in the labels."""

from __future__ import annotations

import io

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from translate.text.tokenizer import Tokenizer
from translate.text.words import words

TEXTS = [
    "Das ist ein Beispiel.", "„Ja!“, sagt sie.", "E-Mail an dich?", "Geht's gut …", "😀 und 😀!",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, vocab_size=60)[0]


def labels(tokenizer: Tokenizer, text: str) -> list[str]:
    return [word.text for word in words(tokenizer, tokenizer.encode(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Das ist ein Beispiel.", ["Das", "ist", "ein", "Beispiel", "."]),
        ("„Ja!“, sagt sie.", ["„Ja", "!“,", "sagt", "sie", "."]),
        ("E-Mail an dich?", ["E-Mail", "an", "dich", "?"]),
        ("Geht's", ["Geht's"]),
        ("…", ["…"]),
        ("😀", ["😀"]),
        ("", []),
    ],
)
def test_final_punctuation_is_a_word_but_not_a_hyphen_inside_one(tokenizer, text, expected):
    assert labels(tokenizer, text) == expected


def test_control_pieces_stand_alone(tokenizer):
    ids = [tokenizer.bos_id, *tokenizer.encode("sie ist"), tokenizer.eos_id, tokenizer.pad_id]
    assert [word.text for word in words(tokenizer, ids)] == ["<s>", "sie", "ist", "</s>", "<pad>"]


def test_an_unknown_character_shows_as_the_unknown_sign(tokenizer):
    assert labels(tokenizer, "日 ist") == ["⁇", "ist"]


@given(st.lists(st.integers(0, 40), max_size=20))
def test_every_piece_lies_in_exactly_one_word_with_a_clean_label(tokenizer, ids):
    found = words(tokenizer, ids)
    assert [index for word in found for index in range(word.start, word.end)] == [*range(len(ids))]
    assert all(word.text and "▁" not in word.text for word in found)


# S17
def test_the_bytes_of_one_character_are_shown_together():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["ein Beispiel ist gut", "gut ist ein Beispiel"] * 5),
        model_writer=model, vocab_size=300, model_type="bpe", byte_fallback=True,
        hard_vocab_limit=False, minloglevel=3, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
    )  # fmt: skip
    tokenizer = Tokenizer(model.getvalue())
    assert len(tokenizer.encode("😀")) > 4
    assert labels(tokenizer, "ein 😀 ist gut") == ["ein", "😀", "ist", "gut"]
