"""Results as a Markdown table, for a person."""

from __future__ import annotations

from typing import Any


def describe(results: dict[str, Any]) -> str:
    """One paragraph: what was measured on which machine."""
    machine, versions = results["machine"], results["versions"]
    mode = "quick run, a rough figure only" if results["options"]["quick"] else "full run"
    peers = "".join(
        f"{name} {versions['peers'][name]}; "
        for name in ("joeynmt", "transformers", "ctranslate2")
        if versions["peers"].get(name)
    )
    lines = [
        f"{machine['cpu']}, {machine['threads']} threads of {machine['usable_cores']} cores, "
        f"{machine['memory_gib']} GiB; {machine['system']}; Python {machine['python']}, "
        f"torch {machine['torch']}; {peers}{machine['date']}; {mode}."
    ]
    settings = [part.get("settings", {}) for part in results["parts"].values()]
    corpora = [
        f"Corpus: {each['corpus']}, {each['pairs']:,} pairs, {each['pieces']:,} joint pieces."
        for each in settings
        if "corpus" in each
    ]
    return "\n".join([*lines, *dict.fromkeys(corpora)])


def table(results: dict[str, Any]) -> str:
    """Every figure: the median of the rounds, their range, and ours/peer."""
    lines = [
        "| contest | contestant | median | min to max | unit | ours / peer | min to max |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    for name, part in results["parts"].items():
        if part.get("error"):
            lines.append(f"| {name} | failed: {_cell(part['error'])} | | | | | |")
        lines += [_row(row) for row in part.get("figures", [])]
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> str:
    name = row["contestant"] + (f" (failed: {_cell(row['error'])})" if row["error"] else "")
    cells = [row["contest"], name, *([""] * 5)]
    cells[4] = row["unit"]
    if "median" in row:
        cells[2] = _number(row["median"])
        cells[3] = f"{_number(row['min'])} to {_number(row['max'])}"
    if "ratio" in row:
        cells[5] = f"{row['ratio']:.2f}"
        cells[6] = f"{row['ratio_min']:.2f} to {row['ratio_max']:.2f}"
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    """The reason without where to read more."""
    return text.split(" (")[0].replace("|", "/")[:120]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
