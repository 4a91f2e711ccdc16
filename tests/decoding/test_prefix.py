"""Which pieces are allowed when the output must begin with given characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translate.decoding.prefix import PieceIndex, Prefix


@pytest.fixture(scope="module")
def index(tokenizer) -> PieceIndex:
    return PieceIndex(tokenizer)


def test_complete_words_are_forced_and_the_last_is_left_open(index, tokenizer):
    prefix = Prefix.of("Das ist ein Bei", index)
    assert tokenizer.decode(prefix.pieces) == "Das ist ein"
    assert prefix.rest == "▁Bei"


@pytest.mark.parametrize("space", [" ", "\t", "\u00a0", "  "])
def test_a_trailing_space_closes_the_last_word(index, tokenizer, space):
    prefix = Prefix.of(f"Das ist ein{space}", index)
    assert tokenizer.decode(prefix.pieces) == "Das ist ein"
    assert prefix.rest == "▁"
    allowed = prefix.allowed(prefix.rest)
    starts_word = [tokenizer.piece(piece).startswith("▁") for piece in range(len(tokenizer))]
    starts_word[tokenizer.eos_id] = True  # nothing has to follow
    assert allowed.tolist() == starts_word


@pytest.mark.parametrize("blank", ["", " ", "\u200b"])
def test_a_blank_prefix_asks_for_nothing(index, blank):
    assert Prefix.of(blank, index) == Prefix()


def test_a_decomposed_umlaut_is_the_same_character(index):
    assert Prefix.of("mu\u0308", index).rest == "▁m\u00fc"


@pytest.mark.parametrize("invisible", ["\u00ad", "\u200b", "\ufeff"])
def test_an_invisible_character_changes_no_prefix(index, invisible):
    dotted = f"{invisible}Das i{invisible}st ein Bei{invisible}"
    assert Prefix.of(dotted, index) == Prefix.of("Das ist ein Bei", index)


def test_a_word_with_an_unknown_character_is_forced_as_it_is_encoded(index, tokenizer):
    prefix = Prefix.of("Das ist 日本", index)
    assert list(prefix.pieces) == tokenizer.encode("Das ist 日本")
    assert prefix.rest == ""


# S09
@pytest.mark.parametrize("text", ["</s>", "<pad>", "<s>", "<unk>"])
def test_a_control_piece_spelled_out_allows_no_control_piece(index, tokenizer, text):
    control = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
    prefix = Prefix.of(text, index)
    assert not control & set(prefix.pieces)
    for rest in (text, text[1:], "▁" + text):
        allowed = index.matching(rest).nonzero().flatten().tolist()
        assert not (control | {tokenizer.unk_id}) & set(allowed)


@given(st.text("▁aeinsB", min_size=1, max_size=6))
def test_the_pieces_that_match_are_those_found_by_trying_all(index, tokenizer, rest):
    def agrees(piece: int) -> bool:
        text = tokenizer.piece(piece)
        return text.startswith(rest) or rest.startswith(text)

    plain = [p for p in range(len(tokenizer)) if not tokenizer.piece(p).startswith("<")]
    expected = {piece for piece in plain if agrees(piece)}
    if rest == "▁":
        expected.add(tokenizer.eos_id)
    assert set(index.matching(rest).nonzero().flatten().tolist()) == expected


def test_what_is_left_after_a_piece_that_goes_beyond_the_prefix_is_nothing(index, tokenizer):
    prefix = Prefix.of("Bei", index)
    (beispiel,) = tokenizer.encode("Beispiel")
    assert prefix.allowed(prefix.rest)[beispiel]
    assert prefix.after(prefix.rest, beispiel) == ""
