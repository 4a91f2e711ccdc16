"""The results as text: the machine, and a Markdown table."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import subprocess
from collections.abc import Callable
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
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit(checkout: Path) -> str:
    """Return the commit, followed by "-dirty" if tracked files differ from the commit."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"
    return "unknown"


def table(parts: dict[str, dict[str, Any]]) -> str:
    """Return the Markdown table: for each row, median and range of the values and of the ratios."""
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
    values, ratios = _summary(row["values"], _number), _summary(row["ratios"], "{:.2f}".format)
    return f"| {' | '.join([row['contest'], name, *values, row['unit'], *ratios])} |"


def _summary(values: list[float], show: Callable[[float], str]) -> tuple[str, str]:
    """Return the median and the range as text."""
    if not values:
        return "", ""
    return show(statistics.median(values)), f"{show(min(values))} to {show(max(values))}"


def _cell(text: str) -> str:
    """Return an error message without the exit code and the name of the log."""
    return text.split(" (")[0].replace("|", "/")[:120]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
