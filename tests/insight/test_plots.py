"""Heatmaps, checked pixel by pixel."""

from __future__ import annotations

import json
import re
import sys
import warnings
from xml.etree import ElementTree

import numpy
import pytest
import torch

from translate.insight.attention import AttentionMaps
from translate.insight.page import attention_page
from translate.insight.plots import attention_heatmap, pixels, rendered


def maps_of(weights: torch.Tensor, **labels) -> AttentionMaps:
    """One panel (R, C), or panels (P, R, C)."""
    panels = weights if weights.ndim == 3 else weights[None]
    count, rows, columns = panels.shape
    return AttentionMaps(
        panels,
        [f"panel {number}" for number in range(count)],
        labels.get("target", [f"t{row}" for row in range(rows)]),
        labels.get("source", [f"s{column}" for column in range(columns)]),
        "target word being predicted",
        "source word attended to",
    )


def heatmap(weights: torch.Tensor, **labels):
    return attention_heatmap(maps_of(weights, **labels), labels.get("title", "title"))


def cell(figure, image: numpy.ndarray, row: int, column: int) -> numpy.ndarray:
    """The colour in the middle of a cell, found by where the axes put their ticks."""
    axes = figure.axes[0]
    x, y = axes.transData.transform((column, row))
    return image[image.shape[0] - int(y), int(x)].astype(int)


@pytest.mark.parametrize(("row", "column"), [(0, 3), (2, 0), (1, 1)])
def test_the_one_attended_word_is_dark_where_its_labels_say(row, column):  # B05
    weights = torch.zeros(3, 4)
    weights[row, column] = 1
    figure = heatmap(weights)
    image = pixels(figure)
    dark = {(i, j) for i in range(3) for j in range(4) if cell(figure, image, i, j).sum() < 400}
    assert dark == {(row, column)}
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["t0", "t1", "t2"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["s0", "s1", "s2", "s3"]
    # Row 0 is at the top, column 0 at the left, and the words of the source stand above.
    top = axes.transData.transform((0, 0))[1]
    assert top > axes.transData.transform((0, 2))[1]
    assert axes.xaxis.get_label_position() == axes.xaxis.get_ticks_position() == "top"


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (110, 1), (1, 80), (30, 30)])
def test_no_picture_is_larger_than_4000_pixels(rows, columns):  # B08
    image = pixels(heatmap(torch.rand(rows, columns)))
    assert image.dtype == numpy.uint8
    assert image.shape[2] == 3
    assert max(image.shape) <= 4000


def test_odd_words_are_drawn_without_a_warning():  # B09
    odd = ["\U0001f600", "$x_{", "$5 $6", "漢字", "<0xE2>", "␣"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = heatmap(
            torch.rand(6, 6), source=odd, target=odd, title="It is $5 or $x_{ \U0001f600"
        )
        pixels(figure)
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == odd


def test_a_very_long_word_is_cut_and_leaves_space_for_the_picture():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a collapsed layout warns
        figure = heatmap(torch.rand(1, 1), source=["x" * 300], target=["y" * 300])
        pixels(figure)
    assert figure.axes[0].get_yticklabels()[0].get_text() == "y" * 23 + "…"


def test_a_long_title_is_cut_to_the_picture_and_its_white_space_is_blanks():
    figure = heatmap(torch.rand(2, 2), title="one\ttwo " * 100)
    shown = figure.get_suptitle()
    assert shown.startswith("one two one") and shown.endswith(" …")
    pixels(figure)
    (text,) = [text for text in figure.texts if text.get_text() == shown]
    box = text.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width


def test_every_panel_shows_its_own_weights():
    weights = torch.zeros(5, 2, 2)
    weights[range(5), 0, [0, 1, 0, 1, 1]] = 1
    figure = heatmap(weights)
    shown = [axes for axes in figure.axes if axes.images and axes.get_label() != "<colorbar>"]
    assert [axes.get_xlabel() for axes in shown] == [
        f"panel {number}: source word attended to" for number in range(5)
    ]
    assert [int(axes.images[0].get_array()[0].argmax()) for axes in shown] == [0, 1, 0, 1, 1]
    assert max(pixels(figure).shape) <= 4000


def test_a_picture_is_written_as_png_and_svg(caplog):
    figure = heatmap(torch.rand(2, 2), source=["Ärger", "漢字漢"])
    assert rendered(figure, "png").startswith(b"\x89PNG")
    assert caplog.messages == [
        "the picture shows boxes for '字', '漢', which its font does not have"
    ]
    svg = rendered(figure, "svg").decode()
    assert "<svg" in svg and "</svg>" in svg


def test_no_window_system_is_touched():
    pixels(heatmap(torch.rand(2, 2)))
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )


def test_a_picture_and_a_page_are_well_formed_whatever_the_words_are():  # N08
    every = [chr(code) for code in (*range(0xA0), 0x2028, 0x202E, 0xD800, 0xFFFE, 0xFFFF, 0x1F600)]
    word = "".join(every) + "--><!--]]>&lt;<b>"
    words = [*(f"x{sign}" for sign in every), "-->", "<b>&"]
    labels = {"target": words[:40], "source": words[40:80], "title": word}
    weights = torch.rand(40, 40)
    ElementTree.fromstring(rendered(heatmap(weights, **labels), "svg"))
    rest = words[80:]
    labels = {"target": rest, "source": ["a"], "title": word[::-1]}
    ElementTree.fromstring(rendered(heatmap(torch.rand(len(rest), 1), **labels), "svg"))
    page = attention_page(maps_of(torch.rand(len(rest), 1), **labels), word)
    assert page.isascii() and not re.search("[\x00-\x08\x0b-\x1f\x7f]", page)
    data = re.search('id="maps">(.*?)</script>', page)[1]
    assert json.loads(data)["title"] == word
