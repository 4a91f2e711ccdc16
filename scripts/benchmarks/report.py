"""The results as text: one paragraph and a Markdown table."""

from __future__ import annotations

from typing import Any

from benchmarks.peers import VERSIONS


def describe(results: dict[str, Any]) -> str:
    """Return one paragraph: what was measured, on which machine."""
    machine = results["machine"]
    mode = "quick run, rough figures only" if results["options"]["quick"] else "full run"
    if against := results["options"]["against"]:
        others = f"the other checkout: {against} at {machine['commits'][1]}"
    else:
        names = ("joeynmt", "transformers", "ctranslate2")
        others = ", ".join(f"{name} {VERSIONS[name]}" for name in names)
    lines = [
        f"{machine['cpu']}, threads: {machine['threads']} on {machine['cores']} cores, "
        f"{machine['ram_gib']} GiB; {machine['system']}; Python {machine['python']}, "
        f"torch {machine['torch']}; {others}; {machine['date']}; {mode}."
    ]
    settings = [part.get("settings", {}) for part in results["parts"].values()]
    corpora = [
        f"Corpus: {each['corpus']}, {each['pairs']:,} pairs, {each['pieces']:,} joint pieces."
        for each in settings
        if "corpus" in each
    ]
    return "\n".join([*lines, *dict.fromkeys(corpora)])


def table(results: dict[str, Any]) -> str:
    """Return every figure: the median and the range of the rounds, and of their ratios."""
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
    median = spread = ratio = ratios = ""
    if "median" in row:
        median = _number(row["median"])
        spread = f"{_number(row['min'])} to {_number(row['max'])}"
    if "ratio" in row:
        ratio, ratios = f"{row['ratio']:.2f}", f"{row['ratio_min']:.2f} to {row['ratio_max']:.2f}"
    cells = [row["contest"], name, median, spread, row["unit"], ratio, ratios]
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    """Return a reason without the exit code and the name of the log."""
    return text.split(" (")[0].replace("|", "/")[:120]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
