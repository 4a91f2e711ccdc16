"""Cost curves: speed and RAM of a training step against the sentence length.

The RAM of explicit attention grows with the square of the length; fused attention never builds
the matrix of scores. Each point is measured in a process of its own. The speed is that of batches
with equally many tokens. The RAM is what a step with few sentences adds to the model's own; there,
the allocator returns everything at once (glibc only), because what it keeps would blur the curve.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.child_processes import measure_in_child
from benchmarks.options import TOKENS_PER_SIDE, Options
from benchmarks.rounds import Measure, figures, interleave

ROUNDS, QUICK_ROUNDS = 1, 1
LENGTHS, QUICK_LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024), (16, 128, 512)
SENTENCES = 4  # in the batches whose RAM is measured
FUSED, EXPLICIT = "fused attention", "explicit attention"
EXPLICIT_UP_TO = {FUSED: 0, EXPLICIT: max(LENGTHS)}
UNITS = {"speed": "target tokens/s", "peak": f"MiB, {SENTENCES} sentences (less is better)"}


def measure(options: Options, rounds: int) -> dict[str, Any]:
    """Measure both kinds of attention in turns; draw costs.png into the work folder."""
    rows = []
    for length in QUICK_LENGTHS if options.quick else LENGTHS:
        contestants: dict[str, Measure] = {
            name: partial(_costs, options, length, limit) for name, limit in EXPLICIT_UP_TO.items()
        }
        measured = interleave(contestants, rounds)
        contest = f"training step, {length} pieces"
        for row in figures(contest, UNITS, *measured, reference=FUSED):
            rows.append({**row, "length": length})
    draw(rows, options.work / "costs.png")
    return {"figures": rows}


def _costs(options: Options, length: int, explicit_up_to: int) -> dict[str, float]:
    shape = {"length": length, "explicit_up_to": explicit_up_to, "warmup": 1}
    speed = {**shape, "rows": TOKENS_PER_SIDE // length, "steps": 1 if options.quick else 5}
    peak = {**shape, "rows": SENTENCES, "steps": 1}
    return_at_once = {"MALLOC_MMAP_THRESHOLD_": "65536"}
    return {
        "speed": measure_in_child("training_step", speed, options)["speed"],
        "peak": measure_in_child("training_step", peak, options, variables=return_at_once)["peak"],
    }


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw the speed and the RAM of each kind of attention against the sentence length."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for panel, unit in zip(panels, UNITS.values(), strict=True):
        panel.set(xscale="log", yscale="log", xlabel="sentence length in pieces", ylabel=unit)
        panel.grid(alpha=0.3)
        for name in EXPLICIT_UP_TO:
            points = [
                (row["length"], row["median"])
                for row in rows
                if (row["contestant"], row["unit"]) == (name, unit) and "median" in row
            ]
            panel.plot(*zip(*points, strict=True), marker=".", label=name)
    panels[0].legend()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
