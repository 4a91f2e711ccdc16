"""What a run records about itself, to recognise it and to repeat it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import lightning
import torch

from translate.text.corpus import Pair
from translate.version import __version__

# Settings that are not compared: where files are, which says nothing about what is in them, and
# settings of other commands.
_NOT_COMPARED = {
    *("config", "ckpt_path", "name", "runs", "beam", "length_penalty", "trainer.default_root_dir"),
    *("data.train", "data.valid", "data.test", "data.challenge", "data.tokenizer"),
}


def comparable(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the settings by their full names, such as "model.dropout", without file names."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if name in _NOT_COMPARED:
            continue
        if isinstance(value, Mapping):
            found |= comparable(value, f"{name}.")
        else:  # plain values: checkpoints contain nothing else
            found[name] = json.loads(json.dumps(value, default=str))
    return found


def fingerprint(pairs: Iterable[Pair]) -> str:
    """Return the SHA-256 of sentence pairs in their order."""
    digest = hashlib.sha256()
    for source, target in pairs:
        digest.update(f"{source}\t{target}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def environment(device: torch.device, precision: str) -> dict[str, Any]:
    """Return what the rounding of results depends on, apart from the settings."""
    on_gpu = device.type == "cuda"
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "lightning": lightning.__version__,
        "translate": __version__,
        "threads": torch.get_num_threads(),
        "processor": torch.cuda.get_device_name(device) if on_gpu else _processor(),
        "precision": precision,
    }


def _processor() -> str:
    """Return the name of the CPU and the instructions that torch uses, such as AVX2."""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):  # Linux only
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        name = names[0] if names else name
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"
