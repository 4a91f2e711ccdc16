"""Child processes: run a command to its end, or keep a worker alive that measures on command.

A worker is a module of this package. It receives its settings as a JSON argument, then reads one
command per line and answers each with one line of JSON. Between commands it waits, so it takes
no time from the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.options import ROOT, SCRIPTS, BenchmarkError, Options

TIMEOUT = 1800  # seconds


def environment(options: Options, checkout: Path = ROOT) -> dict[str, str]:
    """Return the environment of a child: the same threads, no downloads, UTF-8.

    `checkout` is the source tree that `import translate` finds.
    """
    threads = str(options.threads)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(SCRIPTS), str(checkout)]),
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUTF8": "1",
    }


def run(command: Sequence[str | Path], options: Options, log: Path, checkout: Path = ROOT) -> None:
    """Run a process to its end, with its output in `log`.

    Raises:
        BenchmarkError: with the most telling line of the log, if the process fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        try:
            code = subprocess.run(
                [str(word) for word in command],
                cwd=checkout,  # Python puts it first on the import path
                env=environment(options, checkout),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT,
            ).returncode
        except OSError as error:
            raise BenchmarkError(f"cannot start {command[0]}: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise BenchmarkError(f"still running after {TIMEOUT} s (output: {log})") from None
    if code:
        raise BenchmarkError(f"{error_line(log)} (exit code {code}, output: {log})")


def error_line(log: Path) -> str:
    """Return the last line that mentions an error, or else the last line."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line] or ["no output"]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines)[-1][:300]


class Worker:
    """A child process that loads once and then measures on command.

    Args:
        python: the interpreter.
        module: a module of this package that calls `serve`.
        settings: what `serve` passes to the module; "contestant" names the log file.
        options: the command line.
        checkout: the source tree that `import translate` finds.
        variables: more environment variables.
    """

    def __init__(
        self,
        python: str | Path,
        module: str,
        settings: dict[str, Any],
        options: Options,
        checkout: Path = ROOT,
        variables: dict[str, str] | None = None,
    ) -> None:
        name = settings["contestant"].replace(" ", "_")
        self._log = options.work / "logs" / f"{module}_{name}.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", f"benchmarks.{module}", json.dumps(settings, default=str)],
                cwd=checkout,
                env=environment(options, checkout) | (variables or {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
            )

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # the worker has ended and left a command unread
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def ask(self, command: str) -> dict[str, Any]:
        """Send a command and return the answer.

        Raises:
            BenchmarkError: the worker has ended, or does not answer in time.
        """
        with suppress(OSError):  # the worker has ended; the missing answer shows it
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
        timer = threading.Timer(TIMEOUT, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            code = self._process.wait()
            reason = f"killed by signal {-code}" if code < 0 else error_line(self._log)
            raise BenchmarkError(f"{reason} (output: {self._log})")
        return json.loads(line)


def serve(prepare: Callable[[dict[str, Any]], dict[str, Callable[[], dict[str, Any]]]]) -> None:
    """Be a worker: `prepare(settings)` loads, and returns a function per command."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is not an answer
    commands = prepare(json.loads(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(commands[line.strip()]()), file=answers, flush=True)
