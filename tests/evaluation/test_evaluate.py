"""Evaluating a translator on pairs: scores, counts and notes."""

from __future__ import annotations

from translate.decoding.translation import Translation
from translate.evaluation.evaluate import evaluate
from translate.text.corpus import Pair


class Echo:
    """A translator with prepared translations."""

    def __init__(self, *outputs: str, **flags) -> None:
        self.outputs, self.flags = outputs, flags

    def translate_detailed(self, sentences: list[str], **search) -> list[Translation]:
        self.seen, self.search = sentences, search
        return [Translation(text, [], **self.flags) for text in self.outputs]


PAIRS = [Pair("One cat.", "Eine Katze."), Pair("Berlin", "Berlin")]


def test_the_translator_sees_sources_only():  # T03 G10
    translator = Echo("Eine Katze.", "Wien")
    result = evaluate(translator, PAIRS)
    assert translator.seen == ["One cat.", "Berlin"]
    assert (result.scores.exact, result.notes) == (1, [])


def test_the_search_is_passed_on():
    translator = Echo("Eine Katze.", "Wien")
    evaluate(translator, PAIRS, beam=4, length_penalty=0.5)
    assert translator.search == {"beam": 4, "length_penalty": 0.5}
    evaluate(translator, PAIRS)
    assert translator.search["beam"] == 1


def test_cut_unknown_stopped_and_copied_sentences_are_noted():  # M08
    odd = {"dropped": "x", "unknown": ["2", "0"], "limit_reached": True}
    notes = evaluate(Echo("One cat.", "Berlin", **odd), PAIRS).notes
    assert notes[0] == "2 of 2 sources are longer than max_length and were cut"
    seen = "2 of 2 sources have characters that the model has never seen, such as '2'"
    assert notes[1] == seen
    assert notes[2] == "2 of 2 translations were stopped by the length limit"
    assert "1 of 1 translations equal their source" in notes[3]  # Berlin is right


def test_outputs_are_counted_and_only_a_full_evaluation_has_intervals():
    outputs = ("Eine Katze Katze Katze Katze.", "Berlin")
    for full in (True, False):
        result = evaluate(Echo(*outputs, limit_reached=True), PAIRS, full=full)
        assert result.counts == {"limit_reached": 2, "copied_source": 0, "repeats_itself": 1}
        assert all((m.interval is not None) == full for m in result.scores.metrics.values())


def test_an_output_may_repeat_what_its_source_repeats():
    pairs = [Pair("No, no, no, no!", "Nein, nein, nein, nein!")]
    result = evaluate(Echo("Nein, nein, nein, nein!"), pairs, full=True)
    assert result.counts["repeats_itself"] == 0


def test_swapped_files_are_noticed_without_a_single_copy():  # M08
    german = ["Die Katze schläft im Haus.", "Wir gehen heute nach Hause."]
    english = ["The cat sleeps in the house.", "We are going home today."]
    model = Echo("Die Katze im Hausen.", "Wir gehen nach Hause heute.")  # German, whatever it reads
    swapped = evaluate(model, [Pair(*row) for row in zip(german, english, strict=True)], full=True)
    assert swapped.notes[0].startswith("the translations are more similar to their sources (chrF ")
    assert swapped.notes[0].endswith("): are source and target swapped?")
    right = evaluate(model, [Pair(*row) for row in zip(english, german, strict=True)], full=True)
    assert right.notes == []


def test_one_text_on_both_sides_is_noticed():  # M08
    pairs = [Pair("One cat.", "One cat."), Pair("Two cats.", "Two  cats."), Pair("A", "B")]
    notes = evaluate(Echo("Eine Katze.", "Zwei Katzen.", "B"), pairs, full=True).notes
    expected = "2 of 3 references equal their source: are both sides the same file?"
    assert notes == [expected]
