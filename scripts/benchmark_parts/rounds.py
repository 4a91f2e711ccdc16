"""Taking turns, and what comes of it: medians and ratios."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from benchmark_parts.common import OURS, Bench, BenchmarkError

Measure = Callable[[int], dict[str, float]]  # round -> {what: value}


def interleave(
    bench: Bench, contestants: dict[str, Measure], rounds: int
) -> tuple[dict[str, list[dict[str, float]]], dict[str, str]]:
    """Measure all contestants in turns; (results by contestant, errors by contestant).

    Each round begins with another one, so that nobody always follows the same neighbour.
    """
    names = list(contestants)
    results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    errors: dict[str, str] = {}
    for round_ in range(rounds):
        shift = round_ % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            if name not in errors:
                bench.progress.now(f"{name}, round {round_ + 1}")
                try:
                    results[name].append(contestants[name](round_))
                except BenchmarkError as error:
                    errors[name] = str(error)
                    bench.progress.say(f"{name}: {error}")
            bench.progress.done()
    return results, errors


def figure(
    contest: str,
    contestant: str,
    unit: str,
    repeats: Sequence[float],
    ours: Sequence[float] | None = None,
    *,
    error: str | None = None,
    note: str = "",
) -> dict[str, Any]:
    """One row of the table and of the JSON file.

    `repeats` and `ours` hold one value a round; the ratio ours/peer is the median of the ratios
    of the rounds, because what slows the machine down slows both sides of a round.
    """
    row: dict[str, Any] = {
        "contest": contest, "contestant": contestant, "unit": unit, "note": note,
        "error": error, "repeats": list(repeats),
    }  # fmt: skip
    if repeats:
        row |= {"median": statistics.median(repeats), "min": min(repeats), "max": max(repeats)}
    ratios = [a / b for a, b in zip(ours or (), repeats, strict=False)]
    if ratios:
        row["ratios"] = ratios
        row |= {"ratio": statistics.median(ratios), "ratio_min": min(ratios)}
        row["ratio_max"] = max(ratios)
    return row


def figures(
    contest: str,
    unit: str,
    key: str,
    results: dict[str, list[dict[str, float]]],
    errors: dict[str, str],
    notes: dict[str, str] | None = None,
    reference: str = OURS,
) -> list[dict[str, Any]]:
    """A row for each contestant, from what `interleave` returned under `key`."""
    ours = [result[key] for result in results.get(reference, ())]
    return [
        figure(
            contest, name, unit, [result[key] for result in values],
            None if name == reference else ours,
            error=errors.get(name), note=(notes or {}).get(name, ""),
        )
        for name, values in results.items()
    ]  # fmt: skip
