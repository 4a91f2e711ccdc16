"""The table of cases, and the script that checks it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_spec = importlib.util.spec_from_file_location("check_cases", ROOT / "scripts" / "check_cases.py")
check_cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_cases)


def test_every_case_is_answered():
    command = [sys.executable, ROOT / "scripts" / "check_cases.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "67 cases answered\n"


def test_what_is_wrong_with_a_table_is_said():
    known = {"text/test_a.py::test_one": "# D77\ndef test_one(): ..."}
    rows = [
        "| D77 | a#1 | it holds | `text/test_a.py::test_one` |",
        "| D78 | a#2 | it holds | `text/test_a.py::test_one`, `text/test_a.py::test_two` |",
        "| D79 | a#3 | it holds | soon |",
        "| D80 | a#4 | it holds | no test: there is nothing of the kind |",
        "| D80 | a#4 | again | no test: there is nothing of the kind |",
    ]
    assert check_cases.faults("\n".join(rows), known, {"D77", "D78", "D79", "D81"}) == [
        "D80: 2 rows",
        "D78: text/test_a.py::test_one does not mention it",
        "D78: there is no test text/test_a.py::test_two",
        "D79: neither a test nor a reason for none",
        "D81: not in the table",
        "D80: no such case",
    ]


def test_the_comments_above_a_test_are_part_of_it(tmp_path):
    text = (
        "X = 1\n\n\n# D77\n@mark\ndef test_one():\n    pass\n\n\ndef test_two():  # D78\n    pass\n"
    )
    (tmp_path / "test_a.py").write_text(text)
    found = check_cases.tests(tmp_path)
    assert found["test_a.py::test_one"].startswith("# D77\n@mark")
    assert found["test_a.py::test_two"] == "def test_two():  # D78\n    pass"
