"""Measure several programs (contestants) in turns; turn the values into rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.options import OURS, BenchmarkError, say

Measure = Callable[[], dict[str, Any]]  # returns {what is measured: value}
Results = dict[str, list[dict[str, Any]]]  # contestant -> the result of each round


def interleave(contestants: Mapping[str, Measure], rounds: int) -> tuple[Results, dict[str, str]]:
    """Measure all contestants in turns; return their results and their errors.

    Each round begins with a different contestant. A contestant that fails is not measured again.
    """
    names = list(contestants)
    results: Results = {name: [] for name in names}
    errors: dict[str, str] = {}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            if name in errors:
                continue
            say(f"round {number + 1} of {rounds}: {name}")
            try:
                results[name].append(contestants[name]())
            except BenchmarkError as error:
                errors[name] = str(error)
                say(f"{name}: {error}")
    return results, errors


def figures(
    contest: str,
    units: Mapping[str, str],
    results: Results,
    errors: Mapping[str, str],
    reference: str = OURS,
) -> list[dict[str, Any]]:
    """Return a row of the table for each key of `units` and each contestant.

    The ratios reference/contestant are computed for each round, because a slow machine slows both
    measurements of a round.
    """
    rows = []
    for key, unit in units.items():
        ours = [result[key] for result in results[reference]]
        for name, rounds in results.items():
            values = [result[key] for result in rounds]
            ratios = [a / b for a, b in zip(ours, values, strict=False)]
            row = {"contest": contest, "contestant": name, "unit": unit, "error": errors.get(name)}
            row |= {"values": values, "ratios": [] if name == reference else ratios}
            rows.append(row)
    return rows
