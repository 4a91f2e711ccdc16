"""Records with named fields to rows: JSON lines, Parquet, datasets of the Hugging Face hub."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from translate.errors import UserError
from translate.text.faults import DataError, Fault
from translate.text.filters import Reason, Tally
from translate.text.formats import Row
from translate.text.lines import read_lines

# What an escape such as "\\u0000" brings in and no UTF-8 text file holds: NUL, half a character.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def json_rows(path: Path, fields: tuple[str, str], prefix: str, left_out: Tally) -> Iterator[Row]:
    """One JSON object a line; a blank line is a blank pair.

    Raises:
        UserError: an unreadable file, a line that is no JSON object.
    """
    records = enumerate(read_lines(path, f"{prefix}jsonl", left_out.findings), 1)
    parsed = ((number, _parsed(line, path, number)) for number, line in records)
    return _rows(parsed, str(path), fields, left_out)


def _parsed(line: str, path: Path, number: int) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = str(error)
    else:
        if isinstance(record, dict):
            return record
        reason = f"a {type(record).__name__}"
    what = f"expected one JSON object on each line ({reason})"
    todo = "mend the line"
    if line.lstrip().startswith("["):
        todo = "an array becomes such lines with: jq -c '.[]' OLD > NEW"
    raise DataError(Fault("broken-format", str(path), number, what=what, todo=todo))


def parquet_rows(
    path: Path, fields: tuple[str, str], prefix: str, left_out: Tally
) -> Iterator[Row]:
    """The rows of a Parquet file, read with the `datasets` library.

    Raises:
        UserError: the library is not installed, an unreadable file.
    """
    place = Path(path).expanduser().absolute()
    if not place.is_file():
        what = f"no such file: {place}" + (f"; set {prefix}parquet" if prefix else "")
        raise DataError(Fault("missing-file", str(place), what=what))
    # Streamed, or the library would first copy the file to its cache.
    settings = {"data_files": str(place), "split": "train", "streaming": True}
    records = _loaded(str(place), f"{prefix}parquet", "parquet", **settings)
    return _rows(records, str(path), fields, left_out)


def hub_rows(
    name: str, subset: str | None, split: str, fields: tuple[str, str], prefix: str, left_out: Tally
) -> Iterator[Row]:
    """The rows of a dataset of the Hugging Face hub, downloaded once into its library's cache.

    Raises:
        UserError: the library is not installed, no such dataset, no network.
    """
    records = _loaded(name, f"{prefix}hub", name, subset, split=split)
    return _rows(records, name, fields, left_out)


def _loaded(
    what: str, setting: str, *args: str | None, **settings: Any
) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        import datasets
    except ImportError:
        raise UserError(f"{setting} needs the datasets library: pip install datasets") from None
    logging.getLogger("datasets").setLevel(logging.CRITICAL)  # faults are told below
    datasets.disable_progress_bars()
    try:
        yield from enumerate(datasets.load_dataset(*args, **settings), 1)
    except Exception as error:  # the library and those below it raise dozens of kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"cannot read {what}: {reason}; set {setting}") from None


def _rows(
    records: Iterable[tuple[int, dict[str, Any] | None]],
    file: str,
    fields: tuple[str, str],
    left_out: Tally,
) -> Iterator[Row]:
    for number, record in records:
        if record is None:
            yield number, "", ""
            continue
        texts = [_field(record, key) for key in fields]
        faults = filter(None, map(_fault, texts, fields))
        if fault := next(faults, None):
            left_out.add(fault, file, number, json.dumps(record, ensure_ascii=False, default=str))
        else:
            yield number, *texts


def _field(record: Any, key: str) -> Any:
    """The value under `key`; "translation.en" is "en" within "translation"."""
    for part in key.split("."):
        record = record.get(part) if isinstance(record, dict) else None
    return record


def _fault(text: Any, key: str) -> Reason | None:
    if not isinstance(text, str):
        return Reason("no-field", f"no text under {key}")
    if _NO_TEXT.search(text):
        return Reason("no-text", "a NUL or half a character")
    return None
