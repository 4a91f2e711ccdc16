"""Attention as one HTML file: hovering over a word shows what it attends to."""

from __future__ import annotations

import json
from importlib.resources import files
from string import Template

from translate.insight.attention import AttentionMaps


def attention_page(maps: AttentionMaps, title: str) -> str:
    """Return a page that needs no server, no network and no other file."""
    content = {
        **maps._asdict(),
        "weights": maps.weights.double().round(decimals=4).tolist(),
        "title": title,
    }
    # JSON escapes control characters, and all others that are not ASCII. "<" is escaped, so that no
    # word can end the script element that holds the numbers.
    data = json.dumps(content).replace("<", "\\u003c")
    template = files("translate.insight").joinpath("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(maps=data)
