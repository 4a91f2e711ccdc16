"""The lines of a text file, read the one way in which line n stays line n."""

from __future__ import annotations

from pathlib import Path

from translate.errors import UserError
from translate.text.files import read_bytes


def read_lines(path: str | Path, setting: str = "") -> list[str]:
    r"""Read the lines of a UTF-8 text file, plain or compressed (see `files.read_bytes`).

    Only "\n" separates lines: a lone carriage return, U+0085 or U+2028 stays inside its line. One
    "\r" before "\n" and a byte order mark are taken off; a missing last newline is no matter.

    Raises:
        UserError: unreadable (`read_bytes`), not UTF-8, a NUL byte; with file and line.
    """
    data = read_bytes(path, setting)
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


def _line_of(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1
