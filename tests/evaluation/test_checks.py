"""Checks on translations: copies of the source and repetition."""

from __future__ import annotations

import pytest

from translate.evaluation.checks import count_copies, file_warnings, repeats_itself


def test_outputs_that_equal_their_sources_are_noticed():  # M08
    sources = ["One cat.", "Two cats.", "Berlin"]
    german = ["Eine Katze.", "Zwei Katzen.", "Berlin"]
    (warning,) = file_warnings(sources, sources, german)
    assert warning.startswith("2 of 2 translations equal their source")
    assert count_copies(sources, sources, german) == 2
    assert count_copies(sources, german, german) == 0
    assert count_copies(sources, ["One cat.", "Zwei Katzen.", "Berlin"], german) == 1
    assert file_warnings(sources, german, german) == []
    assert file_warnings(sources, ["One cat.", "Zwei Katzen.", "Berlin"], german) == []
    assert file_warnings([], [], []) == []


@pytest.mark.parametrize(
    "text",
    [
        "Das ist sehr sehr sehr schön.",
        "Ein Mann sitzt auf einem Tisch auf einem Tisch, auf einem Tisch",
        "Nein! nein, NEIN",
        "ein Kind und ein Hund und ein Kind und ein Hund und ein Kind und ein Hund und",
        "Die Fahrfahrfahrfahrt",
        "Haaaallo",
    ],
)
def test_a_loop_of_words_or_letters_is_found(text):
    assert repeats_itself(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "Leute, die die Katze sehen, die die Maus sieht",
        "sehr, sehr schön und sehr, sehr groß",
        "auf dem Tisch auf dem Tisch",
        "ein Hund, ein Kind, ein Haus",
        "1000000 Schifffahrten zum Kuckuck",
    ],
)
def test_ordinary_text_is_no_loop(text):
    assert not repeats_itself(text)
