"""Memory of this process, from the system and not from torch."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path

MIB = 1 << 20
_STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """The most that was ever resident at the same time.

    Not `ru_maxrss` where there is another source: Linux hands it on from a parent to its child.
    """
    return _field("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def resident_bytes() -> int:
    """What is resident now; where the system does not say, the most that ever was."""
    return _field("VmRSS") or peak_bytes()


def forget_peak() -> None:
    """Count the peak from here on, where the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", "ascii")


def _field(name: str) -> int:
    if not _STATUS.is_file():
        return 0
    lines = _STATUS.read_text("utf-8").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)
