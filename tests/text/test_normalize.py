"""One normalisation for corpus, source and prefix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translate.text.normalize import fold, normalize


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    assert normalize(normalize(text)) == normalize(text)


@given(st.text())
def test_only_single_plain_spaces_are_left_and_none_at_the_ends(text):
    assert normalize(text).split() == [word for word in normalize(text).split(" ") if word]
    assert normalize(text).strip() == normalize(text)
    assert "  " not in normalize(text)


@given(st.text(st.characters(codec="utf-8")))
def test_the_result_can_always_be_written_as_utf8(text):
    assert normalize(text + "\udcff").encode("utf-8")


def test_composed_and_decomposed_umlauts_are_the_same_text():
    assert normalize("Gro\u0308\u00dfe fu\u0308r A\u0308rzte") == "Größe für Ärzte"


def test_an_invisible_character_between_letter_and_accent_does_not_keep_them_apart():
    assert normalize("o\u200b\u0308") == "ö"


@pytest.mark.parametrize("space", ["\t", "\r", "\u00a0", "\u202f", "\u2009", "\u0085", "\u2028"])
def test_every_kind_of_white_space_becomes_one_plain_space(space):
    assert normalize(f"{space}am 25.{space}{space}September{space}") == "am 25. September"


@pytest.mark.parametrize(
    "blank", ["", "   ", "\u00a0", "\t", "\u200b", "\u00ad", "\ufeff", " \u200b\u00ad\t", "\u2060"]
)
def test_text_that_shows_nothing_is_blank(blank):  # D04
    assert normalize(blank) == ""


def test_compatibility_signs_stay_as_they_are():  # S07
    assert normalize("½ m² ™ … ﬁ № Ⅷ") == "½ m² ™ … ﬁ № Ⅷ"


def test_german_keeps_its_capitals_and_quotes():  # S18
    assert normalize("„ÖÄÜ ẞ Straße“") == "„ÖÄÜ ẞ Straße“"


def test_folding_joins_what_differs_in_case_and_space_only():
    assert fold(" Guten\u00a0 TAG ") == fold("guten tag")
    assert fold("Straße") != fold("Strase")


@given(st.text())
def test_folding_twice_changes_nothing(text):
    assert fold(fold(text)) == fold(text)
