"""The entry point: commands, exit codes, messages and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

import translate
from translate import cli
from translate.errors import UsageError, UserError


def test_help_names_every_command_and_needs_no_torch():
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
        ("--help",): list(cli.COMMANDS),
        ("decode", "--help"): ["--prefix", "--steps", "--model", "--input", "--output"],
        ("attend", "--help"): ["--words", "--kind", "--layer", "--head"],
        ("trace", "--help"): ["--predict", "--token", "--kind"],
        ("check", "--help"): ["--valid", "--config", "--json"],
        ("--version",): [f"translate {translate.__version__}"],
    }.items():
        command = [sys.executable, "-c", code, *arguments]
        finished = subprocess.run(command, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stderr
        assert all(word in finished.stdout for word in expected)


@pytest.fixture
def training(monkeypatch):
    """Replace the training commands; return the lists of their command lines and results."""
    given, results = [], []

    def main(argv):
        given.append(argv)
        if isinstance(result := results.pop(0), Exception):
            raise result
        return result

    module = types.SimpleNamespace(main=main)
    monkeypatch.setitem(sys.modules, "translate.commands.training", module)
    return given, results


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
    given, results = training
    results.append(3)
    assert cli.main(argv) == 3
    assert given == [argv]


def test_errors_are_one_line_on_stderr_with_their_exit_code(training, capsys):
    _, results = training
    results += [UserError("bad data: line 3"), UsageError("no such key")]
    assert [cli.main(["fit"]), cli.main(["fit"])] == [1, 2]
    assert capsys.readouterr().err == "translate: bad data: line 3\ntranslate: no such key\n"


# L04
@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        ([], "required: COMMAND"),
        (["translate"], "no command 'translate'; did you mean `translate decode`, to translate"),
        (["train", "--config", "a"], "did you mean `translate fit`, to train a model from a con"),
        (["templat"], "did you mean `translate template`, to write a commented config"),
        (["xyz"], "no command 'xyz'; the commands are fit, validate, test, decode"),
        (["\x1b[2J"], "no command '\\x1b[2J'"),
        (["--config", "a.yaml", "fit"], "put --config after the command: translate fit --config"),
        (["-h", "fit"], "put -h after the command: translate fit -h (see translate --help)"),
    ],
)
def test_a_command_line_without_a_command_says_what_is_wrong(capsys, argv, complaint):
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    assert caught.value.code == 2
    assert complaint in capsys.readouterr().err.splitlines()[-1]


@pytest.fixture
def pairs_file(tmp_path) -> str:
    path = tmp_path / "mine.tsv"
    path.write_text("A house.\tEin Haus.\nA mouse.\tEine Maus.\n")
    return str(path)


def test_an_interrupt_during_exit_prints_no_traceback(pairs_file):
    code = (
        "import atexit, os, signal; from translate import cli\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "cli.entry_point()"
    )
    command = [sys.executable, "-c", code, "check", pairs_file]
    finished = subprocess.run(command, capture_output=True, check=False)
    assert (finished.returncode, finished.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("ValueError('odd \\x1b[2J\\nmore')", "unexpected ValueError: odd \\x1b[2J (set "),
        ("MemoryError()", "unexpected MemoryError (set "),
        ("RecursionError('deep')", "unexpected RecursionError: deep (set "),
        (
            "FileNotFoundError(2, 'none', 'x')",
            "unexpected FileNotFoundError: [Errno 2] none: 'x' (",
        ),
    ],
)
def test_an_unexpected_error_is_one_line_and_the_traceback_on_request(error, line):
    code = (
        "import sys, types; from translate import cli\n"
        f"def main(argv): raise {error}\n"
        "sys.modules['translate.commands.check'] = types.SimpleNamespace(main=main)\n"
        "cli.entry_point()"
    )
    command = [sys.executable, "-c", code, "check"]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 1 and len(finished.stderr.splitlines()) == 1
    assert finished.stderr.startswith(f"translate: {line}")
    environment = {**os.environ, "TRANSLATE_DEBUG": "1"}
    debugged = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert debugged.returncode == 1
    assert debugged.stderr.startswith("Traceback") and "\x1b" not in debugged.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("argv", [["check", "FILE"], ["--help"], ["decode", "--help"]])
@pytest.mark.parametrize("buffering", [[], ["-u"]])
def test_results_that_cannot_be_written_are_an_error(pairs_file, argv, buffering):
    argv = [pairs_file if argument == "FILE" else argument for argument in argv]
    command = [sys.executable, *buffering, "-m", "translate", *argv]
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (finished.returncode, finished.stderr) == (
        1,
        "translate: cannot write the results: No space left on device; the output is incomplete\n",
    )
