"""BLEU, chrF and exact matches, where sacreBLEU is silent about wrong use."""

from __future__ import annotations

import logging
import unicodedata

import pytest
import sacrebleu

from translate.errors import UserError
from translate.training.scores import copying, score

REFERENCES = ["Das ist ein Beispiel.", "Die Katze schläft im Haus.", "Wir gehen heute nach Hause."]


def test_the_scores_are_those_of_sacrebleu_on_the_text_as_it_is():  # M07
    outputs = ["Das ist ein Beispiel.", "Die Katze schläft.", "Heute gehen wir nach Hause."]
    scores = score(outputs, REFERENCES)
    assert scores.bleu == sacrebleu.corpus_bleu(outputs, [REFERENCES]).score
    assert scores.chrf == sacrebleu.corpus_chrf(outputs, [REFERENCES]).score
    assert (scores.exact, scores.sentences) == (1, 3)
    for part in ("nrefs:1", "case:mixed", "tok:13a", "smooth:exp", "version:"):
        assert part in scores.bleu_signature
    assert "nc:6" in scores.chrf_signature


def test_perfect_output_scores_100_and_capitals_count():  # M07
    assert score(REFERENCES, REFERENCES).bleu == pytest.approx(100)
    assert score([text.lower() for text in REFERENCES], REFERENCES).bleu < 99


def test_sentences_too_short_for_four_words_are_scored_by_what_they_have():  # M05
    references = ["Guten Tag", "Vielen Dank", "Ja"]
    scores = score(references, references)
    assert scores.bleu == pytest.approx(100)
    assert scores.exact_share == 1
    assert "eff:yes" in scores.bleu_signature
    assert score(["Guten Abend", "Vielen Dank", "Nein"], references).bleu < 100
    # Ordinary references are scored the ordinary way, whatever comes out.
    assert "eff:no" in score(["Ja"] * 3, REFERENCES).bleu_signature


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_an_empty_output_lowers_the_score_wherever_it_stands(empty):  # M03
    outputs = ["" if row == empty else text for row, text in enumerate(REFERENCES)]
    assert 0 < score(outputs, REFERENCES).bleu < 100
    assert score(["", "", ""], REFERENCES).bleu == 0


def test_nothing_to_score_and_unequal_counts_are_refused():  # M03 M06
    with pytest.raises(UserError, match="no sentences to score"):
        score([], [])
    with pytest.raises(UserError, match="3 translations against 2 references"):
        score(REFERENCES, REFERENCES[:2])


def test_white_space_and_unicode_form_do_not_make_an_output_wrong():
    reference = unicodedata.normalize("NFD", "Die Tür ist  schön.\u00a0")
    assert score(["Die Tür ist schön."], [reference]).exact == 1


def test_many_sentences_raise_no_warning_about_tokenised_text(caplog):  # M01
    with caplog.at_level(logging.WARNING):
        score(REFERENCES * 50, REFERENCES * 50)
    assert not caplog.records


def test_outputs_that_equal_their_sources_are_noticed():  # M08
    sources = ["One cat.", "Two cats.", "Berlin"]
    assert "3 of 3 translations equal their source" in copying(sources, sources)
    assert copying(sources, ["Eine Katze.", "Zwei Katzen.", "Berlin"]) == ""
    assert copying([], []) == ""
