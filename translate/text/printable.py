"""Escape control characters, which could change what a terminal or a picture shows."""

from __future__ import annotations

import re

# Control characters except tab and line feed, line and paragraph separators, the characters that
# change the direction of text (https://trojansource.codes), and those that XML does not allow.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str) -> str:
    r"""Return `text` with control characters as escape sequences: the byte 1B becomes \x1b."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
