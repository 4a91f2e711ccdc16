"""Rows of records with named fields: JSON lines, Parquet files and Hugging Face datasets.

A row is (line, source, target), with lines counted from 1. tables.py reads text files and tables,
tmx.py translation memories.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from translate.errors import UserError
from translate.text.problems import DataError, Problem, ProblemLog
from translate.text.text_files import open_error, read_lines

Rows = Iterator[tuple[int, str, str]]
Fields = tuple[str, str]
Record = dict[str, Any] | None

# JSON escapes such as "\\u0000" can produce NUL and lone surrogates, which are not text.
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")


def json_rows(path: Path, fields: Fields, setting: str, log: ProblemLog) -> Rows:
    """Yield the fields of one JSON object per line; a blank line is a blank row.

    Raises:
        DataError: an unreadable file, a line that is not a JSON object.
    """
    lines = enumerate(read_lines(path, setting, log), 1)
    records = (_parse_json(line, path, number) for number, line in lines)
    return _record_rows(records, str(path), fields, log)


def _parse_json(line: str, path: Path, number: int) -> Record:
    if not line.strip():
        return None
    try:
        record = json.loads(line)
        if isinstance(record, dict):
            return record
        reason = f"a {type(record).__name__}"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    todo = "fix the line"
    if line.lstrip().startswith("["):
        todo = "convert an array to such lines: jq -c '.[]' OLD > NEW"
    what = f"expected one JSON object per line ({reason})"
    raise DataError(Problem("broken-format", str(path), number, what=what, todo=todo))


def parquet_rows(path: Path, fields: Fields, setting: str, log: ProblemLog) -> Rows:
    """Yield the rows of a Parquet file, read with the `datasets` library.

    Raises:
        UserError: the library is not installed, an unreadable file.
    """
    place = Path(path).expanduser().absolute()
    if not place.is_file():
        raise open_error(path, setting, FileNotFoundError())
    # Without streaming, the library would first copy the file to its cache.
    options = {"data_files": str(place), "split": "train", "streaming": True}
    return _record_rows(_load(str(place), setting, "parquet", **options), str(path), fields, log)


def hub_rows(
    name: str, subset: str | None, split: str, fields: Fields, setting: str, log: ProblemLog
) -> Rows:
    """Yield the rows of a dataset on the Hugging Face hub; the library caches its download.

    Raises:
        UserError: the library is not installed, no such dataset, no network.
    """
    return _record_rows(_load(name, setting, name, subset, split=split), name, fields, log)


def _load(name: str, setting: str, *args: str | None, **options: Any) -> Iterator[Record]:
    try:
        import datasets
    except ImportError:
        raise UserError(f"{setting} needs the datasets library: pip install datasets") from None
    logging.getLogger("datasets").setLevel(logging.CRITICAL)  # its errors are reported below
    datasets.disable_progress_bars()
    try:
        yield from datasets.load_dataset(*args, **options)
    except Exception as error:  # of dozens of types, from many libraries
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"cannot read {name}: {reason}; set {setting}") from None


def _record_rows(records: Iterable[Record], file: str, fields: Fields, log: ProblemLog) -> Rows:
    """Yield the two fields of each record; None is a blank row."""
    for number, record in enumerate(records, 1):
        if record is None:
            yield number, "", ""
            continue
        source, target = (_field(record, name) for name in fields)
        if error := _field_error(source, fields[0]) or _field_error(target, fields[1]):
            text = json.dumps(record, ensure_ascii=False, default=str)
            log.leave_out(*error, file, number, text)
        else:
            yield number, source, target


def _field(record: Any, name: str) -> Any:
    """Return the value under `name`; "translation.en" is "en" within "translation"."""
    for key in name.split("."):
        record = record.get(key) if isinstance(record, dict) else None
    return record


def _field_error(text: Any, name: str) -> tuple[str, str] | None:
    if not isinstance(text, str):
        return "no-field", f"no text under {name}"
    return ("no-text", "a NUL or a lone surrogate") if _NOT_TEXT.search(text) else None
