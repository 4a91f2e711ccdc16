"""Run folders: their names, and the commands that a run prints."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from translate.errors import UserError
from translate.training.run_folder import RunFolder, results_path

RECORD = {"id": "0123"}


def test_versions_count_on_from_the_highest(tmp_path):  # B04
    for name in ("version_2", "version_10", "version_x", "other"):
        (tmp_path / "tiny" / name).mkdir(parents=True)
    assert RunFolder.new(tmp_path, "tiny").path == tmp_path / "tiny" / "version_11"
    assert RunFolder.new(tmp_path, "new").path == tmp_path / "new" / "version_0"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["a/b", "..", ".", "/tmp"])
def test_a_name_is_that_of_one_folder(tmp_path, name):
    with pytest.raises(UserError, match="name must be the name of one folder"):
        RunFolder.new(tmp_path, name)


def test_a_checkpoint_in_a_run_knows_its_run_and_a_moved_one_does_not(tmp_path):
    run = RunFolder(tmp_path / "tiny" / "version_3", resumed=True)
    assert RunFolder.of_checkpoint(run.checkpoints / "last.ckpt") == run
    assert RunFolder.of_checkpoint(tmp_path / "last.ckpt") is None
    assert RunFolder.of_checkpoint(tmp_path / "checkpoints" / "last.ckpt") is None


def test_commands_are_absolute_and_quoted(tmp_path, monkeypatch):  # B03
    monkeypatch.chdir(tmp_path)
    run = RunFolder(Path("my runs") / "it's" / "version_0")
    run.save_config("a: 1\n", RECORD)
    folder = str(tmp_path / "my runs" / "it's")
    assert shlex.split(run.tensorboard_command()) == ["tensorboard", "--logdir", folder]
    words = shlex.split(run.decode_command("This is $5"))
    assert words == ["translate", "decode", "--model", f"{folder}/version_0", "This is $5"]
    words = shlex.split(run.resume_command())
    assert words[2:] == [
        *("--config", f"{folder}/version_0/config.yaml"),
        *("--ckpt_path", f"{folder}/version_0/checkpoints/last.ckpt"),
    ]
    assert '"' in RunFolder(Path("runs") / "plain" / "version_0").tensorboard_command()


def test_configs_of_resumed_runs_stand_beside_the_first(tmp_path):
    run = RunFolder.new(tmp_path, "tiny")
    run.save_config("first", RECORD)
    resumed = RunFolder.of_checkpoint(run.checkpoints / "last.ckpt")
    for text in ("second", "third"):
        resumed.save_config(text, RECORD)
    assert {path.name: path.read_text() for path in run.path.glob("*.yaml")} == {
        "config.yaml": "first",
        "config_resumed_1.yaml": "second",
        "config_resumed_2.yaml": "third",
    }


def test_of_two_runs_that_start_together_one_is_refused(tmp_path):  # B04
    first, second = RunFolder.new(tmp_path, "tiny"), RunFolder.new(tmp_path, "tiny")
    first.save_config("first", RECORD)
    with pytest.raises(UserError, match=r"another run has just created .*version_0"):
        second.save_config("second", RECORD)
    assert sorted(path.name for path in first.path.iterdir()) == ["config.yaml", "run.json"]


def test_a_result_is_written_whole(tmp_path):
    run = RunFolder(tmp_path / "tiny" / "version_0")
    run.save_config("", RECORD)
    run.save_result({"best_bleu": 1.5})
    assert json.loads((run.path / "result.json").read_text()) == {"best_bleu": 1.5}
    assert sorted(path.name for path in run.path.iterdir()) == [
        "config.yaml",
        "result.json",
        "run.json",
    ]


def test_a_place_that_cannot_be_written_is_named_before_and_at_writing(tmp_path):
    (tmp_path / "file").write_text("")
    run = RunFolder(tmp_path / "file" / "tiny" / "version_0")
    for refuse in (run.check_writable, lambda: run.save_config("", RECORD)):
        with pytest.raises(UserError, match=r"cannot write the run folder .*file"):
            refuse()
    RunFolder(tmp_path / "new" / "tiny" / "version_0").check_writable()
    assert not (tmp_path / "new").exists()


# F10
def test_a_folder_without_permission_to_write_is_refused(unprivileged):
    unprivileged.chmod(0o500)
    with pytest.raises(UserError, match=r"cannot write the run folder .*: Permission denied"):
        RunFolder(unprivileged / "tiny" / "version_0").check_writable()


# F10
@pytest.mark.parametrize("folder", ["n" * 256 + "/version_0", "d/" * 2000 + "version_0"])
def test_a_name_that_is_too_long_is_refused(tmp_path, folder):
    with pytest.raises(UserError, match=r"cannot write the run folder .*: File name too long"):
        RunFolder(tmp_path / folder).check_writable()
    assert list(tmp_path.iterdir()) == []


# F10
def test_the_run_folder_is_tried_before_the_data_is_read(run, settings, tmp_path):
    (tmp_path / "file").touch()
    outcome = run("fit", settings, "--runs", "file/runs", "--data.train.tsv", "missing.tsv")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"translate: cannot write the run folder {tmp_path}/file/runs/")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        ("version_0/checkpoints/best.ckpt", "version_0/test.greedy"),
        ("version_0/checkpoints/last.ckpt", "version_0/last.test.greedy"),
        ("models/small.ckpt", "models/small.test.greedy"),
        ("best.ckpt", "best.test.greedy"),
    ],
)
def test_each_checkpoint_has_results_of_its_own(tmp_path, checkpoint, expected):
    assert results_path(tmp_path / checkpoint, "test.greedy") == tmp_path / expected
