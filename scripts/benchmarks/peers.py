"""The environment of the peers, made of pinned packages."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from benchmarks.child_processes import run
from benchmarks.options import BenchmarkError, Options, say

# JoeyNMT 2.3 needs an old protobuf, an old sentencepiece, and importlib_metadata, which is missing
# in its list of dependencies. Python 3.10 needs the older numpy.
PINS = """
torch==2.13.0 joeynmt==2.3.0 importlib_metadata==10.2.0 sentencepiece==0.2.0 protobuf==3.20.3
setuptools==84.2.1 datasets==5.2.0 transformers==5.24.0 tokenizers==0.23.3 huggingface_hub==2.4.0
safetensors==0.8.0 ctranslate2==4.8.5
numpy==2.4.6;python_version>="3.11" numpy==2.2.6;python_version<"3.11"
"""


def peer_python(options: Options) -> Path:
    """Return the Python in whose environment the peers are; install them at the first call."""
    python, error = _install(options)
    if error:
        raise BenchmarkError(f"the peers cannot be installed: {error}")
    return python


@cache  # so that a failed installation is not repeated for every peer
def _install(options: Options) -> tuple[Path, str]:
    folder = options.work / "env"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    installed = folder / "benchmark_pins.txt"  # written when the installation is complete
    if installed.is_file() and installed.read_text("utf-8") == PINS:
        return python, ""
    say("installing the peers; this takes minutes")
    try:
        run([sys.executable, "-m", "venv", folder], options, "venv")
        run([python, "-m", "pip", "install", "-q", *PINS.split()], options, "pip")
    except BenchmarkError as error:
        return python, str(error)
    installed.write_text(PINS, "utf-8")
    return python, ""
