"""The benchmark's arithmetic, and that what it reaches into is still there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

from benchmark_parts import blocks, report, rounds  # noqa: E402
from benchmark_parts.common import OURS, BenchmarkError  # noqa: E402

from translate.model import attention, layers, transformer  # noqa: E402


class Bench:
    """Stands in for the progress bar."""

    class progress:  # noqa: N801
        now = done = say = staticmethod(lambda *_: None)


def test_contestants_take_turns_and_one_that_fails_drops_out():
    order = []

    def measure(name: str):
        def run(round_: int) -> dict[str, float]:
            order.append(name)
            if name == "b" and round_ == 1:
                raise BenchmarkError("broken")
            return {"speed": float(round_)}

        return run

    results, errors = rounds.interleave(Bench(), {name: measure(name) for name in "abc"}, 3)
    assert order == ["a", "b", "c", "b", "c", "a", "c", "a"]
    assert errors == {"b": "broken"}
    assert [len(results[name]) for name in "abc"] == [3, 1, 3]


def test_the_ratio_is_the_median_of_the_rounds_and_stands_in_the_table():
    results = {
        OURS: [{"speed": 10.0}, {"speed": 40.0}, {"speed": 9.0}],
        "peer": [{"speed": 5.0}, {"speed": 10.0}, {"speed": 9.0}],
    }
    ours, peer = rounds.figures("training", "tokens/s", "speed", results, {})
    assert "ratio" not in ours
    assert ours["median"] == 10
    assert (peer["ratio"], peer["ratio_min"], peer["ratio_max"]) == (2, 1, 4)
    table = report.table({"parts": {"training": {"figures": [ours, peer]}}})
    assert "| training | peer | 9 | 5 to 10 | tokens/s | 2.00 | 1.00 to 4.00 |" in table


def test_what_the_curves_and_the_split_take_hold_of_exists():
    assert isinstance(attention.EXPLICIT_UP_TO, int)
    places = {"attention": attention, "layers": layers, "transformer": transformer}
    for methods in blocks.METHODS.values():
        for path in methods:
            place, owner, name = path.split(".")
            assert callable(getattr(getattr(places[place], owner), name))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "sleeping"], "no such part: sleeping"),
        (["--threads", "0"], "not a number from 1 up"),
        (["--multi30k", "nowhere"], "no train.en.gz"),
    ],
)
def test_a_command_line_that_cannot_be_meant_is_refused(arguments, said):
    command = [sys.executable, str(SCRIPTS / "benchmark.py"), *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True)
    assert outcome.returncode == 2
    assert said in outcome.stderr
