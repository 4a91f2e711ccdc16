"""BLEU, chrF and exact matches, and wrong input that sacreBLEU accepts without an error."""

from __future__ import annotations

import json
import logging
import unicodedata

import pytest
import sacrebleu

from translate.errors import UserError
from translate.evaluation.scores import score

REFERENCES = ["Das ist ein Beispiel.", "Die Katze schläft im Haus.", "Wir gehen heute nach Hause."]


def test_the_scores_are_those_of_sacrebleu_on_the_text_as_it_is():  # M07
    outputs = ["Das ist ein Beispiel.", "Die Katze schläft.", "Heute gehen wir nach Hause."]
    scores = score(outputs, REFERENCES)
    assert scores.bleu == sacrebleu.corpus_bleu(outputs, [REFERENCES]).score
    assert scores.chrf == sacrebleu.corpus_chrf(outputs, [REFERENCES]).score
    assert (scores.exact, scores.sentences) == (1, 3)
    assert list(scores.metrics) == ["BLEU", "chrF"]
    for part in ("nrefs:1", "case:mixed", "tok:13a", "smooth:exp", "version:"):
        assert part in scores.metrics["BLEU"].signature
    assert "nc:6" in scores.metrics["chrF"].signature


def test_all_scores_have_intervals_that_are_always_the_same():  # M07
    outputs = ["Das ist ein Beispiel.", "die Katze schläft.", "Heute gehen wir nach Hause."]
    scores = score(outputs, REFERENCES, full=True)
    assert scores == score(outputs, REFERENCES, full=True)
    assert list(scores.metrics) == ["BLEU", "BLEU lowercase", "chrF"]
    assert scores.bleu == score(outputs, REFERENCES).bleu
    lower = sacrebleu.corpus_bleu(outputs, [REFERENCES], lowercase=True).score
    assert scores.metrics["BLEU lowercase"].value == lower > scores.bleu
    assert "case:lc" in scores.metrics["BLEU lowercase"].signature
    for metric in scores.metrics.values():
        assert "bs:1000|seed:12345" in metric.signature
        low, high = metric.interval
        assert 0 <= low < metric.value < high <= 100 + 1e-9
    with_resamples = sacrebleu.BLEU()
    with_resamples.corpus_score(outputs, [REFERENCES], n_bootstrap=1000)
    assert scores.metrics["BLEU"].signature == str(with_resamples.get_signature())


def test_intervals_are_as_wide_as_sacrebleus_and_lie_around_the_score():
    outputs = ["Das ist ein Beispiel.", "die Katze schläft im Garten.", "Heute gehen wir."] * 14
    references = REFERENCES * 14
    metrics = score(outputs, references, full=True).metrics
    for name, scorer in {"BLEU": sacrebleu.BLEU(), "chrF": sacrebleu.CHRF()}.items():
        result = scorer.corpus_score(outputs, [references], n_bootstrap=1000)
        theirs = json.loads(result.format(width=4, is_json=True, signature="a:b"))
        low, high = metrics[name].interval
        assert (high - low) / 2 == pytest.approx(theirs["confidence_var"], abs=1e-3)
        assert (low + high) / 2 == pytest.approx(metrics[name].value)


def test_an_interval_shrinks_with_the_root_of_the_number_of_sentences():
    outputs = ["Das ist ein Beispiel.", "die Katze schläft im Garten.", "Heute gehen wir."]
    widths = []
    for times in (10, 160):
        low, high = score(outputs * times, REFERENCES * times, full=True).metrics["chrF"].interval
        widths.append(high - low)
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.2)


def test_resamples_without_a_single_match_count_as_zero():
    """sacreBLEU 2.6: TypeError, "don't know how to coerce float and float32"."""
    metrics = score(["Ja", "Nein"], ["Ja", "Doch"], full=True).metrics
    for metric in metrics.values():  # a quarter of the resamples has no match, a quarter no other
        assert metric.interval == pytest.approx((max(0, metric.value - 50), metric.value + 50))


def test_the_interval_of_perfect_sentences_holds_their_score():  # N44
    """sacreBLEU's mean of the resamples falls to 99.90 here, with an interval of no width."""
    texts = ["Ja", "Nein", "Gut", "Das ist gut", REFERENCES[0]]
    for metric in score(texts, texts, full=True).metrics.values():
        low, high = metric.interval
        assert low <= metric.value <= high


def test_the_length_ratio_tells_outputs_that_are_too_short():
    assert score(REFERENCES, REFERENCES).length_ratio == 1
    assert score([text.split()[0] for text in REFERENCES], REFERENCES).length_ratio == 3 / 17


def test_perfect_output_scores_100_and_capitals_count():  # M07
    assert score(REFERENCES, REFERENCES).bleu == pytest.approx(100)
    assert score([text.lower() for text in REFERENCES], REFERENCES).bleu < 99


def test_sentences_too_short_for_four_words_are_scored_by_what_they_have():  # M05
    references = ["Guten Tag", "Vielen Dank", "Ja"]
    scores = score(references, references)
    assert scores.bleu == pytest.approx(100)
    assert scores.exact_share == 1
    assert "eff:yes" in scores.metrics["BLEU"].signature
    assert score(["Guten Abend", "Vielen Dank", "Nein"], references).bleu < 100
    # If a reference has four words, all four orders count, however short the output.
    assert "eff:no" in score(["Ja"] * 3, REFERENCES).metrics["BLEU"].signature
    # The lowercase score and its interval use the same orders.
    lower = score(["guten tag", "vielen dank", "ja"], references, full=True).metrics
    assert lower["BLEU lowercase"].value == pytest.approx(100)
    assert lower["BLEU lowercase"].interval == pytest.approx((100, 100))


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_an_empty_output_lowers_the_score_wherever_it_stands(empty):  # M03
    outputs = ["" if row == empty else text for row, text in enumerate(REFERENCES)]
    assert 0 < score(outputs, REFERENCES).bleu < 100
    nothing = score(["", "", ""], REFERENCES, full=True)
    assert nothing.bleu == nothing.chrf == nothing.length_ratio == 0
    assert nothing.metrics["BLEU"].interval == (0, 0)


def test_a_blank_reference_counts_as_no_words():  # M04
    references = [REFERENCES[0], "", REFERENCES[2]]
    wordy, silent = score(REFERENCES, references, full=True), score(references, references)
    assert 0 < wordy.bleu < silent.bleu == pytest.approx(100)
    assert wordy.length_ratio > 1
    assert score(REFERENCES, ["", "", ""], full=True).bleu == 0


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
