"""A resumed run equals an uninterrupted run."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
import yaml

from translate.evaluation.evaluate import Evaluation
from translate.evaluation.scores import Metric, Scores
from translate.training.resume import Resumed


def train(run, watcher, settings, *args):
    """Run `fit`; return (outcome, batches, learning rates)."""
    watcher.batches.clear()
    watcher.rates.clear()
    outcome = run("fit", settings, *args)
    assert outcome.code == 0, outcome.err
    return outcome, list(watcher.batches), list(watcher.rates)


def keep_after(watcher, folder, updates):
    """Copy the checkpoint after some updates of a run that validates after every update."""
    source = folder / "runs" / "my" / "version_0" / "checkpoints" / "last.ckpt"
    for update in updates:
        watcher.at[update] = lambda to=folder / f"{update}.ckpt": shutil.copy(source, to)


@pytest.mark.parametrize(
    ("optimizer", "updates"),
    [("adamw", (1, 4, 6, 8, 11)), ("muon", (6,))],  # in the middle and at the end of epochs
)
def test_any_stop_goes_on_with_the_same_batches_rates_weights_and_curve(
    run, settings, watcher, tmp_path, optimizer, updates
):  # T14 T15
    settings["trainer"]["max_epochs"] = 3
    settings["model"]["optimizer"] = optimizer
    keep_after(watcher, tmp_path, updates)
    every = ("--trainer.val_check_interval", 1)
    straight, batches, rates = train(run, watcher, settings, *every)
    watcher.at.clear()
    assert len(batches) == 12
    for epoch in range(3):
        seen = [source for number, batch in batches if number == epoch for source in batch]
        assert len(seen) == len(set(seen)) == 30
    curve = straight.curve("train/loss")
    weights = straight.weights()
    for update in updates:
        resumed, later, later_rates = train(
            run, watcher, settings, *every, "--ckpt_path", tmp_path / f"{update}.ckpt"
        )
        assert later == batches[update:]
        assert later_rates == rates[update:]
        assert resumed.curve("train/loss") == curve[update:]
        assert torch.equal(resumed.weights(), weights)


@pytest.mark.parametrize(
    ("workers", "validation"),
    [
        (0, []),
        (0, ["--trainer.limit_val_batches", 0]),
        (0, ["--trainer.check_val_every_n_epoch", 2]),
        (0, ["--trainer.reload_dataloaders_every_n_epochs", 1]),
        (1, []),
    ],
    ids=["each epoch", "without validation", "seldom", "reloaded", "workers"],
)
def test_a_run_that_ended_is_made_longer_without_a_gap_or_repeat(
    run, settings, watcher, workers, validation
):  # T12 T14
    args = ("--data.num_workers", workers, "--trainer.logger", False, *validation)
    _, straight, _ = train(run, watcher, settings, *args, "--trainer.max_epochs", 3)
    for stop in (["--trainer.max_epochs", 1], ["--trainer.max_steps", 6]):
        limit = ["--trainer.max_epochs", -1] if "steps" in stop[0] else []
        first, before, _ = train(run, watcher, settings, *args, *limit, *stop)
        _, after, rates = train(
            run, watcher, settings, *args, "--trainer.max_epochs", 3, "--ckpt_path", first.folder
        )
        assert before + after == straight
        assert rates == sorted(rates, reverse=True)
        assert min(rates) > 0


def test_a_resumed_run_stays_in_its_folder_keeps_its_config_and_continues_the_numbering(
    run, settings
):  # B04 B11
    first = run("fit", settings)
    config = (first.folder / "config.yaml").read_text()
    second = run("fit", settings, "--trainer.max_epochs", 2, "--ckpt_path", "runs/my")
    assert second.folder == first.folder
    assert (first.folder / "config.yaml").read_text() == config
    resumed = yaml.safe_load((first.folder / "config_resumed_1.yaml").read_text())
    assert resumed["trainer"]["max_epochs"] == 2
    assert resumed["ckpt_path"] == f"{first.folder}/checkpoints/last.ckpt"
    assert second.steps("train/loss") == list(range(1, 9))
    assert second.steps("val/bleu") == [4, 8]
    assert "resuming after 4 updates: runs/my/version_0/checkpoints/last.ckpt" in second.err


def test_what_was_logged_after_the_last_checkpoint_is_taken_back(run, settings, watcher):  # B11
    def interrupt():
        raise KeyboardInterrupt

    settings["trainer"]["max_epochs"] = 3
    watcher.at[6] = interrupt
    stopped = run("fit", settings)
    assert stopped.steps("train/loss") == [1, 2, 3, 4, 5, 6]
    watcher.at.clear()
    resumed = run("fit", settings, "--ckpt_path", stopped.folder)
    assert resumed.folder == stopped.folder
    assert resumed.steps("train/loss") == list(range(1, 13))


def scripted(monkeypatch, *bleus):
    """Let the validations of a run report these BLEU values, one after the other."""
    values = iter(bleus)

    def evaluate(translator, pairs):
        metrics = {"BLEU": Metric(next(values), ""), "chrF": Metric(0.0, "")}
        scores = Scores(len(pairs), metrics, length_ratio=1.0, exact=0)
        counts = dict.fromkeys(("limit_reached", "copied_source", "repeats_itself"), 0)
        return Evaluation([""] * len(pairs), scores, notes=[], counts=counts)

    monkeypatch.setattr("translate.training.validation.evaluate", evaluate)


def test_patience_begins_when_a_model_has_begun_to_translate(run, settings, monkeypatch):
    settings["trainer"]["max_epochs"] = 20
    settings["early_stopping"] = {"patience": 2}
    scripted(monkeypatch, *[0.0] * 5, 0.5, *[0.2] * 4, 8.0, 9.0, 9.0, 8.0, *[99.0] * 6)
    outcome = run("fit", settings)
    assert outcome.code == 0
    assert outcome.out.startswith("best validation BLEU 9.00")
    assert "stopped early: 2 validations without a better val/bleu" in outcome.err
    assert outcome.checkpoint()["epoch"] == 13  # the fourteenth


@pytest.mark.parametrize("checkpoint", ["best.ckpt", "last.ckpt"])
def test_the_best_and_the_patience_survive_a_resume(run, settings, monkeypatch, checkpoint):  # T16
    settings["trainer"]["max_epochs"] = 2
    settings["early_stopping"] = {"patience": 3}
    scripted(monkeypatch, 50.0, 40.0)
    first = run("fit", settings)
    best = first.folder / "checkpoints" / "best.ckpt"
    kept = best.read_bytes()
    scripted(monkeypatch, *([30.0] * 20))
    resumed = run(
        *("fit", settings, "--trainer.max_epochs", 9),
        *("--ckpt_path", first.folder / "checkpoints" / checkpoint),
    )
    assert resumed.code == 0
    assert best.read_bytes() == kept
    assert resumed.out.startswith(f"best validation BLEU 50.00: {best}\n")
    # Three epochs after best.ckpt, or two after last.ckpt, which came one epoch later.
    assert resumed.checkpoint()["global_step"] == 16
    assert "stopped early: 3 validations without a better val/bleu" in resumed.err


def test_a_better_score_after_a_resume_replaces_the_best(run, settings, monkeypatch):  # T16
    scripted(monkeypatch, 50.0)
    first = run("fit", settings)
    scripted(monkeypatch, 60.0)
    resumed = run("fit", settings, "--trainer.max_epochs", 2, "--ckpt_path", first.folder)
    assert resumed.checkpoint("best")["global_step"] == 8
    result = json.loads((resumed.folder / "result.json").read_text())
    assert (result["best_bleu"], result["steps"], result["epochs"]) == (60.0, 8, 2)
    assert [path.name for path in sorted((resumed.folder / "checkpoints").iterdir())] == [
        "best.ckpt",
        "last.ckpt",
    ]


def test_a_new_rate_takes_effect_on_resume(run, settings, watcher):
    first, _, _ = train(run, watcher, settings)
    args = ("--trainer.max_epochs", 2, "--model.peak_learning_rate", 0.012)
    _, _, rates = train(run, watcher, settings, *args, "--ckpt_path", first.folder)
    assert rates == pytest.approx([0.012 * left / 6 for left in (4, 3, 2, 1)])


def test_nothing_left_is_said_and_leaves_no_folder(run, settings, finished):  # T13
    for limit in (["--trainer.max_epochs", 2], ["--trainer.max_steps", 8], []):
        outcome = run("fit", settings, "--ckpt_path", finished.folder, *limit)
        assert outcome.code == 1
        assert len(outcome.err.splitlines()) == 1
        assert "nothing left to train: 2 epochs and 8 updates are done" in outcome.err
        assert "raise --trainer.max_" in outcome.err
        assert not outcome.runs.exists()
    assert "config_resumed_1.yaml" not in finished.files


def test_a_moved_checkpoint_goes_on_in_a_new_folder(run, settings, finished, tmp_path):
    shutil.copy(finished.folder / "checkpoints" / "last.ckpt", tmp_path / "moved.ckpt")
    args = ("--trainer.max_epochs", 3, "--ckpt_path", tmp_path / "moved.ckpt")
    outcome = run("fit", settings, *args)
    assert outcome.folder == tmp_path / "runs" / "my" / "version_0"
    assert outcome.steps("train/loss") == [9, 10, 11, 12]
    assert "checkpoints/best.ckpt" in outcome.files  # the best one so far may be gone


def test_another_optimizer_is_refused(run, settings, finished):
    changed = ("--model.optimizer", "muon", "--trainer.max_epochs", 3)
    outcome = run("fit", settings, *changed, "--ckpt_path", finished.folder)
    assert outcome.code == 2
    assert len(outcome.err.splitlines()) == 1
    assert "another model: optimizer is adamw in the checkpoint, muon in the config" in outcome.err


def test_every_kind_of_path_means_the_newest_last_checkpoint(settings, finished):  # C10
    folder = finished.folder
    for given in (folder.parent, folder, folder / "checkpoints", folder / "checkpoints/last.ckpt"):
        assert Resumed.read(given).path == folder / "checkpoints" / "last.ckpt"
    assert Resumed.read(folder / "checkpoints/best.ckpt").path.name == "best.ckpt"


def test_another_model_and_other_files_are_refused_in_a_line(run, settings, finished, tmp_path):
    # C06 C10 F08
    refusals = {
        finished.folder: "n_heads is 2 in the checkpoint, 4 in the config",
        tmp_path / "nothing": "no such model",
        finished.folder / "config.yaml": "not a checkpoint",
    }
    weights = finished.checkpoint()
    for key in ("loops", "optimizer_states", "lr_schedulers"):
        del weights[key]
    torch.save(weights, tmp_path / "weights.ckpt")
    refusals[tmp_path / "weights.ckpt"] = "holds weights only"
    whole, damaged = finished.checkpoint(), tmp_path / "damaged.ckpt"
    moment = whole["optimizer_states"][0]["state"][0]["exp_avg"].numpy().tobytes()
    content = (finished.folder / "checkpoints" / "last.ckpt").read_bytes()
    damaged.write_bytes(content.replace(moment, bytes(len(moment))))
    refusals[damaged] = "damaged: its content has changed since it was written"
    for path, reason in refusals.items():
        outcome = run("fit", settings, "--model.n_heads", 4, "--ckpt_path", path)
        assert outcome.code != 0
        assert len(outcome.err.splitlines()) == 1
        assert reason in outcome.err
        assert not outcome.runs.exists()


def test_a_resumed_run_keeps_the_tokenizer_of_the_checkpoint(run, settings):  # C07
    first = run("fit", settings)
    args = ("--trainer.max_epochs", 2, "--data.vocab_size", 60, "--ckpt_path", first.folder)
    resumed = run("fit", settings, *args)
    assert resumed.code == 0
    assert "120 pieces" in resumed.err
