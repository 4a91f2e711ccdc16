"""A resumed run equals an uninterrupted run."""

from __future__ import annotations

import json
import multiprocessing
import os
import shlex
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

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
    ("optimizer", "workers", "updates"),
    [("adamw", 0, (1, 4, 6, 8, 11)), ("muon", 1, (6,))],  # in the middle and at the end of epochs
)
def test_any_stop_goes_on_with_the_same_batches_rates_weights_and_curve(
    run, settings, watcher, tmp_path, optimizer, workers, updates
):  # T14 T15 F03
    settings["trainer"]["max_epochs"] = 3
    settings["model"] |= {"optimizer": optimizer, "dropout": 0.1}
    settings["data"]["num_workers"] = workers
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


def test_a_stop_between_the_batches_of_one_update_keeps_their_gradients(
    run, settings, watcher, tmp_path
):  # F03
    settings["trainer"] |= {"max_epochs": 2, "accumulate_grad_batches": 3, "val_check_interval": 1}
    settings["model"]["dropout"] = 0.1
    source = tmp_path / "runs" / "my" / "version_0" / "checkpoints" / "last.ckpt"

    def keep():
        if source.exists():
            shutil.copy(source, tmp_path / f"{len(watcher.batches)}.ckpt")

    watcher.at = dict.fromkeys(range(5), keep)
    straight, batches, _ = train(run, watcher, settings)
    watcher.at.clear()
    assert len(batches) == 8
    groups = [3, 1, 3, 1]  # batches per update; the last update of an epoch takes what is left
    boundaries = {sum(groups[:count]) for count in range(5)}
    for stop in (1, 2, 3, 5):
        path = tmp_path / f"{stop}.ckpt"
        stored = torch.load(path, weights_only=True)["training"]
        assert ("unfinished" in stored) == (stop not in boundaries)
        resumed, later, _ = train(run, watcher, settings, "--ckpt_path", path)
        assert later == batches[stop:]
        assert torch.equal(resumed.weights(), straight.weights())


def send(number: signal.Signals) -> Callable[[], None]:
    """Return a function that sends a signal to all processes, as a terminal does at Ctrl-C."""

    def send_to_all():
        for pid in (*(worker.pid for worker in multiprocessing.active_children()), os.getpid()):
            os.kill(pid, number)

    return send_to_all


def resume_as_told(run, watcher, outcome):
    """Run the command that the last line of a stopped run names; return (batches, rates)."""
    line = outcome.err.splitlines()[-1]
    assert line.startswith("interrupted; to resume: translate fit ")
    watcher.at.clear()
    watcher.batches.clear()
    watcher.rates.clear()
    _, name, *args = shlex.split(line.partition("to resume: ")[2])
    resumed = run(name, None, *args)
    assert resumed.code == 0, resumed.err
    return resumed, list(watcher.batches), list(watcher.rates)


@pytest.mark.parametrize(
    ("when", "number", "changes"),
    [
        (1, signal.SIGINT, {}),
        (1, signal.SIGTERM, {"optimizer": "muon", "num_workers": 1}),
        (5, signal.SIGINT, {"num_workers": 2}),
        (2, signal.SIGINT, {"log_every_n_steps": 2}),  # before the last batch of the epoch
        (3, signal.SIGTERM, {}),  # in the last batch
        (3, signal.SIGINT, {"limit_val_batches": 0}),
        ("validation 4", signal.SIGINT, {}),
        ("validation 2", signal.SIGTERM, {"val_check_interval": 2, "log_every_n_steps": 3}),
        (1, signal.SIGTERM, {"accumulate_grad_batches": 3, "val_check_interval": 1}),
        (5, signal.SIGINT, {"log_every_n_steps": 4, "check_val_every_n_epoch": 2}),
        (6, signal.SIGTERM, {"check_val_every_n_epoch": None, "val_check_interval": 3}),
    ],
    ids=str,
)
def test_a_stopped_run_loses_no_update_and_goes_on_exactly(
    run, settings, watcher, when, number, changes
):  # F03
    settings["trainer"]["max_epochs"] = 3
    settings["model"]["dropout"] = 0.1
    for name, value in changes.items():
        section = {"optimizer": "model", "num_workers": "data"}.get(name, "trainer")
        settings[section][name] = value
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    straight, batches, rates = train(run, watcher, settings)
    validated = settings["trainer"].get("limit_val_batches") != 0
    tags = ["train/loss", "train/learning_rate", *(["val/loss", "val/bleu"] if validated else [])]
    weights, curves = straight.weights(), [straight.curve(tag) for tag in tags]
    callbacks = straight.checkpoint()["callbacks"]
    watcher.batches.clear()
    watcher.at = {when: send(number)}
    stopped = run("fit", settings)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err.count("stopping after this update; Ctrl-C again stops at once") == 1
    assert stopped.checkpoint()["training"].get("unfinished") is None
    assert handlers == [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    before = list(watcher.batches)
    resumed, after, rates_after = resume_as_told(run, watcher, stopped)
    assert before + after == batches
    assert rates_after == rates[len(before) :]
    assert torch.equal(resumed.weights(), weights)
    assert [resumed.curve(tag) for tag in tags] == curves
    assert resumed.checkpoint()["callbacks"] == callbacks


def test_a_second_ctrl_c_stops_at_once(run, settings, watcher):
    def twice():
        send(signal.SIGINT)()
        send(signal.SIGINT)()

    watcher.at = {5: twice}
    outcome = run("fit", settings, "--trainer.max_epochs", 3)
    assert outcome.code == 130
    assert outcome.checkpoint()["global_step"] == 4
    assert "interrupted; to resume: " in outcome.err.splitlines()[-1]


@pytest.mark.parametrize("early", [False, True], ids=["last epoch", "stopped early"])
def test_what_was_left_to_do_at_the_end_of_a_run_is_done_when_it_is_resumed(
    run, settings, watcher, monkeypatch, early
):  # F04
    if early:
        settings["trainer"]["max_epochs"] = 9
        settings["early_stopping"] = {"patience": 1}
        scripted(monkeypatch, *[50.0] * 9)
    watcher.at = {f"end {8 if early else 4}": send(signal.SIGINT)}
    stopped = run("fit", settings)
    assert stopped.code == 130
    assert "result.json" not in stopped.files
    resumed, batches, _ = resume_as_told(run, watcher, stopped)
    assert batches == []
    assert resumed.out.startswith("best validation BLEU ")
    assert ("stopped early: 1 validations" in resumed.err) == early
    assert {"result.json", "projector"} <= set(resumed.files)
    result = json.loads((resumed.folder / "result.json").read_text())
    assert (result["epochs"], result["steps"]) == ((2, 8) if early else (1, 4))
    again = run("fit", settings, "--ckpt_path", resumed.folder)
    assert again.code == 1
    assert "nothing left to train" in again.err


@pytest.fixture
def file_size_limit():
    """Return a function that limits the size of files, as a full disk or a quota does."""
    resource = pytest.importorskip("resource")  # not on Windows
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("kind", ["checkpoint", "events", "nothing yet"])
def test_a_full_disk_ends_in_one_line_and_costs_no_checkpoint(
    run, settings, watcher, file_size_limit, kind
):  # F02 F11
    settings["trainer"]["max_epochs"] = 3
    settings["monitor"] = {"sentences": 0}
    straight, batches, _ = train(run, watcher, settings)
    weights = straight.weights()
    watcher.batches.clear()
    kept: dict[str, bytes] = {}

    def fill():
        folder = straight.folder  # the newest one
        kept.update(snapshot(folder / "checkpoints"))
        events = next(folder.glob("events*")).stat().st_size
        file_size_limit(events + 20 if kind == "events" else 20_000)

    watcher.at = {1 if kind == "nothing yet" else 5: fill}
    outcome = run("fit", settings)
    watcher.at = {}
    *_, line = outcome.err.splitlines()
    assert (outcome.code, outcome.out) == (1, "")
    assert "Traceback" not in outcome.err
    assert line.startswith("translate: cannot write ")
    assert str(outcome.folder) in line
    assert snapshot(outcome.folder / "checkpoints") == kept
    assert not list(outcome.folder.rglob(".*"))
    file_size_limit(-1)
    if kind == "nothing yet":
        assert line.endswith("there is no checkpoint yet: start again")
        return
    watcher.batches.clear()
    _, name, *args = shlex.split(line.partition(" resume: ")[2])
    assert run(name, None, *args).code == 0
    assert watcher.batches == batches[4:]
    assert torch.equal(outcome.weights(), weights)


def test_what_killed_runs_left_is_removed_when_they_go_on(run, settings):  # F02
    first = run("fit", settings)
    left = [first.folder / ".123.partial", first.folder / "checkpoints" / ".9.partial"]
    for path in left:
        path.write_bytes(b"half")
    run("fit", settings, "--trainer.max_epochs", 2, "--ckpt_path", first.folder)
    assert not any(path.exists() for path in left)


def early_stopping(outcome) -> dict:
    states = outcome.checkpoint()["callbacks"]
    return next(state for key, state in states.items() if key.startswith("EarlyStopping"))


@pytest.mark.parametrize("every", [1, 2], ids=["mid-epoch", "every second epoch"])
def test_a_run_out_of_time_says_so_and_goes_on_with_more(run, settings, watcher, every):  # N07
    settings["trainer"] |= {"max_epochs": 3, "max_time": {"hours": 1}}
    settings["trainer"] |= {"check_val_every_n_epoch": every, "log_every_n_steps": 4}
    settings["model"]["dropout"] = 0.1
    straight, batches, _ = train(run, watcher, settings)
    weights, losses = straight.weights(), straight.curve("train/loss")
    waited = early_stopping(straight)
    watcher.batches.clear()
    watcher.at = {5: lambda: watcher.timer.load_state_dict({"time_elapsed": {"train": 3600}})}
    stopped = run("fit", settings)
    watcher.at = {}
    assert stopped.code == 0
    assert "stopped by trainer.max_time after 6 updates" in stopped.err
    assert stopped.checkpoint()["global_step"] == 6
    assert stopped.steps("val/bleu")[-1] == 6
    result = json.loads((stopped.folder / "result.json").read_text())
    assert (result["epochs"], result["steps"]) == (1, 6)
    again = run("fit", settings, "--ckpt_path", stopped.folder)
    assert again.code == 1
    assert "1 epochs and 6 updates are done, and max_time of 3600 seconds allow" in again.err
    assert "raise --trainer.max_time" in again.err
    more = ("--trainer.max_time", "00:02:00:00", "--ckpt_path", stopped.folder)
    resumed = run("fit", settings, *more)
    assert resumed.code == 0, resumed.err
    assert watcher.batches == batches
    assert torch.equal(resumed.weights(), weights)
    curve = resumed.curve("train/loss")
    assert [point for point in curve if point[0] != 6] == losses  # Lightning logs where it stops
    assert early_stopping(resumed) == waited


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


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def move(folder: Path, to: Path) -> Path:
    return folder.rename(to)


def link(folder: Path, to: Path) -> Path:
    to.symlink_to(folder)
    return to


@pytest.mark.parametrize("transport", [move, shutil.copytree, link])
def test_a_run_goes_on_wherever_its_folder_is_and_keeps_its_best(
    run, settings, monkeypatch, tmp_path, transport
):  # N02
    scripted(monkeypatch, 99.0, 0.5)
    first = run("fit", settings)
    folder = transport(first.folder, tmp_path / "good model")
    best = (folder / "checkpoints" / "best.ckpt").read_bytes()
    config = folder / "config.yaml"  # names the old place
    args = ("--trainer.max_epochs", 2, "--ckpt_path", folder / "checkpoints" / "last.ckpt")
    outcome = run("fit", config, *args)
    assert outcome.code == 0, outcome.err
    assert (folder / "checkpoints" / "best.ckpt").read_bytes() == best
    assert json.loads((folder / "result.json").read_text())["best_bleu"] == 99.0
    assert (folder / "config_resumed_1.yaml").is_file()
    assert len(list(tmp_path.glob("runs/my/version_*"))) == (0 if transport is move else 1)
    assert "best validation BLEU 99.00" in outcome.out


def test_a_missing_best_checkpoint_is_said_and_written_anew(run, settings, monkeypatch):  # N02
    scripted(monkeypatch, 50.0, 40.0)
    first = run("fit", settings)
    (first.folder / "checkpoints" / "best.ckpt").unlink()
    resumed = run("fit", settings, "--trainer.max_epochs", 2, "--ckpt_path", first.folder)
    assert "best.ckpt is missing or damaged: the next validation writes a new one" in resumed.err
    assert resumed.out.startswith("best validation BLEU 40.00")


def test_the_checkpoint_of_another_run_does_not_make_a_folder_its_own(
    run, settings, finished, tmp_path
):  # N02 F01
    first = run("fit", settings)
    stranger = first.folder / "checkpoints" / "stranger.ckpt"
    shutil.copy(finished.folder / "checkpoints" / "last.ckpt", stranger)
    folder, before = first.folder, snapshot(first.folder)
    resumed = run("fit", settings, "--trainer.max_epochs", 3, "--ckpt_path", stranger)
    assert resumed.folder.name == "version_1"
    assert resumed.steps("train/loss") == [9, 10, 11, 12]
    assert snapshot(folder) == before


@pytest.mark.parametrize("other", ["name", "runs", "corpus"])
def test_another_name_folder_or_corpus_is_a_new_run_from_those_weights(
    run, settings, watcher, tmp_path, other
):  # F01 N40
    settings["trainer"]["max_epochs"] = 2
    first, _, rates = train(run, watcher, settings)
    old, weights, before = first.folder, first.weights(), snapshot(first.folder)
    args, reason = {
        "name": (("--name", "new"), "the name 'new' is not the name of that run"),
        "runs": (("--runs", "elsewhere"), "that run is not in "),
        "corpus": (("--data.train.tsv", "more.tsv", "--trainer.max_epochs", 3), "other sentence"),
    }[other]
    corpus = Path(settings["data"]["train"]["tsv"]).read_bytes()
    (tmp_path / "more.tsv").write_bytes(corpus + b"A cat\tEine Katze\n")
    first_weights = []
    watcher.at[0] = lambda: first_weights.append(watcher.weights())
    new, batches, new_rates = train(run, watcher, settings, *args, "--ckpt_path", old)
    assert torch.equal(first_weights[0], weights)
    assert batches[0][0] == 0
    assert len(new_rates) == len(rates) or other == "corpus"
    assert new_rates[0] == rates[0]
    assert reason in new.err and "new run " in new.err
    assert snapshot(old) == before
    ids = [json.loads(path.read_text())["id"] for path in tmp_path.rglob("run.json")]
    assert len(ids) == len(set(ids)) == 2


def test_changed_settings_are_said_before_anything_is_written(run, settings):  # N40
    first = run("fit", settings)
    changed = ("--model.dropout", 0.2, "--trainer.max_epochs", 2, "--early_stopping.patience", 3)
    resumed = run("fit", settings, *changed, "--ckpt_path", first.folder)
    said = "settings changed since the checkpoint: "
    line = next(line for line in resumed.err.splitlines() if line.startswith(said))
    assert set(line.removeprefix(said).split(", ")) == {
        "model.dropout 0.0 -> 0.2",
        "trainer.max_epochs 1 -> 2",
        "early_stopping.patience 10 -> 3",
    }
    assert resumed.checkpoint()["translate"]["config"]["dropout"] == 0.2
    again = run("fit", settings, *changed, "--trainer.max_epochs", 3, "--ckpt_path", first.folder)
    assert "settings changed since the checkpoint: trainer.max_epochs 2 -> 3\n" in again.err


@pytest.mark.parametrize("stop", [2, 4])  # inside and at the end of the first epoch
def test_other_batches_start_the_unfinished_epoch_again(
    run, settings, watcher, tmp_path, stop
):  # N40
    settings["trainer"] |= {"max_epochs": 2, "val_check_interval": 1}
    keep_after(watcher, tmp_path, [stop])
    train(run, watcher, settings)
    watcher.at.clear()
    args = ("--data.batch_tokens", 80, "--ckpt_path", tmp_path / f"{stop}.ckpt")
    resumed, batches, _ = train(run, watcher, settings, *args)
    assert ("epoch 1 starts again" in resumed.err) == (stop == 2)
    for epoch in (0, 1) if stop == 2 else (1,):
        seen = [source for number, batch in batches if number == epoch for source in batch]
        assert len(seen) == len(set(seen)) == 30
    assert {number for number, _ in batches} == ({0, 1} if stop == 2 else {1})


def test_a_run_records_what_made_it(run, settings, finished, tmp_path):
    record = json.loads((finished.folder / "run.json").read_text())
    stored = finished.checkpoint()["training"]
    assert stored.items() >= record.items()
    assert record["seed"] == 1
    assert record["environment"].keys() >= {"python", "torch", "threads", "processor", "precision"}
    assert record["sha256"].keys() == {"train", "valid", "tokenizer"}
    assert record["sha256"]["tokenizer"] == finished.checkpoint()["translate"]["tokenizer_sha256"]
    path = tmp_path / "threads.ckpt"
    checkpoint = finished.checkpoint()
    checkpoint["training"]["environment"]["threads"] += 1
    torch.save(checkpoint, path)
    resumed = run("fit", settings, "--trainer.max_epochs", 3, "--ckpt_path", path)
    threads = record["environment"]["threads"]
    assert (
        f"by rounding from those of an uninterrupted run: threads {threads + 1} ->" in resumed.err
    )


def test_the_end_of_a_longer_run_is_finished_although_the_shorter_one_was(
    run, settings, watcher
):  # F04
    first = run("fit", settings)
    watcher.at = {"end 8": send(signal.SIGINT)}
    longer = ("--trainer.max_epochs", 2, "--ckpt_path", first.folder)
    assert run("fit", settings, *longer).code == 130
    watcher.at = {}
    assert run("fit", settings, *longer).code == 0
    assert json.loads((first.folder / "result.json").read_text())["steps"] == 8


def test_a_checkpoint_whose_progress_is_damaged_is_refused_in_a_line(
    run, settings, finished, tmp_path
):
    checkpoint = finished.checkpoint()
    del checkpoint["loops"]["fit_loop"]
    torch.save(checkpoint, tmp_path / "damaged.ckpt")
    outcome = run("fit", settings, "--ckpt_path", tmp_path / "damaged.ckpt")
    assert outcome.code == 1
    assert "can translate but not be resumed: entry 'fit_loop' is missing" in outcome.err


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
