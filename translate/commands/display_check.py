"""The report of `translate check`, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from translate.text.check_report import SAMPLE, Report
from translate.text.problems import UNSAFE


def as_text(report: Report) -> Iterator[str]:
    """Yield the lines of the report: table of splits, problems (worst first), verdict."""
    yield from _table(report)
    yield ""
    if report.pieces:
        sample = f" of {SAMPLE:,} pairs" if report.sampled else ""
        yield f"Lengths{sample} in pieces of a vocabulary of {report.pieces:,}."
    if report.largest:
        smallest, largest = report.smallest, report.largest
        yield f"The training text supports vocabularies of {smallest:,} to {largest:,} pieces."
    for problem in report.problems:
        count = f"   {problem.count:,} lines" if problem.count > 1 else ""
        yield f"\n{problem.severity:<8} {problem.kind:<22} {problem.place}{count}"
        yield f"         {problem.what}" + (f": {problem.example}" if problem.example else "")
        if problem.todo:
            yield f"         {problem.todo}"
    yield f"\n{_verdict(report)}"


def as_json(report: Report) -> dict[str, Any]:
    """Return the report as one JSON object."""
    return {
        "safe": report.safe,
        "pairs": report.splits["train"].pairs,
        "faults": [
            {**asdict(problem), "unsafe": problem.unsafe, "message": str(problem)}
            for problem in report.problems
        ],
        "splits": {name: asdict(split) for name, split in report.splits.items()},
        "vocabulary": {name: getattr(report, name) for name in ("smallest", "largest", "pieces")},
        "sampled": report.sampled,
    }


def _table(report: Report) -> Iterator[str]:
    """Yield one line per property, with one column per split."""
    splits = list(report.splits.values())
    rows = [["", *report.splits], ["pairs", *(f"{split.pairs:,}" for split in splits)]]
    for kind in dict.fromkeys(kind for split in splits for kind in split.left_out):
        counts = (split.left_out.get(kind, 0) for split in splits)
        rows.append([f"left out: {kind}", *(f"{count:,}" for count in counts)])
    rows += [
        [f"longer than {report.max_length:,}", *(f"{split.too_long:,}" for split in splits)],
        ["characters not in train", *(f"{split.unknown:.2%}" for split in splits)],
        ["source: median / 99 % / longest", *(_lengths(split.source) for split in splits)],
        ["target: median / 99 % / longest", *(_lengths(split.target) for split in splits)],
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for label, *cells in rows:
        columns = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
        yield "   ".join([f"{label:<{widths[0]}}", *columns])


def _lengths(side: dict[str, int] | None) -> str:
    return " / ".join(map(str, side.values())) if side else "-"


def _verdict(report: Report) -> str:
    counts = Counter(problem.severity for problem in report.problems)  # the worst first
    found = [
        f"{count} {severity}{'s' * (count > 1 and severity != UNSAFE)}"
        for severity, count in counts.items()
    ]
    verdict = "safe" if report.safe else "NOT SAFE"
    return f"{verdict} to train on: {', '.join(found) or 'no problems found'}"
