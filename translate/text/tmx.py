"""Rows of translation memories (TMX 1.1 to 1.4).

Units are read one by one, so that the whole tree is never in RAM.
"""

from __future__ import annotations

import io
import textwrap
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

MAX_VARIANTS = 100  # of one language in a unit; each is paired with each of the other language

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
        what = f"not well-formed XML: {textwrap.shorten(reason, 200, placeholder='…')}"
        raise DataError(Problem("broken-format", str(path), line, what=what)) from None


def _unit_rows(unit: Element, file: str, languages: tuple[str, str], log: ProblemLog) -> Rows:
    line = unit.sourceline
    etree.strip_elements(unit, *_MARKUP, with_tail=False)
    variants = []
    for variant in unit.iterchildren("{*}tuv"):
        segment = variant.find("{*}seg")
        if segment is None:
            example = " ".join("".join(variant.itertext()).split())
            log.leave_out("no-segment", "no <seg> in a <tuv>", file, variant.sourceline, example)
            return
        code = variant.get(_LANG) or variant.get("lang") or ""
        variants.append((code, "".join(segment.itertext())))
    if next(unit.iter(etree.Entity), None) is not None:
        texts = [text for _, text in variants]
        log.leave_out("entity", "an entity that is not expanded", file, line, *texts)
        return
    sides = [[text for code, text in variants if _matches(code, name)] for name in languages]
    if missing := [name for name, texts in zip(languages, sides, strict=True) if not texts]:
        reason = f"no {' and no '.join(missing)} in the unit"
        log.leave_out("no-language", reason, file, line, *[code for code, _ in variants])
    if max(map(len, sides)) > MAX_VARIANTS:
        reason = f"more than {MAX_VARIANTS} variants in a unit"
        log.leave_out("many-variants", reason, file, line, *(texts[0] for texts in sides))
        return
    for source, target in product(*sides):
        yield line, source, target


@cache
def _matches(code: str, language: str) -> bool:
    code, language = (text.lower().replace("_", "-") for text in (code, language))
    return code == language or code.startswith(f"{language}-")
