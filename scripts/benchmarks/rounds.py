"""Contestants take turns; a figure is the median of the rounds, or of their ratios."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from benchmarks.options import OURS, BenchmarkError

Measure = Callable[[int], dict[str, Any]]  # number of the round -> {what: value}


class Reporter(Protocol):
    """What `interleave` tells of its progress."""

    def now(self, label: str) -> None: ...
    def done(self, steps: int = 1) -> None: ...
    def say(self, line: str) -> None: ...


def interleave(
    progress: Reporter, contestants: Mapping[str, Measure], rounds: int
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Measure all contestants in turns; return their results and their errors.

    Each round begins with another contestant, so that none always follows the same one. A
    contestant that fails drops out.
    """
    names = list(contestants)
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    errors: dict[str, str] = {}
    for round_ in range(rounds):
        shift = round_ % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            if name not in errors:
                progress.now(f"{name}, round {round_ + 1}")
                try:
                    results[name].append(contestants[name](round_))
                except BenchmarkError as error:
                    errors[name] = str(error)
                    progress.say(f"{name}: {error}")
            progress.done()
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
    """Return one row of the table and of the JSON file.

    `repeats` and `ours` hold one value per round. The ratio ours/peer is the median of the
    rounds' ratios, because whatever slows the machine down slows both sides of a round.
    """
    row: dict[str, Any] = {
        "contest": contest, "contestant": contestant, "unit": unit, "note": note,
        "error": error, "repeats": list(repeats),
    }  # fmt: skip
    if repeats:
        row |= {"median": statistics.median(repeats), "min": min(repeats), "max": max(repeats)}
    ratios = [a / b for a, b in zip(ours or (), repeats, strict=False)]
    if ratios:
        row |= {"ratio": statistics.median(ratios), "ratios": ratios}
        row |= {"ratio_min": min(ratios), "ratio_max": max(ratios)}
    return row


def figures(
    contest: str,
    unit: str,
    key: str,
    results: Mapping[str, list[dict[str, Any]]],
    errors: Mapping[str, str],
    notes: Mapping[str, str] | None = None,
    reference: str = OURS,
) -> list[dict[str, Any]]:
    """Return a row for each contestant, from the values that `interleave` returned as `key`."""
    ours = [result[key] for result in results.get(reference, ())]
    return [
        figure(
            contest, name, unit, [result[key] for result in values],
            None if name == reference else ours,
            error=errors.get(name), note=(notes or {}).get(name, ""),
        )
        for name, values in results.items()
    ]  # fmt: skip
