"""Cost curves: speed and RAM of a training step against the sentence length.

All batches have equally many tokens. With explicit attention, the matrices of scores grow with the
length; fused attention never builds these matrices. Each point is measured in a separate process.
"""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.child_processes import measure_in_child
from benchmarks.options import TOKENS_PER_SIDE, Options
from benchmarks.rounds import Measure, figures, interleave

LENGTHS, QUICK_LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024), (16, 128, 512)
FUSED, EXPLICIT = "fused attention", "explicit attention"
ATTENTION = {FUSED: {"explicit_up_to": 0}, EXPLICIT: {"explicit_up_to": max(LENGTHS)}}
UNITS = {"speed": "target tokens/s", "peak": "peak RAM in MiB (lower is better)"}


def measure(options: Options, rounds: int) -> dict[str, Any]:
    """Measure both kinds of attention in turns; write costs.png into the work folder."""
    rows = []
    for length in QUICK_LENGTHS if options.quick else LENGTHS:
        batch = {"rows": TOKENS_PER_SIDE // length, "length": length}
        batch |= {"warmup": 1, "steps": 1 if options.quick else 5}
        contestants: dict[str, Measure] = {
            name: partial(measure_in_child, "training_step", {**batch, **attention}, options)
            for name, attention in ATTENTION.items()
        }
        measured = interleave(contestants, rounds)
        contest = f"training step, {length} pieces"
        for row in figures(contest, UNITS, *measured, reference=FUSED):
            rows.append({**row, "length": length})
    draw(rows, options.work / "costs.png")
    return {"figures": rows}


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Plot the speed and the RAM of each kind of attention against the sentence length."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for panel, unit in zip(figure.subplots(1, 2), UNITS.values(), strict=True):
        panel.set(xscale="log", xlabel="sentence length in pieces", ylabel=unit)
        for name in ATTENTION:
            curve = [row for row in rows if (row["contestant"], row["unit"]) == (name, unit)]
            curve = [row for row in curve if row["values"]]
            values = [statistics.median(row["values"]) for row in curve]
            lengths = [row["length"] for row in curve]
            panel.plot(lengths, values, marker=".", label=name)
            panel.set_xticks(lengths, labels=lengths, minor=False)
        panel.minorticks_off()
        panel.set_ylim(bottom=0)
        panel.legend()
    figure.savefig(file, dpi=110)


def profile(options: Options, rounds: int) -> dict[str, Any]:
    """Profile ten steps per round; a sentence of Multi30k has about 16 pieces on average."""
    batch = {"rows": TOKENS_PER_SIDE // 16, "length": 16}
    settings = {**batch, "profile": True, "warmup": 2, "steps": 10 * rounds}
    return {"text": measure_in_child("training_step", settings, options)["table"]}
