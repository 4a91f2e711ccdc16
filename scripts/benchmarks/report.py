"""The results as text: the machine, and a Markdown table."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.options import ROOT, Options


def machine(options: Options) -> str:
    """Return what the figures depend on: the processor, the versions and the commits."""
    parts = [
        f"{_processor()}, {usable_cores()} cores, threads: {options.threads}",
        f"{platform.platform()}, Python {platform.python_version()}, torch {version('torch')}",
        "quick run, rough figures only" if options.quick else "full run",
        f"{datetime.datetime.now().astimezone():%Y-%m-%d %H:%M}, commit {_commit(ROOT)}",
    ]
    if options.against:
        parts.append(f"the other checkout: {options.against}, commit {_commit(options.against)}")
    return "; ".join(parts)


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    with suppress(AttributeError, OSError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit(checkout: Path) -> str:
    """Return the commit, with "-dirty" behind it if tracked files differ from it."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"
    return "unknown"


def table(parts: dict[str, dict[str, Any]]) -> str:
    """Return every figure: the median and the range of the rounds, and of their ratios."""
    lines = [
        "| contest | contestant | median | min to max | unit | ours / peer | min to max |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    for name, part in parts.items():
        if part.get("error"):
            lines.append(f"| {name} | failed: {_cell(part['error'])} | | | | | |")
        lines += [_row(row) for row in part.get("figures", [])]
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> str:
    name = row["contestant"] + (f" (failed: {_cell(row['error'])})" if row["error"] else "")
    median = spread = ratio = ratios = ""
    if "median" in row:
        median, spread = _number(row["median"]), f"{_number(row['min'])} to {_number(row['max'])}"
    if "ratio_median" in row:
        ratio = f"{row['ratio_median']:.2f}"
        ratios = f"{row['ratio_min']:.2f} to {row['ratio_max']:.2f}"
    cells = (row["contest"], name, median, spread, row["unit"], ratio, ratios)
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Return a reason without the exit code and the name of the log."""
    return text.split(" (")[0].replace("|", "/")[:120]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
