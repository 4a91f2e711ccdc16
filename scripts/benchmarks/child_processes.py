"""Run a command, or a measurement of a module of this package, in a child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.options import ROOT, SCRIPTS, BenchmarkError, Options

TIMEOUT = 1800  # seconds


def run(command: Sequence[object], options: Options, log: str, checkout: Path = ROOT) -> None:
    """Run a process to its end, with `options.threads` threads and without downloads.

    The output of the process goes into logs/`log`.log in the work folder. In the process,
    `import translate` imports the package of `checkout`.

    Raises:
        BenchmarkError: the process fails; the message has the last line of the log with "error".
    """
    file = options.work / "logs" / f"{log}.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(SCRIPTS), str(checkout)]),
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": str(options.threads),
        "HF_HUB_OFFLINE": "1",
    }
    with file.open("wb") as output:
        try:
            # The working directory comes first on the import path.
            code = subprocess.run(
                list(map(str, command)), cwd=checkout, env=environment, timeout=TIMEOUT,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            ).returncode  # fmt: skip
        except OSError as error:
            raise BenchmarkError(f"cannot start {command[0]}: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise BenchmarkError(f"still running after {TIMEOUT} s (output: {file})") from None
    if code:
        lines = ["no output", *filter(str.strip, file.read_text("utf-8", "replace").splitlines())]
        reason = ([line for line in lines if "error" in line.lower()] or lines)[-1].strip()[:300]
        raise BenchmarkError(f"{reason} (exit code {code}, output: {file})")


def measure_in_child(
    module: str,
    settings: dict[str, Any],
    options: Options,
    *,
    python: str | Path = sys.executable,
    checkout: Path = ROOT,
) -> dict[str, Any]:
    """Run a module of this package with some settings; return the result of its measurement."""
    file = options.work / "answer.json"
    file.unlink(missing_ok=True)
    settings = {"threads": options.threads, **settings, "answer": file}
    command = [python, "-m", f"benchmarks.{module}", json.dumps(settings, default=str)]
    run(command, options, module, checkout=checkout)
    return json.loads(file.read_text("utf-8"))


def answer(measure: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Call `measure` with the settings and write its result; runs in the child process."""
    settings = json.loads(sys.argv[1])
    Path(settings["answer"]).write_text(json.dumps(measure(settings)), encoding="utf-8")


def peak_ram() -> float:
    """Return the peak RAM of this process in MiB; 0 on systems without /proc."""
    status = Path("/proc/self/status")
    lines = status.read_text("utf-8").splitlines() if status.is_file() else []
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
