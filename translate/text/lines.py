"""The lines of a text file, read the one way in which line n stays line n."""

from __future__ import annotations

import re
from pathlib import Path

from translate.text.faults import Fault, Findings
from translate.text.files import read_bytes


def read_lines(path: str | Path, setting: str = "", findings: Findings | None = None) -> list[str]:
    r"""Read the lines of a UTF-8 text file, plain or compressed (see `files.read_bytes`).

    Only "\n" separates lines: a lone carriage return, U+0085 or U+2028 stays inside its line. One
    "\r" before "\n" and a byte order mark are taken off; a missing last newline is no matter.

    With `findings` that are not strict, what is wrong is noted there and the lines are read as
    well as can be, so that further faults are found.

    Raises:
        UserError: unreadable (`read_bytes`), not UTF-8, a NUL byte; with file and line.
    """
    lines = decode(read_bytes(path, setting), path, findings).removeprefix("\ufeff").split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def decode(data: bytes, path: str | Path, findings: Findings | None = None) -> str:
    """UTF-8 to text; what the bytes show to be wrong goes to `findings`, strict if not given.

    Raises:
        DataError: an unsafe fault, with file, line and byte offset.
    """
    findings = Findings(strict=True) if findings is None else findings

    def found(kind: str, offset: int, **more) -> None:
        findings.add(Fault(kind, str(path), data.count(b"\n", 0, offset) + 1, **more))

    for kind, marks in _WIDE.items():
        if data.startswith(marks):
            found(kind, 0, what=f"byte offset 0: this is {kind.upper()}, not UTF-8")
            return data.decode(kind, errors="ignore")
    if data.startswith(b"\xef\xbb\xbf"):
        found("byte-order-mark", 0)
    if (offset := data.find(b"\0")) >= 0:
        what = f"byte offset {offset}: a NUL byte, so this is UTF-16 or no text file"
        found("nul-byte", offset, what=what, count=_lines_with(b"\0", data))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", errors="ignore")
        what = f"byte offset {error.start}: 0x{data[error.start]:02x} is not UTF-8"
        found("not-utf-8", error.start, what=what, count=_broken_lines(data))
    newlines, windows = data.count(b"\n"), data.count(b"\r\n")
    if 0 < windows < newlines:
        rarer = rb"\r\n" if windows * 2 <= newlines else rb"(?<!\r)\n"
        offset = re.search(rarer, data).start()
        found("mixed-line-ends", offset, count=min(windows, newlines - windows))
    if data.count(b"\r") - windows > newlines:
        found("cr-line-ends", 0)
    return text


# By their byte order marks; that of UTF-32 begins like that of UTF-16.
_WIDE = {
    "utf-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff"),
    "utf-16": (b"\xff\xfe", b"\xfe\xff"),
}


def _lines_with(byte: bytes, data: bytes) -> int:
    return sum(byte in line for line in data.split(b"\n"))


def _broken_lines(data: bytes) -> int:
    count = 0
    for line in data.split(b"\n"):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            count += 1
    return count
