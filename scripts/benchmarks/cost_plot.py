"""The cost curves as a picture: speed above, memory below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COLUMNS = {
    "length": "sentence length, pieces a side",
    "tokens": "batch budget, tokens of both sides",
    "width": "width of the model",
    "vocabulary": "vocabulary, pieces",
}
SPEED, MEMORY = "tokens_per_second", "peak_mib"
COLOURS = {"explicit": "#d95f02", "fused": "#1b9e77", "as shipped": "#404040"}  # attention


def draw(points: list[dict[str, Any]], file: Path, *, rows: int) -> Path:
    """Write the figure as a PNG file.

    Args:
        points: axis, path, value and, where it was measured, both costs.
        file: the PNG file.
        rows: sentences in a batch of the axis "rows".
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    figure, panels = pyplot.subplots(
        2, len(COLUMNS), figsize=(13, 6.5), layout="constrained", sharex="col", sharey="row"
    )
    for row, cost in zip(panels, (SPEED, MEMORY), strict=True):
        for panel, axis in zip(row, COLUMNS, strict=True):
            _curves(panel, points, axis, cost)
            values = sorted({point["value"] for point in points if point["axis"] == axis})
            panel.set_xscale("log")
            panel.set_xticks(values, [f"{value:,}" for value in values], rotation=45)
            panel.minorticks_off()
            panel.grid(alpha=0.3)
    _curves(panels[1][0], points, "rows", MEMORY)
    panels[0][0].set(ylabel="target tokens a second", ylim=(0, None))
    panels[1][0].set(ylabel="peak memory of training, MiB", yscale="log")
    panels[1][0].yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    for panel in (panels[0][0], panels[1][0]):
        panel.yaxis.set_major_formatter("{x:,.0f}")
    for panel, label in zip(panels[1], COLUMNS.values(), strict=True):
        panel.set_xlabel(label)
    lines = {f"attention: {path}": Line2D([], [], color=colour) for path, colour in COLOURS.items()}
    lines[f"always {rows} sentences, what is needed"] = Line2D(
        [], [], color="black", linestyle="--"
    )
    figure.legend(
        lines.values(), lines.keys(), loc="outside upper center", ncols=len(lines), frameon=False
    )
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
    return file


def _curves(panel: Any, points: list[dict[str, Any]], axis: str, cost: str) -> None:
    for path, colour in COLOURS.items():
        at = {
            point["value"]: point[cost]
            for point in points
            if (point["axis"], point["path"]) == (axis, path) and point.get(cost, 0) > 0
        }
        # The shipped path runs over one of the others; thinner, both can be seen.
        width = 1 if path == "as shipped" else 2
        style = "--" if axis == "rows" else "-"
        panel.plot(list(at), list(at.values()), style, color=colour, marker=".", linewidth=width)
