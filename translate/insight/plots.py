"""Attention heatmaps."""

from __future__ import annotations

import io
import logging
import math
import textwrap
import warnings
from typing import Literal

import numpy
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.text import Text

from translate.insight.attention import AttentionMaps
from translate.text.printable import printable

logger = logging.getLogger(__name__)

_MAX_LABEL = 24  # characters: an untrained model writes very long words
_MAX_INCHES = 40.0  # longest side; larger pictures get smaller cells, to save RAM
# matplotlib draws a character that its font lacks as a box, and warns; `rendered` logs it instead.
_NO_GLYPH = "Glyph .* missing from font"


def attention_heatmap(maps: AttentionMaps, title: str, *, scale: bool = True) -> Figure:
    """Draw one panel for each of `maps`: the darker row i, column j, the more i attends to j.

    Drawing takes a third less time without the colour `scale`. The figure uses neither a window
    system nor matplotlib's global state, so a training loop can draw it on a machine without a
    screen.
    """
    rows = [_shorten(word) for word in maps.rows]
    columns = [_shorten(word) for word in maps.columns]
    across = math.ceil(math.sqrt(len(maps.weights)))
    down = math.ceil(len(maps.weights) / across)
    # In inches: space for the labels, then 0.55 x 0.38 for each cell.
    width = 1.6 + across * (0.1 * max(map(len, rows)) + 0.55 * len(columns))
    height = down * (1.2 + 0.07 * max(map(len, columns)) + 0.38 * len(rows))
    size = (min(_MAX_INCHES, width), min(_MAX_INCHES, height))
    figure = Figure(figsize=size, dpi=100, layout="constrained")
    grid = figure.subplots(down, across, squeeze=False).ravel()
    for axes, weights, name in zip(grid, maps.weights.numpy(), maps.titles, strict=False):
        image = axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        # Without parse_math, a dollar sign in a sentence would start a formula.
        slanted = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
        axes.set_xticks(range(len(columns)), columns, parse_math=False, **slanted)
        axes.set_yticks(range(len(rows)), rows, parse_math=False)
        axes.xaxis.set(ticks_position="top", label_position="top")
        axes.set(xlabel=f"{name}: {maps.column_name}", ylabel=maps.row_name)
    for axes in grid[len(maps.weights) :]:
        axes.set_axis_off()
    if scale:
        figure.colorbar(image, ax=list(grid), label="attention weight (each row sums to 1)")
    # A title has about eight characters per inch. All white space becomes single spaces.
    # A control character is no valid XML: it would spoil an SVG file.
    short = textwrap.shorten(printable(title), int(8 * size[0]), placeholder=" …")
    figure.suptitle(short, parse_math=False)
    return figure


def _shorten(word: str) -> str:
    word = printable(word)
    return word if len(word) <= _MAX_LABEL else word[: _MAX_LABEL - 1] + "…"


def pixels(figure: Figure) -> numpy.ndarray:
    """Draw the figure; return an array of shape (height, width, 3), uint8."""
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NO_GLYPH)
        canvas.draw()
    return numpy.asarray(canvas.buffer_rgba())[..., :3]


def rendered(figure: Figure, kind: Literal["png", "svg"]) -> bytes:
    """Return the figure as the content of a file of this kind; name characters without a glyph."""
    font = get_font(findfont(FontProperties()))
    text = "".join(label.get_text() for label in figure.findobj(Text))
    if missing := sorted(set(map(ord, text)) - font.get_charmap().keys()):
        names = ", ".join(repr(chr(code)) for code in missing)
        logger.warning("the picture shows boxes for %s, which its font does not have", names)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NO_GLYPH)
        figure.savefig(buffer, format=kind)
    return buffer.getvalue()
