"""Translation memories (TMX 1.1 to 1.4) to rows, unit by unit: the tree is never held whole."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lxml import etree

from translate.errors import UserError
from translate.text.files import read_bytes
from translate.text.filters import Reason, Tally
from translate.text.formats import Row

_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
# Inline elements that hold another program's mark-up, not text (TMX 1.4b, "Content Markup").
_CODES = {"bpt", "ept", "it", "ph", "ut"}


def tmx_rows(path: Path, languages: tuple[str, str], prefix: str, left_out: Tally) -> Iterator[Row]:
    """Each source variant of a translation unit with each target variant, and its line.

    "en" means "EN", "en-US" and "en_GB" too. Entities that the file itself defines are never
    expanded, and nothing is fetched; a unit that uses one is left out.

    Raises:
        UserError: an unreadable file, XML that is not well-formed.
    """
    data = io.BytesIO(read_bytes(path, f"{prefix}tmx"))
    units = etree.iterparse(
        data, tag="{*}tu", resolve_entities=False, load_dtd=False, no_network=True
    )
    try:
        for _, unit in units:
            yield from _unit_rows(unit, str(path), languages, left_out)
            unit.clear()
            while unit.getprevious() is not None:  # or a million empty elements stay behind
                del unit.getparent()[0]
    except etree.XMLSyntaxError as error:
        faults = [(fault.line, fault.message) for fault in units.error_log]
        line, reason = faults[0] if faults else (1, error.msg)  # others follow from the first
        reason = " ".join(reason.split())
        raise UserError(f"{path}:{line}: not well-formed XML: {reason}") from None


def _unit_rows(
    unit: etree._Element, file: str, languages: tuple[str, str], left_out: Tally
) -> Iterator[Row]:
    line = unit.sourceline
    variants = [
        (variant.get(_LANG) or variant.get("lang") or "", _text(variant.find("{*}seg")))
        for variant in unit.iterchildren("{*}tuv")
    ]
    if next(unit.iter(etree.Entity), None) is not None:
        texts = [text for _, text in variants]
        left_out.add(Reason("entity", "an entity that is not expanded"), file, line, *texts)
        return
    sources, targets = (
        [text for code, text in variants if _matches(code, language)] for language in languages
    )
    found = (sources, targets)
    missing = [code for code, texts in zip(languages, found, strict=True) if not texts]
    if missing:
        codes = [code for code, _ in variants]
        reason = Reason("no-language", f"no {' and no '.join(missing)} in the unit")
        left_out.add(reason, file, line, *codes)
    for source in sources:
        for target in targets:
            yield line, source, target


@cache
def _matches(code: str, language: str) -> bool:
    code, language = (text.lower().replace("_", "-") for text in (code, language))
    return code == language or code.startswith(f"{language}-")


def _text(element: etree._Element | None) -> str:
    """The element's text, that of highlighted parts included, without mark-up."""
    if element is None:
        return ""
    parts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str) and etree.QName(child).localname not in _CODES:
            parts.append(_text(child))
        elif child.tag is etree.Entity:
            parts.append(child.text)
        parts.append(child.tail or "")
    return "".join(parts)
