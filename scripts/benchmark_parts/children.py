"""Child processes: run to the end, or kept alive to measure on command."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmark_parts.common import BenchmarkError, Options

PATIENCE = 1800  # seconds until a child that says nothing counts as failed


def run(command: Sequence[str | Path], options: Options, log: Path) -> None:
    """Run a process to its end; BenchmarkError with its last line if it fails. Output in `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        try:
            code = subprocess.run(
                [str(part) for part in command],
                env=options.environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=PATIENCE,
            ).returncode
        except OSError as error:
            raise BenchmarkError(f"cannot start {command[0]}: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise BenchmarkError(f"no end after {PATIENCE} s (output: {log})") from None
    if code:
        raise BenchmarkError(f"{last_line(log)} (exit code {code}, output: {log})")


def last_line(log: Path) -> str:
    """The line of a log that says the most about a failure: the last one with an error in it."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line] or ["no output"]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines)[-1][:300]


class Worker:
    """A process that loads once and then measures on command: one JSON line in, one out.

    Between commands it waits for a line, so that it costs the others nothing.
    """

    def __init__(
        self, python: Path, script: str, settings: dict[str, Any], options: Options
    ) -> None:
        name = settings["contestant"].replace(" ", "_")
        self._log = options.work / "logs" / f"{script}_{name}.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", f"benchmark_parts.{script}", json.dumps(settings, default=str)],
                env=options.environment(),
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
        self.close()

    def wait(self) -> dict[str, Any]:
        """The next answer; the first one comes when the worker is ready."""
        alarm = threading.Timer(PATIENCE, self._process.kill)
        alarm.start()
        line = self._process.stdout.readline()
        alarm.cancel()
        if not line:
            self.close()
            code = self._process.returncode
            reason = f"killed by signal {-code}" if code < 0 else last_line(self._log)
            raise BenchmarkError(f"{reason} (output: {self._log})")
        return json.loads(line)

    def ask(self, command: str) -> dict[str, Any]:
        with suppress(OSError):  # it has ended; `wait` says why
            self._process.stdin.write(json.dumps({"command": command}) + "\n")
            self._process.stdin.flush()
        return self.wait()

    def close(self) -> None:
        with suppress(OSError):  # it has ended, and left a command unread
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
