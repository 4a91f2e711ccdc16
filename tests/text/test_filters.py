"""Which pairs are left out of training."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translate.text.filters import Filters, PairFilter

OFF = Filters(length_ratio=None, copied_words=None, drop_duplicates=False)


def kinds(pairs: list[tuple[str, str]], filters: Filters | None) -> list[str | None]:
    reasons = map(PairFilter(filters).reason, pairs)
    return [reason and reason[0] for reason in reasons]


@pytest.mark.parametrize("filters", [None, OFF, Filters()])
def test_a_pair_that_is_blank_on_one_side_is_always_left_out(filters):  # D04
    pairs = [("a", " "), ("\u200b", "b"), ("\u00ad", "\t"), ("a", "b")]
    assert kinds(pairs, filters) == ["blank-target", "blank-source", "blank-both", None]


@given(st.lists(st.tuples(st.text(), st.text())))
def test_without_filters_only_blank_pairs_are_left_out(pairs):
    found = kinds(pairs, None)
    assert found == kinds(pairs, OFF)
    assert all(kind is None or kind.startswith("blank-") for kind in found)


@pytest.mark.parametrize(
    ("source", "target", "left_out"),
    [
        ("Berlin", "Berlin", False),
        ("New York City", "New York City", False),
        ("Call +49 30 1234 5678 9", "call +49 30 1234 5678 9", False),  # one word
        ("3.14 2.72 1.41 1.62 0.58", "3.14 2.72 1.41 1.62 0.58", False),
        ("The cat sat down.", "The cat sat down.", True),
        ("The cat sat down.", "THE  CAT sat\u00a0down.", True),
        ("The cat sat down.", "Die Katze sat down.", False),
    ],
)
def test_a_long_copy_was_not_translated_but_names_and_numbers_may_be_the_same(
    source, target, left_out
):
    assert kinds([(source, target)], Filters()) == ["copy" if left_out else None]


def test_how_long_a_copy_may_be_is_a_setting():
    pairs = [("Berlin", "Berlin"), ("12", "12")]
    assert kinds(pairs, Filters(copied_words=0)) == ["copy", None]
    assert kinds([("a b c d", "a b c d")], Filters(copied_words=None)) == [None]


@pytest.mark.parametrize(
    ("source", "target", "left_out"),
    [
        ("Why?", "Warum denn das jetzt schon wieder?!?", False),  # 36 characters to 10
        ("Hi.", "x" * 40, False),
        ("Hi.", "x" * 41, True),
        ("x" * 41, "Hi.", True),
        ("x" * 20, "y" * 80, False),
        ("x" * 20, "y" * 81, True),
        ("Tax law.", "Grundstücksverkehrsgenehmigungszuständig", False),
        ("Front stroke swimming race roped off lap areas.", "@@", True),
    ],
)
def test_short_sentences_may_differ_more_in_length(source, target, left_out):
    assert kinds([(source, target)], Filters()) == ["length-ratio" if left_out else None]


def test_the_length_ratio_counts_characters_as_they_are_seen():
    assert kinds([("x" * 20, "y" * 80 + "\u200b\u00ad " * 50)], Filters()) == [None]


def test_a_pair_comes_once_and_another_translation_stays():
    pairs = [("Hi.", "Hallo!"), ("Hi.", "Grüß Gott!"), ("Hi.", "Hallo!"), ("hi.", "Hallo!")]
    assert kinds(pairs, Filters()) == [None, None, "duplicate", None]
    assert kinds(pairs, OFF) == [None] * 4


def test_what_looks_the_same_is_a_duplicate():
    pairs = [("Gru\u0308n  ist", "green is\u200b"), ("Grün ist", "green is")]
    for order in (pairs, pairs[::-1]):
        assert kinds(order, Filters()) == [None, "duplicate"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"length_ratio": 0.5}, "length_ratio"), ({"copied_words": -1}, "copied_words")],
)
def test_an_invalid_filter_is_named(settings, name):
    (error,) = Filters(**settings).errors()
    assert name in error
    assert str(settings[name]) in error
    assert Filters().errors() == OFF.errors() == []
