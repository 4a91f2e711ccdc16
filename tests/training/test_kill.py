"""Trainings that are killed at random moments end like trainings that are left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "kill_training.py"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_killed_run_goes_on_exactly_and_its_checkpoints_are_whole_at_any_moment(
    tmp_path,
):  # F02 F03
    command = [sys.executable, SCRIPT, "--kills", "20", "--seed", "1", "--folders", tmp_path]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    *_, first, second, third = done.stdout.splitlines()
    rows = [line.split()[-4:] for line in (first, second, third)]
    assert sum(int(kills) for kills, *_ in rows) >= 20
    for _, looks, unreadable, equal in rows:
        assert int(looks) > 0
        assert (unreadable, equal) == ("0", "True")
