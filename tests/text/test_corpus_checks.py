"""Languages are guessed with care: a wrong warning is worse than none."""

from __future__ import annotations

import pytest

from translate.text.corpus_checks import (
    look_like_headings,
    look_swapped,
    mostly_without_letters,
)

ENGLISH = ["The dog is old.", "That is my house and you know it.", "He is with the others."]
GERMAN = ["Der Hund ist alt.", "Das ist mein Haus und ich mag es nicht.", "Er ist mit ihm."]
FRENCH = ["Le chien est vieux.", "C'est ma maison et il le sait.", "Il est avec les autres."]
SPANISH = ["El perro es viejo.", "Es mi casa y no es tu casa.", "Es mi amigo, he dicho."]
PORTUGUESE = ["A cor das casas.", "O fim das aulas.", "A lista das pessoas das ruas."]
DUTCH = ["De hond is oud.", "Dat is mijn huis en er is wat.", "Hij is met de anderen."]


def test_german_sources_with_english_targets_look_swapped():
    assert look_swapped(GERMAN, ENGLISH)


@pytest.mark.parametrize("source", [ENGLISH, FRENCH, SPANISH, PORTUGUESE, DUTCH])
@pytest.mark.parametrize("target", [ENGLISH, GERMAN])
def test_other_sources_do_not(source, target):
    assert not look_swapped(source, target)


@pytest.mark.parametrize("target", [GERMAN, FRENCH, SPANISH, DUTCH])
def test_german_sources_may_have_other_targets(target):
    assert not look_swapped(GERMAN, target)


def test_a_sentence_or_two_are_no_ground_for_a_guess():
    assert not look_swapped(GERMAN[:1], ENGLISH[:1])
    assert not look_swapped([], [])


def test_a_few_foreign_sentences_change_nothing():
    assert look_swapped([*GERMAN * 10, *ENGLISH], [*ENGLISH * 10, *GERMAN])


@pytest.mark.parametrize("numbers", [["1276", "1277"], ["3 + 4", "5."], ["1", "2", "three"]])
def test_numbers_in_place_of_most_sentences_stand_out(numbers):
    assert mostly_without_letters(numbers)


@pytest.mark.parametrize("texts", [ENGLISH, ["Ü", "1"], ["Нет.", "いいえ"], []])
def test_sentences_with_letters_of_any_script_do_not(texts):
    assert not mostly_without_letters(texts)


def test_names_of_columns_are_told_from_sentences_and_from_a_name_on_one_side():
    for pair in (("source", "target"), (" EN ", "de"), ("English", "German")):
        assert look_like_headings(pair)
    for pair in (("English", "Das ist Englisch."), ("The source.", "Der Text."), ("en", "")):
        assert not look_like_headings(pair)
