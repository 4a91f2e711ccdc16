"""`translate fit` as a process of its own: its streams, its signals."""

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
    """Start `translate fit` on the tiny config, with the progress bar on."""
    settings["trainer"]["enable_progress_bar"] = True
    settings["translations"] = {"samples": 1}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")

    def start(*args: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "translate", "fit", "--config", "my.yaml", *args],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    return start


def test_stderr_has_our_lines_and_a_bar_that_a_resumed_run_continues(start):  # T09
    first = ("--trainer.max_epochs", "-1", "--trainer.max_steps", "6")  # stops inside an epoch
    out, err = start(*first).communicate(timeout=120)
    assert [line.split(" ")[0] for line in out.splitlines()] == ["best", "tensorboard", "translate"]
    ours = ("30 pairs to train on", "step ", "source ", "output ", "reference ")
    bar = ("Epoch ", "Training", "Validation")
    for line in err.replace("\r", "\n").replace("\x1b[A", "\n").splitlines():
        assert not line.strip() or line.lstrip().startswith((*ours, *bar)), line
    for shown in ("loss=", "rate=", "tokens/s=", "BLEU="):
        assert shown in err
    again = ("--ckpt_path", "runs/my", "--trainer.max_epochs", "3", "--trainer.max_steps", "-1")
    _, err = start(*again).communicate(timeout=120)
    bars = [line for line in err.replace("\r", "\n").splitlines() if "loss=" in line]
    assert {bar[:8] for bar in bars} == {"Epoch 1:", "Epoch 2:"}
    for bar in bars:
        assert re.search(r" [024]/4 \[[^-]*, loss", bar), bar


def test_ctrl_c_ends_in_one_line_and_exit_code_130(start, tmp_path):
    process = start("--trainer.max_epochs", "100000")
    for line in process.stderr:
        if line.startswith("step ") or "step " in line:
            break
    for line in process.stderr:  # the next validation: by then there is a checkpoint
        if "step " in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    said = err.splitlines()[-1]
    assert said.startswith("interrupted; to resume: translate fit --config ")
    checkpoints = tmp_path / "runs" / "my" / "version_0" / "checkpoints"
    assert sorted(path.name for path in checkpoints.iterdir()) == ["best.ckpt", "last.ckpt"]


def test_a_locale_without_utf8_changes_nothing(settings, tmp_path):  # D08
    settings["name"] = "ü"
    (tmp_path / "prüf.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), "utf-8")
    (tmp_path / "gültig.tsv").write_text("the cat\tdie Katze\nthe day\t\n", "utf-8")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    finished = subprocess.run(
        [
            *(sys.executable, "-m", "translate", "fit", "--config", "prüf.yaml"),
            *("--data.valid.tsv", "gültig.tsv"),
        ],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", **locale},
        capture_output=True,
        encoding="utf-8",
    )
    assert finished.returncode == 0, finished.stderr
    assert f"first at {tmp_path}/gültig.tsv:2" in finished.stderr
    assert f"{tmp_path}/runs/ü/version_0" in finished.stdout
