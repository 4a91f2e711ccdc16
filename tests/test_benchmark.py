"""The benchmark: turns and ratios, the table, its children, and its command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import benchmark  # noqa: E402
from benchmarks import child_processes, report, rounds  # noqa: E402
from benchmarks.options import OURS, BenchmarkError, Options  # noqa: E402


def test_contestants_take_turns_and_one_that_fails_drops_out():
    order = []

    def contestant(name: str):
        def run() -> dict[str, float]:
            order.append(name)
            if order.count("b") == 2 and name == "b":
                raise BenchmarkError("broken")
            return {"speed": 1.0}

        return run

    results, errors = rounds.interleave({name: contestant(name) for name in "abc"}, 3)
    assert order == ["a", "b", "c", "b", "c", "a", "c", "a"]
    assert errors == {"b": "broken"}
    assert [len(results[name]) for name in "abc"] == [3, 1, 3]


def test_the_table_shows_medians_of_values_and_of_the_ratios_of_rounds():
    speeds = {OURS: [10.0, 40.0, 9.0], "peer": [5.0, 10.0, 9.0], "broken": []}
    results = {name: [{"speed": speed} for speed in values] for name, values in speeds.items()}
    errors = {"broken": "no module (exit code 1, output: LOG)"}
    rows = rounds.figures("training", {"speed": "tokens/s"}, results, errors)
    table = report.table({"training": {"figures": rows}, "costs": {"error": "no RAM (log)"}})
    assert table.splitlines()[2:] == [
        "| training | this program | 10 | 9 to 40 | tokens/s |  |  |",
        "| training | peer | 9 | 5 to 10 | tokens/s | 2.00 | 1.00 to 4.00 |",
        "| training | broken (failed: no module) |  |  | tokens/s |  |  |",
        "| costs | failed: no RAM | | | | | |",
    ]


def options(work: Path) -> Options:
    nothing = {"multi30k": None, "checkpoint": None, "against": None}
    return Options(quick=True, threads=1, parts=(), work=work, **nothing)


def test_a_child_imports_the_package_of_its_checkout(tmp_path):
    checkout = tmp_path / "checkout"
    package = checkout / "translate"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('error: the other package')")
    command = [sys.executable, "-c", "import translate"]
    child_processes.run(command, options(tmp_path), "ours")
    with pytest.raises(BenchmarkError, match=r"error: the other package \(exit code 1, output: "):
        child_processes.run(command, options(tmp_path), "theirs", checkout)


def test_against_measures_what_both_checkouts_have():
    parsed, rounds_, output = benchmark.parse(["--against", str(ROOT), "--work", "work"])
    assert parsed.against == ROOT
    assert parsed.parts == ("training", "decoding", "process")
    assert (rounds_, output) == (None, Path("work").resolve() / "benchmark.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "sleeping"], "no such part: sleeping; expected training, decoding"),
        (["--against", str(ROOT), "--only", "costs"], "no such part: costs"),
        (["--against", "nowhere"], "no file 'nowhere/translate/__init__.py'"),
        (["--threads", "0"], "expected a whole number of at least 1, got '0'"),
        (["--multi30k", "nowhere"], "no file 'nowhere/train.en.gz'"),
    ],
)
def test_invalid_arguments_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        benchmark.parse(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
