"""The lines of a text file, read the one way in which line n stays line n."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from translate.errors import UserError


def read_lines(path: str | Path, setting: str = "") -> list[str]:
    r"""Read the lines of a UTF-8 text file, plain or gzip whatever its name says.

    Only "\n" separates lines: a lone carriage return, U+0085 or U+2028 stays inside its line. One
    "\r" before "\n" and a byte order mark are taken off; a missing last newline is no matter.

    Raises:
        UserError: no such file, a folder, broken gzip, not UTF-8, a NUL byte; with file and line.
    """
    data = _read_bytes(path, setting)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(
            f"{path}:1: byte offset 0: this is UTF-16, not UTF-8; "
            "convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW"
        )
    if (offset := data.find(b"\0")) >= 0:
        raise UserError(
            f"{path}:{_line_of(data, offset)}: byte offset {offset}: a NUL byte, so this is UTF-16 "
            "or no text file; convert it to UTF-8 or take the line out"
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}:{_line_of(data, error.start)}: byte offset {error.start}: "
            f"0x{data[error.start]:02x} is not UTF-8; if the file is Windows-1252, convert it: "
            "iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"
        ) from None
    lines = text.removeprefix("\ufeff").split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _read_bytes(path: str | Path, setting: str) -> bytes:
    place = Path(path).expanduser().absolute()
    hint = f"; set {setting}" if setting else ""
    try:
        data = place.read_bytes()
    except FileNotFoundError:
        raise UserError(f"no such file: {place}{hint}") from None
    except IsADirectoryError:
        raise UserError(f"a folder, not a file: {place}{hint}") from None
    except OSError as error:
        raise UserError(f"cannot read {place}: {error.strerror or error}{hint}") from None
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise UserError(f"{place}: broken gzip file, copy it again ({error})") from None


def _line_of(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1
