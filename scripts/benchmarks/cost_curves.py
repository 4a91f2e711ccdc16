"""What training costs: curves of speed and memory, one step split up, a corpus of a million pairs.

A point of a curve is one shape in a process of its own: forward, backward, clipping and fused
AdamW on random ids without padding, source and target of equal length. Speed is target tokens a
second. Memory is what the steps add at their peak to what is resident once the model is there:
gradients, the optimiser's state, all that one step needs, and what the allocator keeps.
What it keeps may double the peak of one shape and not of the next. So growth with the length is
judged at steps after which everything goes back to the system at once (slow; glibc only): there
the peak is what is needed.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import corpus, plot, split
from benchmarks.child_processes import run
from benchmarks.corpus import VOCAB_SIZE
from benchmarks.options import SHAPE, Bench, BenchmarkError, Options
from benchmarks.rounds import figure

LENGTH, TOKENS = 16, 8192  # of every axis that is not about them
ROWS = 4  # of the axis with a constant number of sentences
PATHS = ("explicit", "fused", "as shipped")
# Axis -> values; "length": rows shrink so that a batch has TOKENS, "rows": there are always ROWS.
AXES = {
    "length": (8, 16, 32, 64, 128, 256, 512, 1024),
    "rows": (8, 16, 32, 64, 128, 256, 512, 1024),
    "tokens": (1024, 2048, 4096, 8192, 16384),
    "width": (64, 128, 256, 512),
    "vocabulary": (1000, 2000, 4000, 8000, 16000, 32000),
}
QUICK_AXES = {
    "length": (16, 128, 512),
    "rows": (16, 128, 512),
    "tokens": (1024, 4096, 16384),
    "width": (64, 128, 256),
    "vocabulary": (1000, 8000, 32000),
}
LONG = 128  # pieces from which growth of memory is judged: below, it is mostly the loss's


class Point(NamedTuple):
    """A shape to measure. Points of several axes may have the same one."""

    rows: int
    length: int
    width: int = SHAPE["d_model"]
    vocabulary: int = VOCAB_SIZE
    path: str = "as shipped"
    exact: bool = False  # the peak of what is needed; speed does not count


def point(axis: str, value: int, path: str) -> Point:
    if axis == "length":
        return Point(max(1, TOKENS // (2 * value)), value, path=path)
    if axis == "rows":
        return Point(ROWS, value, path=path, exact=True)
    if axis == "tokens":
        return Point(value // (2 * LENGTH), LENGTH, path=path)
    rest = {axis: value, "path": path}
    return Point(TOKENS // (2 * LENGTH), LENGTH, **rest)


def curves(quick: bool) -> dict[tuple[str, str], dict[int, Point]]:
    """(axis, attention path) -> value -> its point."""
    paths = {"length": PATHS[:2] if quick else PATHS, "rows": PATHS[:2]}
    return {
        (axis, path): {value: point(axis, value, path) for value in values}
        for axis, values in (QUICK_AXES if quick else AXES).items()
        for path in paths.get(axis, PATHS[2:])
    }


def _points(quick: bool) -> list[Point]:
    return list(dict.fromkeys(p for curve in curves(quick).values() for p in curve.values()))


def units(rounds: int) -> int:
    """Steps of the progress bar, for as many points as there can be."""
    own = rounds * len(_points(quick=False)) + 1
    return own + split.units(rounds) + corpus.units(rounds)


def compete(bench: Bench, rounds: int) -> dict[str, Any]:
    """Everything in turns; JSON-able. The plot goes into the work folder as costs.png."""
    quick = bench.options.quick
    about = bench.corpus.describe()  # before the long part, in case that it fails
    points = _points(quick)
    measured: dict[Point, list[dict[str, float]]] = {each: [] for each in points}
    errors: dict[Point, str] = {}
    for round_ in range(rounds):
        for number, each in enumerate(points, 1):
            bench.progress.now(f"cost curves, round {round_ + 1}, {number} of {len(points)}")
            if each not in errors:
                try:
                    measured[each].append(_measure(each, bench.options))
                except BenchmarkError as error:  # one too large for this machine
                    errors[each] = str(error)
                    bench.progress.say(f"{each}: {error}")
            bench.progress.done()
    bench.progress.done(rounds * (len(_points(quick=False)) - len(points)))
    table = [
        {
            "axis": axis, "path": path, "value": value, **each._asdict(),
            "error": errors.get(each), "repeats": measured[each],
            **{
                key: statistics.median(repeat[key] for repeat in measured[each])
                for key in ("tokens_per_second", "peak_mib")
                if measured[each]
            },
        }
        for (axis, path), curve in curves(quick).items()
        for value, each in curve.items()
    ]  # fmt: skip
    picture = plot.draw(table, bench.options.work / "costs.png", rows=ROWS)
    bench.progress.done()
    rows = _figures(table)
    parts: dict[str, Any] = {"curves": table, "plot": picture.name}
    for name, module in (("split", split), ("corpus", corpus)):
        try:
            parts[name] = module.measure(bench, rounds)
            rows += parts[name].pop("figures")
        except BenchmarkError as error:
            parts[name] = {"error": str(error)}
            rows.append(figure(name, "all of it", "", [], error=str(error)))
    settings = {"shape": SHAPE, "length": LENGTH, "tokens": TOKENS, "rows": ROWS}
    return {"settings": settings | about, "figures": rows, **parts}


def _measure(each: Point, options: Options) -> dict[str, float]:
    answer = options.work / "logs" / "costs.json"
    # Slow points end after some seconds, but not with fewer than `least` measured steps.
    quick = {"warmup": 1, "steps": 3, "least": 1, "seconds": 2}
    steps = quick if options.quick else {"warmup": 2, "steps": 9, "least": 3, "seconds": 15}
    command: list[str | Path] = [sys.executable, "-m", "benchmarks.costs_worker"]
    if each.exact:
        steps = {"warmup": 1, "steps": 1, "least": 1, "seconds": 0}
        command = ["env", "MALLOC_MMAP_THRESHOLD_=65536", *command]
    settings = {**each._asdict(), **steps, "threads": options.threads, "answer": str(answer)}
    command.append(json.dumps(settings))
    run(command, options, options.work / "logs" / "costs.log")
    return json.loads(answer.read_text("utf-8"))


def exponent(values: Sequence[float], costs: Sequence[float]) -> float:
    """b of the least-squares line log cost = a + b · log value: 1 is linear, 2 quadratic."""
    return statistics.linear_regression(
        [math.log(value) for value in values], [math.log(cost) for cost in costs]
    ).slope


def _figures(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Growth of memory, and speed at a few lengths, for the table."""
    figures = []
    for path in PATHS[:2]:
        rows = [
            row
            for row in table
            if (row["axis"], row["path"]) == ("rows", path)
            and row["value"] >= LONG
            and not row["error"]
        ]
        if len(rows) < 2:
            continue
        # The last two alone as well: there the least is fixed cost, which hides growth.
        for chosen in [rows] if len(rows) < 3 else [rows, rows[-2:]]:
            figures.append(_growth(chosen, path))
    for row in sorted(table, key=lambda row: row["value"]):
        if row["axis"] == "length" and row["value"] in (16, 128, 512, 1024):
            contest = f"training step, sentences of {row['value']} pieces"
            speeds = [repeat["tokens_per_second"] for repeat in row["repeats"]]
            name = f"{row['path']} attention"
            figures.append(figure(contest, name, "target tokens/s", speeds, error=row["error"]))
    return figures


def _growth(rows: list[dict[str, Any]], path: str) -> dict[str, Any]:
    values = [row["value"] for row in rows]
    rounds = zip(*(row["repeats"] for row in rows), strict=True)
    slopes = [exponent(values, [at["peak_mib"] for at in each]) for each in rounds]
    contest = f"memory, {ROWS} sentences of {values[0]} to {values[-1]} pieces"
    return figure(contest, f"{path} attention", "exponent (1: linear)", slopes)
