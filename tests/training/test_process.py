"""The streams and signals of `translate fit`, and how it shows its progress."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml

from translate.training.callbacks import ProgressLines


@pytest.fixture
def start(settings, tmp_path):
    """Start `translate fit` on a config as a process that shows its progress."""
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


def test_a_process_writes_our_lines_also_in_a_locale_without_utf8(start, settings, tmp_path):  # D08
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
    for line in err.splitlines():
        assert not line.strip() or line.startswith((*ours, "epoch ")), line


def test_a_log_file_gets_one_line_of_progress_and_each_validation(run, settings):  # N03
    settings["trainer"]["enable_progress_bar"] = True
    outcome = run("fit", settings, "--trainer.max_epochs", 2)
    assert "\r" not in outcome.err
    shown = [line for line in outcome.err.splitlines() if line.startswith("epoch ")]
    assert len(shown) == 1  # the run takes less than ten seconds
    assert re.match(
        r"epoch 2, step 8 of 8, loss \d\.\d+, rate \S+, tokens/s [\d,]+, BLEU \d+\.\d$", shown[0]
    )
    assert outcome.err.count("\nstep ") == 2
    assert "epoch " not in run("fit", settings, "--trainer.enable_progress_bar", False).err


def test_a_line_of_progress_has_the_time_left(caplog):  # N03
    caplog.set_level("INFO", "translate")
    trainer = SimpleNamespace(
        current_epoch=0, global_step=100, estimated_stepping_batches=1300, callback_metrics={}
    )
    lines = ProgressLines(seconds=0)
    lines.on_train_start(trainer, None)
    lines.on_train_epoch_start(trainer, None)
    trainer.global_step = 101  # a resumed run: one step in less than a second
    lines.on_train_batch_end(trainer, None, None, None, 0)
    assert re.fullmatch(r"epoch 1, step 101 of 1,300, 0:\d\d:\d\d left", caplog.messages[0])
    trainer.estimated_stepping_batches = math.inf
    lines.on_train_batch_end(trainer, None, None, None, 1)
    assert caplog.messages[1] == "epoch 1, step 101"


def test_a_resumed_run_continues_the_bar(run, settings):  # T09
    settings["trainer"]["enable_progress_bar"] = True
    args = ("--trainer.max_epochs", -1, "--trainer.max_steps", 6)
    first = run("fit", settings, *args, terminal=True)
    assert first.out.startswith("best validation BLEU ")
    for shown in ("loss=", "rate=", "tokens/s=", "BLEU="):
        assert shown in first.err
    args = ("--trainer.max_epochs", 3, "--ckpt_path", "runs/my")  # inside the second epoch
    resumed = run("fit", settings, *args, terminal=True)
    bars = [line for line in lines(resumed.err) if "loss=" in line]
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
