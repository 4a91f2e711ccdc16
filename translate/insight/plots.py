"""Pictures: attention heatmaps."""

from __future__ import annotations

import warnings

import numpy
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from translate.insight.attention import WordAttention

_LONGEST_LABEL = 24  # characters: an untrained model writes words without end
_LARGEST = 40.0  # inches: beyond it cells shrink, for a picture must fit in memory


def attention_heatmap(attention: WordAttention, title: str) -> Figure:
    """One cell a (target word, source word): row i, column j is dark where i looks at j.

    The figure belongs to no window system and to no global state, so it can be drawn from a
    training loop on a machine without a screen.
    """
    rows = [_label(word) for word in attention.target_words]
    columns = [_label(word) for word in attention.source_words]
    # Inches: room for the labels, then cells.
    width = 1.6 + 0.1 * max(map(len, rows)) + 0.55 * len(columns)
    height = 1.2 + 0.07 * max(map(len, columns)) + 0.38 * len(rows)
    size = (min(_LARGEST, width), min(_LARGEST, height))
    figure = Figure(figsize=size, dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    image = axes.imshow(attention.weights.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    plain = {"parse_math": False}  # a dollar sign in a sentence begins no formula
    slanted = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(columns)), columns, **slanted, **plain)
    axes.set_yticks(range(len(rows)), rows, **plain)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("source word attended to")
    axes.set_ylabel("target word being written")
    figure.colorbar(image, label="weight; each row sums to 1")
    figure.suptitle(title, **plain)
    return figure


def _label(word: str) -> str:
    return word if len(word) <= _LONGEST_LABEL else word[: _LONGEST_LABEL - 1] + "…"


def pixels(figure: Figure) -> numpy.ndarray:
    """The drawn figure: (height, width, 3), uint8."""
    with warnings.catch_warnings():
        # A word in a script that the font lacks is drawn as boxes: no reason to stop or to talk.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.canvas.draw()
    return numpy.asarray(figure.canvas.buffer_rgba())[..., :3]
