"""The report of `translate check`, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from translate.text.check_report import SAMPLE, Report, Split
from translate.text.problems import UNSAFE


def as_text(report: Report) -> Iterator[str]:
    """Yield the paragraphs of the report: table of splits, problems (worst first), verdict."""
    read = {name: split for name, split in report.splits.items() if split.pairs or split.left_out}
    if read:
        yield _table(read, report.max_length)
    if report.pieces:
        sample = f" of {SAMPLE:,} pairs" if report.sampled else ""
        sizes = f"{report.smallest:,} to {report.largest:,} pieces"
        supported = (
            f"\nThe training text supports vocabularies of {sizes}." if report.largest else ""
        )
        yield f"Lengths{sample} in pieces of a vocabulary of {report.pieces:,}.{supported}"
    for problem in report.problems:
        count = f"   {problem.count:,} lines" if problem.count > 1 else ""
        heading = f"{problem.severity:<8} {problem.kind:<22} {problem.place}{count}"
        what = f"{problem.what}: {problem.example}" if problem.example else problem.what
        yield "\n         ".join(filter(None, (heading, what, problem.todo)))
    yield _verdict(report)


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


def _table(splits: dict[str, Split], max_length: int) -> str:
    """Return one line per property, with one column per split."""
    kinds = dict.fromkeys(kind for split in splits.values() for kind in split.left_out)
    columns = []
    for name, split in splits.items():
        cells = {
            "": name,
            "pairs": f"{split.pairs:,}",
            **{f"left out: {kind}": f"{split.left_out.get(kind, 0):,}" for kind in kinds},
            f"longer than {max_length:,}": f"{split.too_long:,}",
            "characters not in train": f"{split.unknown:.2%}",
            "source: median / 99 % / longest": _lengths(split.source),
            "target: median / 99 % / longest": _lengths(split.target),
        }
        width = max(map(len, cells.values()))
        columns.append([f"{cell:>{width}}" for cell in cells.values()])
    width = max(map(len, cells))
    labels = [f"{label:<{width}}" for label in cells]
    return "\n".join("   ".join(row) for row in zip(labels, *columns, strict=True))


def _lengths(side: dict[str, int] | None) -> str:
    return " / ".join(map(str, side.values())) if side else "-"


def _verdict(report: Report) -> str:
    counts = Counter(problem.severity for problem in report.problems)  # the worst first
    found = [
        f"{count} {severity}" + ("s" if count > 1 and severity != UNSAFE else "")
        for severity, count in counts.items()
    ]
    verdict = "safe" if report.safe else "NOT SAFE"
    return f"{verdict} to train on: {', '.join(found) or 'no problems found'}"
