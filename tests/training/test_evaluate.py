"""`translate validate` and `translate test` on the command line, and what both refuse."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import torch

from translate.text.corpus import ParallelFiles


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
        assert outcome.err.startswith("model runs/second/version_0/checkpoints/best.ckpt")


def test_validate_repeats_the_last_validation_whatever_the_models_settings(run, settings, finished):
    last = finished.folder / "checkpoints" / "last.ckpt"
    settings["model"] |= {"d_model": 32, "max_length": 3}
    outcome = run("validate", settings, "--ckpt_path", last)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert len({line.rindex(" ") for line in lines}) == 1  # the values stand in one column
    values = dict(line.split() for line in lines)
    for name in ("val/loss", "val/nll", "val/bleu", "val/chrf", "val/perplexity"):
        assert float(values[name]) == pytest.approx(finished.curve(name)[-1][1], abs=1e-3)
    assert "step" not in outcome.err
    assert not outcome.runs.exists()


def test_ctrl_c_while_validating_ends_quietly(run, settings, finished, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("translate.training.validation.evaluate", interrupt)
    handler = signal.getsignal(signal.SIGINT)
    outcome = run("validate", settings, "--ckpt_path", finished.folder)
    signal.signal(signal.SIGINT, handler)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err.splitlines() == [f"model {finished.folder}/checkpoints/best.ckpt"]


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
