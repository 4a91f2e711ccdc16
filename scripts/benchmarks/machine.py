"""The machine that the figures come from, in words."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any


def describe_machine(threads: int, checkouts: Sequence[Path]) -> dict[str, Any]:
    """Return what the figures depend on; RAM in GiB. The checkouts give the commits."""
    ram = load = None
    with suppress(ValueError, OSError, AttributeError):
        ram = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    with suppress(OSError, AttributeError):
        load = [round(value, 2) for value in os.getloadavg()]
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": usable_cores(),
        "threads": threads,
        "ram_gib": ram,
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "lightning": version("lightning"),
        "load_at_start": load,
        "commits": [_commit(checkout) for checkout in checkouts],
    }


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    with suppress(AttributeError, OSError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    mac = _output(["sysctl", "-n", "machdep.cpu.brand_string"])
    return mac or platform.processor() or platform.machine()


def _commit(checkout: Path) -> str | None:
    """Return the commit, with a "+" if tracked files differ from it."""
    git = ["git", "-C", str(checkout)]
    commit = _output([*git, "rev-parse", "HEAD"])
    changes = _output([*git, "status", "--porcelain", "--untracked-files=no"])
    return commit and commit + ("+" if changes else "")


def _output(command: list[str]) -> str | None:
    with suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    return None
