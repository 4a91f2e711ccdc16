"""Rows of translation memories (TMX 1.1 to 1.4).

Units are read one by one, so that the whole tree is never in RAM.
"""

from __future__ import annotations

import io
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from lxml import etree

from translate.text.formats import Rows
from translate.text.problems import DataError, Problem, ProblemLog
from translate.text.text_files import read_bytes

_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
# Inline elements that hold mark-up of another program, not text (TMX 1.4b, "Content Markup").
_MARKUP = ("{*}bpt", "{*}ept", "{*}it", "{*}ph", "{*}ut")

Element = Any  # the class has a private name in lxml


def tmx_rows(path: Path, languages: tuple[str, str], setting: str, log: ProblemLog) -> Rows:
    """Yield each source variant of a unit with each target variant, and the line of the unit.

    "en" matches "EN", "en-US" and "en_GB" too. Entities that the file defines are never expanded,
    and nothing is fetched; units that use such entities are left out.

    Raises:
        DataError: an unreadable file, XML that is not well-formed.
    """
    data = io.BytesIO(read_bytes(path, setting))
    units = etree.iterparse(
        data, tag="{*}tu", resolve_entities=False, load_dtd=False, no_network=True
    )
    try:
        for _, unit in units:
            yield from _unit_rows(unit, str(path), languages, log)
            unit.clear()
            while unit.getprevious() is not None:  # or millions of empty elements stay in RAM
                del unit.getparent()[0]
    except etree.XMLSyntaxError as error:
        errors = [(entry.line, entry.message) for entry in units.error_log]
        line, reason = errors[0] if errors else (1, error.msg)  # later errors follow from the first
        what = f"not well-formed XML: {' '.join(reason.split())}"
        raise DataError(Problem("broken-format", str(path), line, what=what)) from None


def _unit_rows(unit: Element, file: str, languages: tuple[str, str], log: ProblemLog) -> Rows:
    line = unit.sourceline
    etree.strip_elements(unit, *_MARKUP, with_tail=False)
    variants = [
        (variant.get(_LANG) or variant.get("lang") or "", _text(variant.find("{*}seg")))
        for variant in unit.iterchildren("{*}tuv")
    ]
    if next(unit.iter(etree.Entity), None) is not None:
        texts = [text for _, text in variants]
        log.leave_out("entity", "an entity that is not expanded", file, line, *texts)
        return
    sides = [[text for code, text in variants if _matches(code, name)] for name in languages]
    if missing := [name for name, texts in zip(languages, sides, strict=True) if not texts]:
        reason = f"no {' and no '.join(missing)} in the unit"
        log.leave_out("no-language", reason, file, line, *[code for code, _ in variants])
    for source, target in product(*sides):
        yield line, source, target


@cache
def _matches(code: str, language: str) -> bool:
    code, language = (text.lower().replace("_", "-") for text in (code, language))
    return code == language or code.startswith(f"{language}-")


def _text(segment: Element | None) -> str:
    return "" if segment is None else "".join(segment.itertext())
