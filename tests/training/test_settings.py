"""Valid settings in a config and on the command line, and messages about invalid ones."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from lightning import Trainer

from translate.cli import main
from translate.errors import UsageError
from translate.training.cli import TranslationCLI
from translate.training.trainer_checks import check_trainer


def printed(*args) -> str:
    """What --print_config writes to standard output; standard error stays empty."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as stop,
    ):
        main(["fit", *map(str, args), "--print_config"])
    assert stop.value.code in (0, None)
    assert err.getvalue() == ""
    return out.getvalue()


def refused(outcome, code: int, *parts: str) -> None:
    """One line on stderr, nothing on stdout, nothing on disk."""
    assert outcome.code == code
    assert outcome.out == ""
    assert len(outcome.err.splitlines()) == 1
    for part in ("translate: ", *parts):
        assert part in outcome.err
    assert not outcome.runs.exists()


@pytest.mark.parametrize("value", ["1e-3", "1.0e-3", ".001", "0.001"])
def test_every_way_to_write_a_rate_is_read(value, tmp_path):  # L01
    path = tmp_path / "my.yaml"
    path.write_text(f"model:\n  peak_learning_rate: {value}\n")
    assert yaml.safe_load(printed("--config", path))["model"]["peak_learning_rate"] == 0.001


@pytest.mark.parametrize(
    ("section", "key", "value", "parts"),
    [
        ("model", "warmup_steps", "4e3", ["model.warmup_steps: expected int, got 4e3"]),
        ("model", "peak_learning_rate", "0,001", ["expected float, got 0,001"]),
        ("model", "learning_rate", 0.1, ["no setting model.learning_rate", "peak_learning_rate?"]),
        ("model", "norm", "mid", ["model.norm: expected 'pre', 'post', got mid"]),
        ("data", "character_coverage", 0.9, ["no setting data.character_coverage"]),  # S16
        ("data", "batch_tokens", 2.5, ["data.batch_tokens: expected int, got 2.5"]),
        ("data", "batch_tokens", 0, ["data.batch_tokens must be 1 or more, not 0"]),
        (
            "trainer",
            "max_epoch",
            3,
            ["no setting trainer.max_epoch; did you mean trainer.max_epochs?"],
        ),
        ("trainer", "precision", "fp8", ["trainer.precision: expected", "got fp8"]),
        ("trainer", "max_epochs", 0, ["nothing to train: trainer.max_epochs is 0"]),
        ("trainer", "max_steps", 0, ["nothing to train: trainer.max_steps is 0"]),
        ("trainer", "limit_train_batches", 0, ["trainer.limit_train_batches is 0"]),
        ("trainer", "accelerator", "abacus", ["abacus"]),
        ("trainer", "accelerator", "tpu", ["must be cpu, gpu or auto, not tpu"]),
        ("trainer", "callbacks", "Nothing", ["trainer.callbacks: expected", "got Nothing"]),
        (
            "early_stopping",
            "monitor",
            "val/blue",
            ["early_stopping.monitor: expected 'val/bl", "got val/blue"],
        ),
        ("early_stopping", "patience", -1, ["early_stopping.patience must be 0 or more, not -1"]),
        (
            "early_stopping",
            "monitor",
            "val/loss",
            ["early_stopping.mode must be min for val/loss, not max"],
        ),
        ("translations", "samples", -1, ["translations.samples must be 0 or more, not -1"]),
    ],
)  # L01 L02 L03
def test_a_wrong_setting_is_refused_with_its_name(run, settings, section, key, value, parts):
    settings.setdefault(section, {})[key] = value
    refused(run("fit", settings), 2, *parts)


def test_an_unknown_key_names_the_file_and_a_wrong_argument_the_command_line(run, settings):  # L02
    settings["modle"] = {"d_model": 16}
    refused(run("fit", settings), 2, "my.yaml:19: no setting modle; did you mean model?")
    del settings["modle"]
    refused(run("fit", settings, "--max_epochs", 3), 2, "did you mean trainer.max_epochs?")
    refused(run("fit", settings, "--model.d_model", "x"), 2, "command line: model.d_model")


def test_all_contradictions_are_told_at_once_before_data_is_read(run, settings):  # L03
    settings["model"] |= {"dropout": 1.5, "n_heads": 3, "max_length": 0, "label_smoothing": 1}
    settings["data"] |= {"vocab_size": 2, "train": {"tsv": "nowhere.tsv", "source": "a"}}
    outcome = run("fit", settings)
    assert outcome.code == 2 and not outcome.runs.exists()
    config = outcome.runs.parent / "my.yaml"
    lines = config.read_text().splitlines()

    def line(key: str) -> int:
        return next(n for n, text in enumerate(lines, 1) if text.strip().startswith(f"{key}:"))

    faults = {
        "dropout": "model.dropout must lie in [0, 1), not 1.5",
        "n_heads": "model.n_heads 3 does not divide d_model 16",
        "max_length": "model.max_length must be at least 2, not 0",
        "label_smoothing": "model.label_smoothing must lie in [0, 1), not 1.0",
        "vocab_size": "data.vocab_size must be 5 or more, not 2",
    }
    told = outcome.err.removeprefix("translate: ").splitlines()
    assert len(told) == 6
    assert {f"{config}:{line(key)}: {fault}" for key, fault in faults.items()} < set(told)
    assert "data.train.tsv and data.train.source are both set" in outcome.err


def test_settings_are_parsed_and_checked_without_training(tmp_path):
    data = ["--data.train.tsv", "missing.tsv"]
    settings = TranslationCLI(
        "fit", [*data, "--model.d_model", "64", "--runs", str(tmp_path)]
    ).config
    assert (settings.model.d_model, settings.model.dropout) == (64, 0.1)
    assert settings.data.train.tsv.name == "missing.tsv"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(
        UsageError,
        match=r"model.dropout must lie in \[0, 1\), not 2(?s:.*)data.held_out must be 1 or more",
    ):
        TranslationCLI("fit", [*data, "--model.dropout", "2", "--data.held_out", "0"])


def test_every_setting_of_model_and_data_has_a_description():
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        main(["fit", "--help"])
    options = re.split(r"\n  (?=--)", out.getvalue())
    described = [each for each in options if re.match(r"--(model|data)\.(?!.*help)", each)]
    assert len(described) > 25
    for option in described:
        assert len(option.partition("(type:")[0].split()) > 4, option


def test_help_is_short_and_help_all_lists_every_setting():
    short, everything = io.StringIO(), io.StringIO()
    for out, args in (
        (short, ["--help"]),
        (everything, ["--config", "none.yaml", "--help", "all"]),
    ):
        with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as stop:
            main(["fit", *args])
        assert stop.value.code in (0, None)
    assert len(short.getvalue().splitlines()) < len(everything.getvalue().splitlines()) / 2
    for key in ("data.batch_tokens", "model.d_model", "trainer.max_epochs", "trainer.precision"):
        assert f"\n  --{key} " in short.getvalue() and f"\n  --{key} " in everything.getvalue()
    assert "--trainer.barebones" not in short.getvalue()
    assert "--trainer.barebones" in everything.getvalue()
    assert "`translate fit --help all` shows all" in short.getvalue()


def test_a_quoted_number_is_a_number(run, settings):  # L03
    settings["data"]["batch_tokens"] = "160"
    settings["model"]["peak_learning_rate"] = "1e-3"
    assert run("fit", settings, "--trainer.fast_dev_run", True).code == 0


@pytest.mark.parametrize("text", ["", "just text\n", "- a\n- b\n", "model: [\n"])
def test_a_file_that_is_no_config_is_named(run, tmp_path, text):
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    refused(run("fit", path), 2, "odd.yaml")
    refused(run("fit", tmp_path / "none.yaml"), 2, "none.yaml")


def test_bad_data_is_told_with_file_and_line_and_exit_code_1(run, settings, tmp_path):
    (tmp_path / "latin.tsv").write_bytes(b"a\tb\nGr\xfc\xdfe\tx\n")
    refused(run("fit", settings, "--data.train.tsv", "latin.tsv"), 1, "latin.tsv:2", "not UTF-8")
    refused(run("fit", settings, "--data.train.tsv", "none.tsv"), 1, "none.tsv", "data.train.tsv")
    refused(run("fit", settings, "--data.vocab_size", 8), 1, "vocab_size 8 is too small")
    refused(run("fit", settings, "--model.max_length", 3), 1, "no pairs left", "30 of 30")  # T23


def test_a_validation_that_would_never_come_is_refused(run, settings):
    outcome = run("fit", settings, "--trainer.val_check_interval", 100)
    assert outcome.code == 2
    assert "val_check_interval is 100 batches, but an epoch has 4" in outcome.err
    assert not outcome.runs.exists()


def test_a_path_in_a_file_is_meant_from_the_file_and_an_argument_from_here(
    run, settings, tmp_path, monkeypatch
):  # L06
    config = tmp_path / "conf" / "my.yaml"
    config.parent.mkdir()
    config.write_text("data:\n  train:\n    tsv: train.tsv\nruns: my runs\n")
    for folder in (tmp_path, tmp_path / "conf"):
        monkeypatch.chdir(folder)
        args = ("--config", config, "--data.valid.tsv", "valid.tsv", "--data.challenge", "sets")
        values = yaml.safe_load(printed(*args))
        assert values["data"]["train"]["tsv"] == str(tmp_path / "conf" / "train.tsv")
        assert values["runs"] == str(tmp_path / "conf" / "my runs")
        assert values["data"]["valid"]["tsv"] == str(folder / "valid.tsv")
        assert values["data"]["challenge"] == str(folder / "sets")
    assert yaml.safe_load(printed())["runs"] is None  # runs/ here, or where the resumed run is


@pytest.mark.parametrize("suffix", ["csv", "tsv", "yaml", "json"])
def test_a_path_that_exists_stays_a_path(tmp_path, monkeypatch, suffix):  # L07
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"data.{suffix}"
    path.write_text('{"source": "a"}' if suffix == "json" else "source: a\n")
    for key in ("data.train.source", "data.train.tsv", "data.tokenizer"):
        values = yaml.safe_load(printed(f"--{key}", path.name))
        for part in key.split("."):
            values = values[part]
        assert values == str(path)


def test_a_printed_config_and_a_saved_one_repeat_the_run(run, finished, tmp_path):  # L09 L13
    saved = finished.folder / "config.yaml"
    (tmp_path / "printed.yaml").write_text(printed("--config", saved))
    for config in (saved, tmp_path / "printed.yaml"):
        again = run("fit", config, "--runs", tmp_path / "runs", "--translations.heatmaps", "[]")
        assert again.code == 0
        assert again.curve("train/loss") == finished.curve("train/loss")
        assert again.folder.parent.name == "my"


@pytest.mark.parametrize("name", ["007", "77950e8", "no", "1_0e3", "my run"])
def test_a_name_stays_text_also_through_a_saved_config(run, settings, name):  # L12
    args = ("--trainer.max_steps", 1, "--trainer.logger", False)
    first = run("fit", settings, "--name", name, *args)
    again = run("fit", first.folder / "config.yaml")
    assert again.code == 0
    assert again.folder == again.runs / name / "version_1"


def test_a_name_that_yaml_reads_as_false_asks_for_quotes(run, settings):  # L12
    settings["name"] = False
    refused(run("fit", settings), 2, "name: expected str, got false; put text in quotes")
    del settings["name"]
    refused(run("fit", settings, "--name", "a/b"), 2, "name must be the name of one folder")


def test_the_environment_changes_no_setting(run, tmp_path, monkeypatch):  # L10
    monkeypatch.setenv("FIT__MODEL__D_MODEL", "64")
    monkeypatch.setenv("PL_FIT__MODEL__D_MODEL", "64")
    assert yaml.safe_load(printed())["model"]["d_model"] == 128


def test_the_shipped_config_is_valid_and_names_files_that_exist(tmp_path, request):
    root = request.config.rootpath
    values = yaml.safe_load(printed("--config", root / "configs" / "tiny.yaml"))
    for side in ("source", "target"):
        assert Path(values["data"]["train"][side]).is_file()
    assert Path(values["data"]["challenge"]).samefile(root / "data" / "challenge")


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_a_list_of_sources_keeps_its_paths_relative_to_the_config(name, tmp_path):  # L06
    config = tmp_path / "conf" / "my.yaml"
    config.parent.mkdir()
    config.write_text(
        f"data:\n  {name}:\n  - {{tsv: a.tsv, columns: [2, 1]}}\n  - {{source: a, target: ../b}}\n"
    )
    first, second = yaml.safe_load(printed("--config", config))["data"][name]
    assert (first["tsv"], first["columns"]) == (str(tmp_path / "conf" / "a.tsv"), [2, 1])
    assert second["source"] == str(tmp_path / "conf" / "a")
    assert Path(second["target"]).resolve() == (tmp_path / "b").resolve()


def test_a_byte_order_mark_before_a_config_is_no_part_of_a_key(tmp_path):  # D06
    path = tmp_path / "my.yaml"
    path.write_bytes("\ufeffdata:\n  train: {tsv: a.tsv}\n".encode())
    values = yaml.safe_load(printed("--config", path))
    assert values["data"]["train"]["tsv"] == str(tmp_path / "a.tsv")


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_a_file_name_where_a_section_belongs_is_told_what_to_write(run, settings, name):
    settings["data"][name] = "three.tsv"
    refused(run("fit", settings), 2, "my.yaml:", f": data.{name}: ", "write {tsv: three.tsv}")
    args = (f"--data.{name}", "three.tsv")
    refused(run("fit", None, *args), 2, "command line: ", f"write --data.{name}.tsv three.tsv")


@pytest.mark.parametrize("key", ["train", "trainer", "translations", "model"])
@pytest.mark.parametrize("value", [3, [3]])
def test_one_value_where_a_section_belongs_is_refused(run, settings, key, value):
    (settings["data"] if key == "train" else settings)[key] = value
    refused(run("fit", settings), 2, f"{key}: expected a section of settings")


@pytest.mark.parametrize("content", ["name: ü\n".encode("latin-1"), b"PK\3\4\x80\xff"])
def test_a_config_that_is_no_utf8_text_is_named(run, tmp_path, content):  # D08
    path = tmp_path / "odd.yaml"
    path.write_bytes(content)
    refused(run("fit", path), 2, f"{path}: not UTF-8 text")


def test_without_any_data_a_config_is_asked_for(run):
    refused(run("fit", None), 2, "data.train.tsv", "--config FILE (`translate template my.yaml` ")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("data:\n\ttrain: x\n", 2, "found character that cannot start any token"),
        ("data: [1, 2\nmodel: {\n", 2, "did not find expected ',' or ']'"),
        ("a: b: c\n", 1, "mapping values are not allowed in this context"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(run, tmp_path, text, line, reason):
    (tmp_path / "bad.yaml").write_text(text)
    outcome = run("fit", Path("bad.yaml"))
    assert outcome.code == 2
    assert outcome.err == f"translate: bad.yaml:{line}: not YAML: {reason}\n"


def test_a_run_may_be_limited_by_steps_alone(run, settings):
    settings["trainer"] |= {"max_epochs": None, "max_steps": 3}
    outcome = run("fit", settings)
    assert outcome.code == 0
    assert outcome.checkpoint()["global_step"] == 3


@pytest.mark.parametrize("option", ["--data.train.tsv", "--runs", "--config"])
def test_a_name_that_is_not_utf8_is_refused_in_one_line(run, settings, option):
    told = "'b\\udcf6se' is not UTF-8: rename the file or folder"
    refused(run("fit", settings, option, "b\udcf6se"), 2, told)


def test_apples_mps_is_not_chosen_and_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert yaml.safe_load(printed())["trainer"]["accelerator"] == "cpu"
    trainer = Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    monkeypatch.setattr(type(trainer.strategy), "root_device", torch.device("mps"))
    with pytest.raises(UsageError, match=r"set --trainer\.accelerator cpu$"):
        check_trainer(trainer)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused_in_one_line(seed):
    with pytest.raises(
        UsageError, match=rf"^command line: seed_everything must be from 0 to .*, not {seed}$"
    ):
        TranslationCLI("fit", ["--seed_everything", str(seed)])


def test_a_folder_for_runs_that_cannot_be_written_is_refused_before_data_is_read(
    run, settings, tmp_path
):
    (tmp_path / "file").write_text("")
    settings["data"]["train"] = {"tsv": "nowhere.tsv"}
    refused(run("fit", settings, "--runs", tmp_path / "file" / "runs"), 1, "cannot write the run")


def test_the_help_of_a_section_names_the_program():
    command = [sys.executable, "-m", "translate", "fit", "--data.train.help", "ParallelFiles"]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert (finished.returncode, finished.stdout.split()[:2]) == (0, ["usage:", "translate"])


def test_a_wrong_challenge_folder_is_refused_before_training(run, settings, tmp_path):
    settings["data"]["challenge"] = str(tmp_path / "nowhere")
    outcome = run("fit", settings)
    assert outcome.code == 1 and "set data.challenge" in outcome.err
    assert not outcome.runs.exists()
