"""Settings of the commands, and the check of a range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from translate.decoding.scoring import LENGTH_PENALTY


@dataclass
class CommandSettings:
    """Settings of a command.

    Args:
        name: folder in `runs`; by default the name of the config file.
        runs: folder of all runs; by default runs/, or where the resumed run is.
        ckpt_path: checkpoint or run folder: the run to resume, or the model to use.
        beam: beam width of `test`; 1 means greedy search only.
        length_penalty: beam search in `test` compares log probability / pieces ** length_penalty.
    """

    name: str | None = None
    runs: Path | None = None
    ckpt_path: str | None = None
    beam: int = 5
    length_penalty: float = LENGTH_PENALTY


@dataclass
class TestSettings(CommandSettings):
    """Settings of `test`.

    Args:
        input: file of sentences to translate instead of data.test.
        reference: file of their reference translations, line by line.
    """

    input: Path | None = None
    reference: Path | None = None


def out_of_range(
    settings: Mapping[str, float],
    lowest: Mapping[str, float],
    highest: Mapping[str, float] | None = None,
) -> list[str]:
    """Return a message for each of `settings` that is below its lowest or above its highest."""
    faults = []
    for name, low in lowest.items():
        high = (highest or {}).get(name, math.inf)
        if not low <= settings[name] <= high:
            rule = f"{low} or more" if high == math.inf else f"from {low} to {high:,}"
            faults.append(f"{name} must be {rule}, not {settings[name]}")
    return faults
