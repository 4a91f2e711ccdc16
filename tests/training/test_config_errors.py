"""Errors of the parser, turned into messages for the user."""

from __future__ import annotations

import pytest

from translate.training.config_errors import explain

KNOWN = ["model.d_model", "model.peak_learning_rate", "trainer.max_epochs", "data.train.tsv"]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("model.d_modle", "did you mean model.d_model?"),
        ("trianer", "did you mean trainer?"),
        ("data.train.tvs", "did you mean data.train.tsv?"),
        ("max_epochs", "did you mean trainer.max_epochs?"),
        ("zzz", "`translate fit --help` lists all settings"),
    ],
)
def test_the_nearest_known_setting_is_named(key, hint):  # L02
    message = f"Option '{key}' is not accepted"
    assert explain(message, ["fit", "--config", "a.yaml"], KNOWN) == (
        f"a.yaml: no setting {key}; {hint}"
    )


def test_a_value_from_the_command_line_is_not_blamed_on_the_file():
    message = "Parser key \"model.d_model\":\n  Expected a <class 'int'>. Got value: x"
    told = "model.d_model: expected int, got x"
    assert explain(message, ["fit", "-c", "a.yaml"], KNOWN) == f"a.yaml: {told}"
    for args in (["--model.d_model", "x"], ["--model.d_model=x"]):
        assert explain(message, ["fit", "-c", "a.yaml", *args], KNOWN) == f"command line: {told}"


def test_any_other_message_becomes_one_line():
    assert explain("something\n  quite\tnew", ["fit"], KNOWN) == "something quite new"
