"""Pictures: attention heatmaps."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from typing import Literal

import numpy
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from translate.insight.attention import AttentionMaps

_LONGEST_LABEL = 24  # characters: an untrained model writes words without end
_LARGEST = 40.0  # inches: beyond it cells shrink, for a picture must fit in memory
# A word in a script that the font lacks is drawn as boxes: no reason to stop or to talk.
_NO_GLYPH = "Glyph .* missing from font"
_AXES = {
    "encoder": ("source {} that looks", "source {} looked at"),
    "decoder": ("target {} that looks", "target {} looked at"),
    "cross": ("target {} being written", "source {} looked at"),
}


def axis_names(maps: AttentionMaps) -> tuple[str, str]:
    """Of rows and columns."""
    looks, looked_at = _AXES[maps.kind]
    return looks.format(maps.unit), looked_at.format(maps.unit)


def attention_heatmap(maps: AttentionMaps, title: str, *, scale: bool = True) -> Figure:
    """A panel for each of `maps`: row i, column j is dark where i looks at j.

    Without the `scale` beside it a picture is drawn in two thirds of the time.
    The figure belongs to no window system and to no global state, so it can be drawn from a
    training loop on a machine without a screen.
    """
    rows = [_label(word) for word in maps.rows]
    columns = [_label(word) for word in maps.columns]
    across = math.ceil(math.sqrt(len(maps.weights)))
    down = math.ceil(len(maps.weights) / across)
    # Inches: room for the labels, then cells.
    width = 0.1 * max(map(len, rows)) + 0.55 * len(columns)
    height = 1.2 + 0.07 * max(map(len, columns)) + 0.38 * len(rows)
    size = (min(_LARGEST, 1.6 + across * width), min(_LARGEST, down * height))
    figure = Figure(figsize=size, dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(down, across, squeeze=False).ravel()
    plain = {"parse_math": False}  # a dollar sign in a sentence begins no formula
    slanted = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
    looks, looked_at = axis_names(maps)
    for axes, weights, name in zip(grid, maps.weights.numpy(), maps.titles, strict=False):
        image = axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.set_xticks(range(len(columns)), columns, **slanted, **plain)
        axes.set_yticks(range(len(rows)), rows, **plain)
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xlabel(f"{name}: {looked_at}")
        axes.set_ylabel(looks)
    for axes in grid[len(maps.weights) :]:
        axes.set_axis_off()
    if scale:
        figure.colorbar(image, ax=list(grid), label="weight; each row sums to 1")
    # At the usual size eight characters take an inch. White space of all kinds becomes one blank.
    figure.suptitle(textwrap.shorten(title, int(8 * size[0]), placeholder=" …"), **plain)
    return figure


def _label(word: str) -> str:
    return word if len(word) <= _LONGEST_LABEL else word[: _LONGEST_LABEL - 1] + "…"


def pixels(figure: Figure) -> numpy.ndarray:
    """The drawn figure: (height, width, 3), uint8."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NO_GLYPH)
        figure.canvas.draw()
    return numpy.asarray(figure.canvas.buffer_rgba())[..., :3]


def rendered(figure: Figure, kind: Literal["png", "svg"]) -> bytes:
    """The figure as a file of this kind."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NO_GLYPH)
        figure.savefig(buffer, format=kind)
    return buffer.getvalue()
