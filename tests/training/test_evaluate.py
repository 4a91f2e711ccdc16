"""`translate validate` and `translate test`."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import torch

from translate.decoding.translator import Translation
from translate.text.corpus import Pair
from translate.training.evaluate import evaluate


class Echo:
    """A translator that says what it is told to."""

    def __init__(self, *outputs: str, **flags) -> None:
        self.outputs, self.flags = outputs, flags

    def translate_detailed(self, sentences: list[str]) -> list[Translation]:
        self.seen = sentences
        return [Translation(text, [], **self.flags) for text in self.outputs]


PAIRS = [Pair("One cat.", "Eine Katze."), Pair("Berlin", "Berlin")]


def test_the_translator_sees_sources_only():  # T03 G10
    translator = Echo("Eine Katze.", "Wien")
    result = evaluate(translator, PAIRS)
    assert translator.seen == ["One cat.", "Berlin"]
    assert (result.scores.exact, result.notes) == (1, [])


def test_what_a_reader_should_know_is_noted():  # M08
    odd = {"dropped": "x", "unknown": ["2", "0"], "limit_reached": True}
    notes = evaluate(Echo("One cat.", "Berlin", **odd), PAIRS).notes
    assert notes[0] == "2 of 2 sources are longer than max_length and were cut"
    assert notes[1].startswith("2 of 2 sources have characters that the model has never seen, ")
    assert notes[1].endswith("such as '2'")
    assert notes[2] == "2 of 2 translations were stopped by the length limit"
    assert "2 of 2 translations equal their source" in notes[3]


def test_test_prints_scores_with_signatures_and_counts(run, settings, finished):  # M07
    for given in (finished.folder, finished.folder.parent, finished.folder / "checkpoints"):
        outcome = run("test", settings, "--ckpt_path", given)
        assert outcome.code == 0
        lines = outcome.out.splitlines()
        assert lines[0] == "test: 4 sentences, greedy"
        assert lines[1].startswith("BLEU ")
        assert "nrefs:1|case:mixed" in lines[1]
        assert "version:" in lines[1]
        assert lines[2].startswith("chrF ")
        assert "nc:6" in lines[2]
        assert lines[3].startswith("exactly right 0.0% (0 of 4)")
        assert len(lines) == 4
        assert outcome.err.startswith(f"model: {finished.folder}/checkpoints/best.ckpt")


def test_each_challenge_file_has_a_line(run, settings, finished, tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    for name in ("gender", "articles"):
        (folder / f"{name}.tsv").write_text("The cat\tDie Katze\nA cat\tEine Katze\n")
    outcome = run("test", settings, "--ckpt_path", finished.folder, "--data.challenge", folder)
    table = outcome.out.splitlines()[5:]
    assert [line.split()[0] for line in table] == ["challenge", "articles", "gender"]
    assert all("(0 of 2)" in line for line in table[1:])


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


def test_sources_too_long_for_the_model_are_cut_and_counted(run, settings, finished, tmp_path):
    (tmp_path / "test.tsv").write_text("the cat " * 50 + "\tdie Katze\nThe cat\tDie Katze\n")
    args = ("--ckpt_path", finished.folder, "--data.test.tsv", "test.tsv")
    outcome = run("test", settings, *args)
    assert "test: 1 of 2 sources are longer than max_length and were cut" in outcome.err
    assert "Warning" not in outcome.err


def test_a_test_set_that_the_config_does_not_name_is_asked_for(run, settings, finished):
    del settings["data"]["test"]
    outcome = run("test", settings, "--ckpt_path", finished.folder)
    assert outcome.code == 1
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
