"""Two checkouts of this project side by side, for example before and after a change.

The measurement uses only functions that every version has: `translate fit`, `translate decode` and
`Translator.load(...).translate_detailed(...)`. They run in child processes that import the package
of one checkout. Both checkouts use the same Python and the same checkpoint, which the other
checkout trains.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.decoding import finish, translate
from benchmarks.fit import train_checkpoint
from benchmarks.options import OURS, ROOT, Options
from benchmarks.rounds import Measure, figures, interleave
from benchmarks.startup import SENTENCE, seconds
from benchmarks.startup import UNITS as SECONDS
from benchmarks.training import UNITS as SPEED
from benchmarks.training import fit_speed

OTHER = "the other checkout"
PARTS = ("training", "decoding", "process")


def measure(options: Options, rounds: int) -> dict[str, Any]:
    """Measure both checkouts in turns."""

    def both(measure_one: Callable[[Path], dict[str, Any]]) -> dict[str, Measure]:
        checkouts = {OURS: ROOT, OTHER: options.against}
        return {name: partial(measure_one, path) for name, path in checkouts.items()}

    rows, result = [], {}
    if "training" in options.parts:
        for optimizer in ("adamw", "muon"):
            speeds = both(partial(fit_speed, options, optimizer=optimizer))
            rows += figures(f"fit, {optimizer}", SPEED, *interleave(speeds, rounds))
    if "decoding" in options.parts:
        result = finish(*interleave(both(partial(translate, options)), rounds))
        rows += result.pop("figures")
    if "process" in options.parts:
        decode = ["decode", SENTENCE, "--model", train_checkpoint(options)]
        for contest, arguments in (("translate decode", decode), ("translate --help", ["--help"])):
            processes = both(partial(seconds, options, ["-m", "translate", *arguments]))
            interleave(processes, rounds=1)  # not measured: Python compiles the modules
            rows += figures(contest, SECONDS, *interleave(processes, rounds))
    return {"figures": rows, **result}
