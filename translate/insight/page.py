"""Attention as one HTML file: hovering a word shows what it looks at."""

from __future__ import annotations

import json
from importlib.resources import files
from string import Template

from translate.insight.attention import AttentionMaps
from translate.insight.plots import axis_names


def attention_page(maps: AttentionMaps, title: str) -> str:
    """A page that needs nothing but itself: no server, no network, no other file."""
    looks, looked_at = axis_names(maps)
    content = {
        "title": title,
        "titles": maps.titles,
        "looks": looks,
        "looked_at": looked_at,
        "rows": maps.rows,
        "columns": maps.columns,
        "weights": [
            [[round(w, 4) for w in row] for row in panel] for panel in maps.weights.tolist()
        ],
    }
    # "<" is escaped, so that no word can end the script that holds the numbers.
    data = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    template = files("translate.insight").joinpath("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(maps=data)
