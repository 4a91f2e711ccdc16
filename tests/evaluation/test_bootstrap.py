"""Bootstrap intervals, against sacreBLEU's own resampling and what must be true of any interval."""

from __future__ import annotations

import json
import random

import pytest
from sacrebleu.metrics import BLEU, CHRF

from translate.evaluation.bootstrap import confidence_interval

REFERENCES = ["Das ist ein Beispiel.", "Die Katze schläft im Haus.", "Wir gehen heute nach Hause."]
OUTPUTS = ["Das ist ein Beispiel.", "die Katze schläft im Garten.", "Heute gehen wir nach Hause."]
SCORERS = [
    BLEU(),
    BLEU(lowercase=True),
    BLEU(effective_order=True),
    CHRF(),
]


@pytest.mark.parametrize("scorer", SCORERS, ids=str)
def test_the_interval_is_as_wide_as_sacrebleus(scorer):
    draw = random.Random(0)
    rows = draw.choices(range(3), k=40)
    outputs = [OUTPUTS[row] for row in rows]
    references = [REFERENCES[row] for row in rows]
    low, high = confidence_interval(scorer, outputs, references)
    result = scorer.corpus_score(outputs, [references], n_bootstrap=1000)
    theirs = json.loads(result.format(width=4, is_json=True, signature="a:b"))
    assert (high - low) / 2 == pytest.approx(theirs["confidence_var"], rel=0.05)
    assert low < result.score < high


@pytest.mark.parametrize("scorer", SCORERS, ids=str)
@pytest.mark.parametrize(
    ("output", "reference"),
    [
        *zip(OUTPUTS, REFERENCES, strict=True),
        ("", "Ja"),
        ("Ja", ""),
        ("Ja, gut", "Ja, ja"),
        ("", ""),
    ],
)
def test_equal_sentences_leave_no_room_and_give_sacrebleus_score(scorer, output, reference):
    """Every resample is the corpus itself: so the counts and both formulas are sacreBLEU's."""
    expected = scorer.corpus_score([output] * 5, [[reference] * 5]).score
    interval = confidence_interval(scorer, [output] * 5, [reference] * 5)
    assert interval == pytest.approx((expected, expected))


def test_the_interval_shrinks_with_the_root_of_the_number_of_sentences():
    widths = []
    for times in (10, 160):
        low, high = confidence_interval(CHRF(), OUTPUTS * times, REFERENCES * times)
        widths.append(high - low)
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.2)


@pytest.mark.parametrize("scorer", SCORERS, ids=str)
def test_resamples_without_a_single_match_count_as_zero(scorer):
    """sacreBLEU 2.6: TypeError, "don't know how to coerce float and float32"."""
    low, high = confidence_interval(scorer, ["Ja", "Nein"], ["Ja", "Doch"])
    assert low == 0
    assert high == scorer.corpus_score(["Ja"], [["Ja"]]).score


def test_the_interval_of_perfect_sentences_holds_their_score():  # N44
    """sacreBLEU's mean of the resamples falls to 99.90 here, with an interval of no width."""
    texts = ["Ja", "Nein", "Gut", "Das ist gut", REFERENCES[0]]
    low, high = confidence_interval(BLEU(), texts, texts)
    assert low <= 100 <= high + 1e-9
