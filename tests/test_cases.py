"""docs/cases.md and the script that checks it."""

from __future__ import annotations

import importlib.util
import re
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
    assert re.fullmatch(r"all \d+ cases have a test or a reason\n", done.stdout)


def test_each_fault_of_a_table_is_reported():
    files = {
        "text/test_a.py": "# D77, D82\ndef test_one(): ...\n\n\nD83 = '# D84'\n",
    }
    rows = [
        "| D77 | a#1 | it holds | `text/test_a.py::test_one` |",
        "| D78 | a#2 | it holds | `text/test_a.py::test_one`, `text/test_a.py::test_two` |",
        "| D79 | a#3 | it holds | soon |",
        "| D80 | a#4 | it holds | no test: there is nothing of the kind |",
        "| D80 | a#4 | again | no test: there is nothing of the kind |",
    ]
    cases = {"D77", "D78", "D79", "D81", "D82", "E01"}
    assert check_cases.faults("\n".join(rows), files, cases) == [
        "D80: 2 rows",
        "D78: text/test_a.py::test_one does not mention it",
        "D78: the test text/test_a.py::test_two does not exist",
        'D79: names no test and gives no reason ("no test: ...")',
        "D82: mentioned in text/test_a.py, but not in the table",
        "D81: not in the table",
        "D82: not in the table",
        "D80: no such case",
    ]


def test_the_comments_above_a_test_are_part_of_it():
    text = (
        "X = 1\n\n\n# D77\n@mark\ndef test_one():\n    pass\n\n\ndef test_two():  # D78\n    pass\n"
    )
    found = check_cases.test_functions({"test_a.py": text})
    assert found["test_a.py::test_one"].startswith("# D77\n@mark")
    assert found["test_a.py::test_two"] == "def test_two():  # D78\n    pass"
