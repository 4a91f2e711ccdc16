"""The environment of the peers, made of pinned packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.child_processes import run
from benchmarks.options import BenchmarkError, Options

# JoeyNMT 2.3 needs an old protobuf, an old sentencepiece, and importlib_metadata, which it does
# not declare. Python 3.10 needs the older numpy.
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
VERSIONS = dict(pin.split("==") for pin in PINS if ";" not in pin)


@dataclass(frozen=True)
class Peers:
    """The Python that runs the peers. `error` says why it cannot."""

    python: Path
    error: str = ""

    def require(self) -> Path:
        """Return the Python; raise a BenchmarkError if the peers are not installed."""
        if self.error:
            raise BenchmarkError("the peers could not be installed")
        return self.python


def install(options: Options, say: Callable[[str], None]) -> Peers:
    """Create the environment, unless it exists with the same pinned packages.

    Args:
        options: the command line.
        say: receives messages.
    """
    folder = options.work / "env"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    installed = folder / "benchmark_pins.txt"  # written when the installation is complete
    pins = "\n".join(PINS) + "\n"
    if installed.is_file() and installed.read_text("utf-8") == pins:
        return Peers(python)
    say("installing the peers; this takes minutes")
    log = options.work / "logs" / "pip.log"
    try:
        if not python.exists():
            run([sys.executable, "-m", "venv", folder], options, log)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        run([*pip, *PINS], options, log)
    except BenchmarkError as error:
        say(f"the peers cannot be installed: {error}")
        return Peers(python, str(error))
    installed.write_text(pins, "utf-8")
    return Peers(python)
