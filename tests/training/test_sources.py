"""Sources and filters in a config, on the command line, and in the configs of this repository."""

from __future__ import annotations

import re
import socket

import pytest
import yaml

from translate.text.filters import Filters


def refusal(outcome) -> str:
    """Return the message of a command that was refused and wrote no file."""
    assert (outcome.code, outcome.out, outcome.runs.exists()) == (2, "", False)
    (line,) = outcome.err.splitlines()
    return line


def test_a_run_on_a_list_can_be_repeated_from_its_config(run, settings, tmp_path):  # L09
    (tmp_path / "more.jsonl").write_text('{"source": "Yes.", "target": "Ja."}\n')
    more = {"jsonl": "more.jsonl", "fields": ["source", "target"]}
    settings["data"]["train"] = [settings["data"]["train"], more]
    first = run("fit", settings, "--trainer.max_steps", 1)
    again = run("fit", first.folder / "config.yaml", "--runs", tmp_path / "again")
    assert first.err.splitlines()[0].startswith("31 pairs to train on")
    assert first.err.splitlines()[0] == again.err.splitlines()[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"tvs": "a.tsv"}, "no setting data.train.tvs; did you mean data.train.tsv?"),
        ([{"tsv": "a"}, {"tvs": "a"}], "no setting data.train.tvs; did you mean data.train.tsv?"),
        ({"tsv": "a.tsv", "columns": [1]}, "data.train.columns: expected tuple with 2 elements"),
        ([{"tsv": "a.tsv", "columns": [1]}], "data.train.columns: expected tuple with 2 elements"),
        ({"tmx": "a", "languages": ["en", False]}, "data.train.languages: expected str, got False"),
        (["a.tsv"], "data.train: expected a list of sections: write [{tsv: a.tsv}]"),
    ],
)
def test_a_wrong_setting_inside_a_source_is_named(run, settings, value, message):
    settings["data"]["train"] = value
    assert re.search(rf"my\.yaml:[567]: {re.escape(message)}", refusal(run("fit", settings)))


def test_a_source_on_the_command_line_is_told_from_one_in_a_file(run, settings):
    line = refusal(run("fit", None, "--data.train.tvs", "a"))
    assert line.startswith("translate: command line: no setting --data.train.tvs; did you")
    line = refusal(run("fit", settings, "--data.train.columns", "[1]"))
    assert "command line: data.train.columns: expected tuple with 2 elements" in line


def test_an_empty_list_of_sources_is_refused(run, settings):
    settings["data"]["train"] = []
    line = refusal(run("fit", settings))
    assert line.endswith("my.yaml:5: data.train is an empty list: name a file")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"length_ratio": 0}, "filters.length_ratio must be 1 or more, not 0"),
        ({"copied_words": -1}, "filters.copied_words must be 0 or more, not -1"),
        ({"copies": 3}, "no setting data.filters.copies"),
        ({"drop_duplicates": "perhaps"}, "data.filters.drop_duplicates: expected bool"),
    ],
)
def test_a_filter_that_cannot_be_meant_is_named(run, settings, value, message):
    settings["data"]["filters"] = value
    assert message in refusal(run("fit", settings))


def test_the_template_for_own_files_trains_on_a_table(run, request, tmp_path):
    lines = [f"Sentence {n}.\tSatz {n}.\r\n" for n in range(40)]
    (tmp_path / "mine.tsv").write_text("".join(lines), newline="")
    template = request.config.rootpath / "configs" / "own.yaml"
    outcome = run("fit", template, "--data.train.tsv", "mine.tsv", "--trainer.fast_dev_run", True)
    assert outcome.code == 0
    assert "32 pairs to train on, 4 to validate on" in outcome.err


def test_the_template_names_the_filters_as_they_are(request):
    path = request.config.rootpath / "configs" / "own.yaml"
    assert yaml.safe_load(path.read_text("utf-8"))["data"]["filters"] == vars(Filters())


def test_the_shipped_config_trains_without_a_network_and_loses_no_pair(
    run, request, monkeypatch
):  # D17
    def refuse(*args):
        raise OSError(f"a network is asked for: {args}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    config = request.config.rootpath / "configs" / "tiny.yaml"
    outcome = run("fit", config, "--trainer.max_steps", 1, "--trainer.enable_progress_bar", False)
    assert outcome.code == 0
    assert outcome.err.startswith("11,927 pairs to train on, 500 to validate on, 2,500 pieces\n")
