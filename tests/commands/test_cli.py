"""The front door: what it passes on, and that it opens at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

import translate
from translate import cli
from translate.errors import UsageError, UserError


def test_help_names_every_command_at_once_and_without_torch():
    code = (
        "import sys\n"
        "from translate.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    for arguments, expected in {
        ("--help",): ["fit", "validate", "test", "decode", "check"],
        ("decode", "--help"): ["--prefix", "--steps", "--model", "--input", "--output"],
        ("check", "--help"): ["--valid", "--config", "--json"],
        ("--version",): [f"translate {translate.__version__}"],
    }.items():
        command = [sys.executable, "-c", code, *arguments]
        seconds = []
        while not seconds or (min(seconds) > 0.5 and len(seconds) < 4):  # a busy machine
            started = time.monotonic()
            finished = subprocess.run(command, capture_output=True, text=True)
            seconds.append(time.monotonic() - started)
        assert finished.returncode == 0, finished.stderr
        assert all(word in finished.stdout for word in expected)
        assert min(seconds) < 0.5


@pytest.fixture
def training(monkeypatch):
    """Stands in for the training room; returns the command lines it was given."""
    given = []

    def main(argv):
        given.append(argv)
        if isinstance(outcome := outcomes.pop(0), Exception):
            raise outcome
        return outcome

    outcomes = []
    monkeypatch.setitem(sys.modules, "translate.training.cli", types.SimpleNamespace(main=main))
    return given, outcomes


@pytest.mark.parametrize(
    "argv",
    [
        ["fit", "--config", "a.yaml", "--model.d_model=32"],
        ["fit", "--help"],
        ["validate"],
        ["test", "--prefix", "not ours"],
    ],
)
def test_training_commands_are_passed_on_untouched(training, argv):
    given, outcomes = training
    outcomes.append(3)
    assert cli.main(argv) == 3
    assert given == [argv]


def test_errors_are_one_line_on_stderr_with_their_exit_code(training, capsys):
    _, outcomes = training
    outcomes += [UserError("bad data: line 3"), UsageError("no such key")]
    assert [cli.main(["fit"]), cli.main(["fit"])] == [1, 2]
    assert capsys.readouterr().err == "translate: bad data: line 3\ntranslate: no such key\n"


# L04
@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        ([], "required: command"),
        (["translate"], "invalid choice"),
        (["--config", "a.yaml", "fit"], "put --config after the command: translate fit --config"),
    ],
)
def test_a_command_line_without_a_command_says_what_is_wrong(capsys, argv, complaint):
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    assert caught.value.code == 2
    assert complaint in capsys.readouterr().err.splitlines()[-1]


def test_an_interrupt_while_the_program_ends_shows_no_trace():
    code = (
        "import atexit, os, signal, sys; from translate import cli\n"
        "cli.main = lambda argv: 0\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "cli.entry_point()"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (finished.returncode, finished.stderr) == (-signal.SIGINT, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_results_that_cannot_be_written_are_no_success(tmp_path):
    (tmp_path / "mine.tsv").write_text("A house.\tEin Haus.\nA mouse.\tEine Maus.\n")
    command = [sys.executable, "-m", "translate", "check", str(tmp_path / "mine.tsv")]
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (finished.returncode, finished.stderr) == (
        1,
        "translate: cannot write the results: No space left on device; "
        "what is there is not complete\n",
    )
