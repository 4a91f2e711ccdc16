"""The peers' own environment, from pinned packages; and the machine, in words."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmark_parts.children import run
from benchmark_parts.common import SCRIPTS, BenchmarkError, Options, Progress

# JoeyNMT 2.3 wants an old protobuf, an old sentencepiece, and importlib_metadata, which it does
# not declare. numpy's second line is for Python 3.10.
PINS = (
    "torch==2.13.0",
    "joeynmt==2.3.0",
    "importlib_metadata==10.2.0",
    "sentencepiece==0.2.0",
    "protobuf==3.20.3",
    "setuptools==84.2.1",
    "datasets==5.2.0",
    "transformers==5.24.0",
    "tokenizers==0.23.3",
    "huggingface_hub==2.4.0",
    "safetensors==0.8.0",
    "ctranslate2==4.8.5",
    'numpy==2.4.6; python_version >= "3.11"',
    'numpy==2.2.6; python_version < "3.11"',
)
OURS = ("torch", "lightning", "sentencepiece", "numpy", "tensorboard", "jsonargparse")

_ASK_VERSIONS = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        found[name] = None
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Peers:
    """Where the peers run. `error` says why they cannot."""

    python: Path
    versions: dict[str, str] = field(default_factory=dict)
    error: str = ""

    def require(self) -> Path:
        if self.error:
            raise BenchmarkError("the peers could not be installed")
        return self.python


def install(options: Options, progress: Progress) -> Peers:
    """Make the environment unless it is there with exactly the pinned packages."""
    folder = options.work / "env"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    wanted = _wanted()
    if _missing(python, wanted):
        progress.now("installing the peers")
        log = options.work / "logs" / "pip.log"
        try:
            if not python.exists():
                run([sys.executable, "-m", "venv", folder], options, log)
            pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            run([*pip, *PINS], options, log)
        except BenchmarkError as error:
            message = f"the peers cannot be installed: {error}"
            progress.say(message)
            return Peers(python, error=message)
        if missing := _missing(python, wanted):
            message = f"pip has not installed {', '.join(missing)}"
            progress.say(message)
            return Peers(python, error=message)
    return Peers(python, _versions(python, list(wanted)))


def _wanted() -> dict[str, str]:
    """{package: version} for this Python."""
    pairs = {}
    for pin in PINS:
        requirement, _, marker = pin.partition(";")
        name, _, number = requirement.strip().partition("==")
        old = sys.version_info < (3, 11)
        if not marker or ("<" in marker) == old:
            pairs[name] = number
    return pairs


def _missing(python: Path, wanted: dict[str, str]) -> list[str]:
    """The packages that are not there in the wanted version; a "+cpu" behind it is no other."""
    found = _versions(python, list(wanted))
    return [
        name for name, number in wanted.items() if (found.get(name) or "").split("+")[0] != number
    ]


def _versions(python: Path, names: list[str]) -> dict[str, str]:
    if not python.exists():
        return {}
    answer = subprocess.run(
        [str(python), "-c", _ASK_VERSIONS, *names], capture_output=True, text=True
    )
    return json.loads(answer.stdout) if answer.returncode == 0 else {}


def our_versions() -> dict[str, str | None]:
    """The packages that this program runs on."""
    found: dict[str, str | None] = {}
    for name in OURS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def machine(options: Options) -> dict[str, Any]:
    """What the figures were measured on; memory in GiB."""
    memory = None
    with suppress(ValueError, OSError, AttributeError):
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    load = None
    with suppress(OSError, AttributeError):
        load = [round(value, 2) for value in os.getloadavg()]
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "threads": options.threads,
        "memory_gib": memory,
        "system": _system(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "load_at_start": load,
        "commit": _commit(),
    }


def usable_cores() -> int:
    """Cores that this process may run on."""
    with suppress(AttributeError, OSError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    with suppress(OSError):
        name = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True
        )
        if name.stdout.strip():
            return name.stdout.strip()
    return platform.processor() or platform.machine()


def _system() -> str:
    with suppress(OSError, AttributeError, KeyError):
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
        return f"{name}, {platform.system()} {platform.release()}, {platform.machine()}"
    return platform.platform()


def _commit() -> str | None:
    """The commit measured; "+" behind it if tracked files differ from it."""
    with suppress(OSError):
        git = ["git", "-C", str(SCRIPTS)]
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
        changes = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True
        )
        if commit.returncode == 0:
            return commit.stdout.strip() + ("+" if changes.stdout.strip() else "")
    return None
