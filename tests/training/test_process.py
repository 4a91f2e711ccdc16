"""The streams and signals of `translate fit` with its progress bar."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest
import yaml


@pytest.fixture
def start(settings, tmp_path):
    """Start `translate fit` on a config with the progress bar on, as a process."""
    settings["trainer"]["enable_progress_bar"] = True

    def start(config: str, *args: str, **environment: str) -> subprocess.Popen:
        (tmp_path / config).write_text(yaml.safe_dump(settings, allow_unicode=True), "utf-8")
        return subprocess.Popen(
            [sys.executable, "-m", "translate", "fit", "--config", config, *args],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    return start


def lines(err: str) -> list[str]:
    """The lines on a terminal; each state of the progress bar is a separate line."""
    return re.split(r"\r|\n|\x1b\[A", err)


def test_a_process_writes_our_lines_and_a_bar_also_in_a_locale_without_utf8(
    start, settings, tmp_path
):  # D08
    settings["name"] = "ü"
    (tmp_path / "gültig.tsv").write_text("the cat\tdie Katze\nthe day\t\n", "utf-8")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    process = start("prüf.yaml", "--data.valid.tsv", "gültig.tsv", **locale)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert [line.split(" ")[0] for line in out.splitlines()] == ["best", "tensorboard", "translate"]
    assert f"{tmp_path}/runs/ü/version_0" in out
    assert f"first at {tmp_path}/gültig.tsv:2" in err
    ours = ("data.valid: left out 1 ", "30 pairs to train on", "warning: ")
    ours += ("step ", "1 of 1 ", "source ", "output ", "reference ")
    bar = ("Epoch ", "Training", "Validation")
    for line in lines(err):
        assert not line.strip() or line.lstrip().startswith((*ours, *bar)), line


def test_a_resumed_run_continues_the_bar(run, settings):  # T09
    settings["trainer"]["enable_progress_bar"] = True
    first = run("fit", settings, "--trainer.max_epochs", -1, "--trainer.max_steps", 6)
    assert first.out.startswith("best validation BLEU ")
    for shown in ("loss=", "rate=", "tokens/s=", "BLEU="):
        assert shown in first.err
    args = ("--trainer.max_epochs", 3, "--ckpt_path", "runs/my")  # inside the second epoch
    bars = [line for line in lines(run("fit", settings, *args).err) if "loss=" in line]
    assert {bar[:8] for bar in bars} == {"Epoch 1:", "Epoch 2:"}
    for bar in bars:
        assert re.search(r" [024]/4 \[[^-]*, loss", bar), bar


def test_ctrl_c_ends_in_one_line_and_exit_code_130(start, tmp_path):
    process = start("my.yaml", "--trainer.max_epochs", "100000")
    for _ in range(2):  # after the second validation there is a checkpoint
        assert any("step " in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    said = err.splitlines()[-1]
    assert said.startswith("interrupted; to resume: translate fit --config ")
    checkpoints = tmp_path / "runs" / "my" / "version_0" / "checkpoints"
    assert sorted(path.name for path in checkpoints.iterdir()) == ["best.ckpt", "last.ckpt"]
