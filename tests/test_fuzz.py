"""scripts/fuzz.py: damaged files are read or refused with a message for the user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "fuzz.py"


@pytest.mark.slow
def test_no_damaged_file_ends_in_a_traceback_or_a_long_message(tmp_path):  # F07 F08
    command = [sys.executable, str(SCRIPT), "--inputs", "50", "--seconds", "2"]
    fuzz = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert fuzz.returncode == 0, fuzz.stdout + fuzz.stderr
    table = [line.split() for line in fuzz.stdout.splitlines()[1:]]
    for name, inputs, accepted, refused, *_ in table:
        assert int(inputs) == int(accepted) + int(refused), name
        assert int(accepted) > 0, name
    assert {"source", "tsv", "csv", "jsonl", "tmx", "ckpt", "yaml"} <= {row[0] for row in table}
