"""Translating and scoring, `translate validate`, and what both commands refuse."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import torch

from translate.decoding.translation import Translation
from translate.evaluation.evaluate import evaluate
from translate.text.corpus import Pair, ParallelFiles


class Echo:
    """A translator that says what it is told to."""

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


def test_what_a_reader_should_know_is_noted():  # M08
    odd = {"dropped": "x", "unknown": ["2", "0"], "limit_reached": True}
    notes = evaluate(Echo("One cat.", "Berlin", **odd), PAIRS).notes
    assert notes[0] == "2 of 2 sources are longer than max_length and were cut"
    assert notes[1].startswith("2 of 2 sources have characters that the model has never seen, ")
    assert notes[1].endswith("such as '2'")
    assert notes[2] == "2 of 2 translations were stopped by the length limit"
    assert "1 of 1 translations equal their source" in notes[3]  # Berlin is right


def test_odd_outputs_are_counted_and_intervals_come_where_all_is_asked_for():
    outputs = ("Eine Katze Katze Katze Katze.", "Berlin")
    for full in (True, False):  # not so in validation: nothing that takes time
        result = evaluate(Echo(*outputs, limit_reached=True), PAIRS, full=full)
        assert result.counts == {"limit_reached": 2, "copied_source": 0, "repeats_itself": 1}
        assert all((m.interval is not None) == full for m in result.scores.metrics.values())


def test_an_output_that_repeats_what_its_source_repeats_is_not_odd():
    pairs = [Pair("No, no, no, no!", "Nein, nein, nein, nein!")]
    result = evaluate(Echo("Nein, nein, nein, nein!"), pairs, full=True)
    assert result.counts["repeats_itself"] == 0


def test_swapped_files_are_noticed_without_a_single_copy():  # M08
    german = ["Die Katze schläft im Haus.", "Wir gehen heute nach Hause."]
    english = ["The cat sleeps in the house.", "We are going home today."]
    model = Echo("Die Katze im Hausen.", "Wir gehen nach Hause heute.")  # German, whatever it reads
    swapped = evaluate(model, [Pair(*row) for row in zip(german, english, strict=True)], full=True)
    assert swapped.notes[0].startswith("warning: the translations are more like their sources (")
    assert swapped.notes[0].endswith("): are source and target swapped?")
    right = evaluate(model, [Pair(*row) for row in zip(english, german, strict=True)], full=True)
    assert right.notes == []


def test_one_text_on_both_sides_is_noticed():  # M08
    pairs = [Pair("One cat.", "One cat."), Pair("Two cats.", "Two  cats."), Pair("A", "B")]
    notes = evaluate(Echo("Eine Katze.", "Zwei Katzen.", "B"), pairs, full=True).notes
    expected = "warning: 2 of 3 references equal their source: is the same text given twice?"
    assert notes == [expected]


def test_without_a_path_the_newest_finished_run_is_taken_and_named(run, settings):
    missing = run("test", settings)
    assert (missing.code, missing.out) == (1, "")
    assert "no finished run under runs/" in missing.err
    args = ("--trainer.logger", False, "--trainer.max_steps", 1)
    for name in ("first", "second"):
        run("fit", settings, "--name", name, *args)
    for command in ("test", "validate"):
        outcome = run(command, settings)
        assert outcome.code == 0
        assert outcome.err.startswith("model: runs/second/version_0/checkpoints/best.ckpt")


def test_validate_repeats_the_last_validation_whatever_the_models_settings(run, settings, finished):
    last = finished.folder / "checkpoints" / "last.ckpt"
    settings["model"] |= {"d_model": 32, "max_length": 3}
    outcome = run("validate", settings, "--ckpt_path", last)
    assert outcome.code == 0
    values = dict(line.split() for line in outcome.out.splitlines())
    for name in ("val/loss", "val/nll", "val/bleu", "val/chrf", "val/perplexity"):
        assert float(values[name]) == pytest.approx(finished.curve(name)[-1][1], abs=1e-3)
    assert "step" not in outcome.err
    assert not outcome.runs.exists()


def test_ctrl_c_while_validating_ends_quietly(run, settings, finished, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("translate.training.callbacks.evaluate", interrupt)
    handler = signal.getsignal(signal.SIGINT)
    outcome = run("validate", settings, "--ckpt_path", finished.folder)
    signal.signal(signal.SIGINT, handler)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err.splitlines() == [f"model: {finished.folder}/checkpoints/best.ckpt"]


def test_sources_too_long_for_the_model_are_cut_and_counted_once(run, settings, trained, tmp_path):
    (tmp_path / "test.tsv").write_text("the cat " * 50 + "\tdie Katze\nThe cat\tDie Katze\n")
    outcome = run("test", settings, "--ckpt_path", trained, "--data.test.tsv", "test.tsv")
    lines = [line for line in outcome.err.splitlines() if "max_length" in line]
    assert lines == ["test, greedy: 1 of 2 sources are longer than max_length and were cut"]
    assert "Warning" not in outcome.err


def test_other_references_change_scores_and_no_translation(
    run, settings, finished, tmp_path
):  # T03
    for name, change in {"as they are": str, "other": lambda text: "x" * len(text)}.items():
        pairs = ParallelFiles(tsv=settings["data"]["valid"]["tsv"]).read().pairs
        text = "".join(f"{source}\t{change(target)}\n" for source, target in pairs)
        (tmp_path / f"{name}.tsv").write_text(text)
    outcomes = [
        run("validate", settings, "--ckpt_path", finished.folder, "--data.valid.tsv", f"{name}.tsv")
        for name in ("as they are", "other")
    ]
    shown = [
        [line for line in outcome.err.splitlines() if line.startswith("output")]
        for outcome in outcomes
    ]
    assert len(shown[0]) == 3
    assert shown[0] == shown[1]
    assert outcomes[0].out != outcomes[1].out


def test_a_test_set_that_the_config_does_not_name_is_asked_for(run, settings, finished):
    del settings["data"]["test"]
    outcome = run("test", settings, "--ckpt_path", finished.folder)
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1].endswith("set data.test in the config")


@pytest.mark.parametrize("damage", ["other tokenizer", "missing weight", "no checkpoint"])
def test_a_damaged_model_is_refused_in_a_line(run, settings, finished, tmp_path, damage):
    # C05 C06 C07
    path = tmp_path / "odd.ckpt"
    checkpoint = finished.checkpoint()
    if damage == "other tokenizer":
        checkpoint["translate"]["tokenizer_sha256"] = "0" * 64
    elif damage == "missing weight":
        del checkpoint["state_dict"]["model.embedding.weight"]
    torch.save(checkpoint, path)
    if damage == "no checkpoint":
        path.write_text("text")
    for command in ("test", "validate", "fit"):
        outcome = run(command, settings, "--ckpt_path", path)
        assert (outcome.code, outcome.out) == (1, "")
        assert outcome.err.splitlines()[-1].startswith(f"translate: {path}: ")
        assert len(outcome.err.splitlines()) <= 2
        assert not Path(outcome.runs).exists()
