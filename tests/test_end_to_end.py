"""A model trained with configs/tiny.yaml for a few epochs completes the README's example."""

from __future__ import annotations

from pathlib import Path

import pytest

from translate import Translator, cli

CONFIG = Path(__file__).parents[1] / "configs" / "tiny.yaml"


@pytest.mark.slow
def test_the_shipped_config_learns_to_complete_the_example(tmp_path, capsys):
    arguments = ["--config", str(CONFIG), "--runs", str(tmp_path), "--trainer.max_epochs", "6"]
    assert cli.main(["fit", *arguments, "--trainer.enable_progress_bar", "false"]) == 0

    translator = Translator.load(tmp_path / "tiny")
    sources = ["This is an example", "This is an example."]
    assert translator.translate(sources, ["Das ist ein", "Das ist ein"]) == [
        "Das ist ein Beispiel",
        "Das ist ein Beispiel.",
    ]
    assert translator.translate(sources) == ["Das ist ein Beispiel", "Das ist ein Beispiel."]

    capsys.readouterr()
    command = ["decode", "--model", str(tmp_path / "tiny"), "--prefix", "Das ist ein"]
    assert cli.main([*command, "This is an example"]) == 0
    assert capsys.readouterr().out == "Das ist ein Beispiel\n"
