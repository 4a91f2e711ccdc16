"""Read text files: decompress them, decode UTF-8, split them into lines."""

from __future__ import annotations

import lzma
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard

from translate.text.problems import DataError, Problem, ProblemLog, excerpt

# Limits, so that a file from a stranger cannot fill the memory. No real corpus comes near them.
MAX_LINE = 1_000_000  # characters
MAX_RATIO = 50  # unpacked size / packed size; ordinary text has 3 to 15
FREE_SIZE = 1 << 26  # unpacked bytes that are always allowed: 64 MiB
MAX_UNPACKED = 1 << 32  # unpacked bytes: 4 GiB
_WINDOW = 1 << 28  # memory for unpacking, in bytes: enough for xz -9 and zstd --long=28


def read_lines(path: str | Path, setting: str = "", log: ProblemLog | None = None) -> list[str]:
    r"""Read the lines of a UTF-8 text file, plain or compressed (see `read_bytes`).

    Only "\n" separates lines: a lone carriage return, U+0085 or U+2028 stays inside its line.
    A "\r" before "\n" and a byte order mark are removed; the last newline may be missing.

    Args:
        setting: see `read_bytes`.
        log: collects the problems of the file; by default a strict one. If it is not strict, a
            file with invalid bytes is read without them, so that further problems are found.

    Raises:
        DataError: see `read_bytes`; UTF-16, UTF-32. With a strict log also: bytes that are not
            UTF-8, a NUL byte, lines that end in CR alone, a line longer than `MAX_LINE`.
    """
    log = ProblemLog(strict=True) if log is None else log
    lines = _decode(read_bytes(path, setting), path, log).removeprefix("\ufeff").split("\n")
    if not lines[-1]:
        lines.pop()
    for index, line in enumerate(lines):
        if len(line) > MAX_LINE:
            what = f"a line of {len(line):,} characters; at most {MAX_LINE:,} are read"
            log.add(Problem("huge-line", str(path), index + 1, what=what, example=excerpt(line)))
            lines[index] = ""  # the other lines keep their numbers
    return [line.removesuffix("\r") for line in lines]


def read_bytes(path: str | Path, setting: str = "") -> bytes:
    """Read a plain, gzip, xz or zstandard file; its first bytes tell which, not its name.

    Args:
        path: "~" is the home folder.
        setting: the setting that names the file ("data.train.tsv"), for messages only.

    Raises:
        DataError: the file is missing, a folder, not readable, a broken or unsupported archive, or
            one that exceeds `MAX_RATIO` or `MAX_UNPACKED`.
    """
    place = Path(path).expanduser().absolute()
    try:
        data = place.read_bytes()
    except OSError as error:
        raise open_error(path, setting, error) from None
    for name, (magic, new_stream) in _COMPRESSED.items():
        if data.startswith(magic):
            limit = min(max(FREE_SIZE, MAX_RATIO * len(data)), MAX_UNPACKED)
            try:
                data = _decompress(data, new_stream, limit)
            except OverflowError:
                what = f"{place}: unpacks to more than {limit:,} bytes, "
                what += f"from {len(data):,}; unpack it yourself if you trust it"
                raise DataError(Problem("broken-archive", str(path), what=what)) from None
            except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
                what = f"{place}: broken {name} file ({error}); copy or download it again"
                raise DataError(Problem("broken-archive", str(path), what=what)) from None
            break
    for name, start_pattern in _UNSUPPORTED.items():
        if re.match(start_pattern, data, re.DOTALL):
            todo = "unpack it, or save it as text"
            if name in ("spreadsheet", "Microsoft Office file"):
                todo = "save a table as CSV (UTF-8), anything else as plain text"
            what = f"{place}: a {name}, not a text file; {todo}"
            raise DataError(Problem("other-archive", str(path), what=what))
    return data


def open_error(path: str | Path, setting: str, error: OSError) -> DataError:
    """Return an error that says why `path` cannot be opened, and which setting names it."""
    place = Path(path).expanduser().absolute()
    if isinstance(error, FileNotFoundError):
        kind, what = "missing-file", f"no such file: {place}"
    elif isinstance(error, IsADirectoryError):
        kind, what = "folder", f"a folder, not a file: {place}"
    else:
        kind, what = "unreadable", f"cannot read {place}: {error.strerror or error}"
    in_config = "." in setting or setting.startswith("--")  # "tsv" without a section is no setting
    return DataError(Problem(kind, str(path), what=f"{what}; set {setting}" if in_config else what))


# Compressed files

# Bytes that are unpacked at a time. Zstandard can turn 4 bytes into 128 KiB.
_CHUNK = 1 << 12

# Name: the first bytes, and a function that returns a decompressor of one stream.
_COMPRESSED: dict[str, tuple[bytes | tuple[bytes, ...], Callable[[], Any]]] = {
    "gzip": (b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31)),
    "xz": (b"\xfd7zXZ\0", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_WINDOW)),
    "zstandard": (
        (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"),  # the second is from pzstd
        lambda: zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj(),
    ),
}
# Name: a regular expression for the first bytes.
_UNSUPPORTED = {
    "tar archive": b".{257}ustar",
    "bzip2 file": b"BZh[1-9]1AY&SY",
    "spreadsheet": rb"PK\x03\x04.*(xl/workbook|opendocument\.spreadsheet)",  # .xlsx, .ods
    "Microsoft Office file": rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",  # .xls
    "ZIP archive or office document": b"PK\3\4",
    "7z archive": b"7z\xbc\xaf\x27\x1c",
}


def _decompress(data: bytes, new_stream: Callable[[], Any], limit: int) -> bytes:
    """Decompress all streams of `data`, one after the other.

    This loop is needed because `lzma.decompress` and others ignore a damaged stream after the
    first one. Chunks are needed because `unused_data` copies everything that follows a stream, and
    because a small file can unpack to gigabytes.

    Raises:
        OverflowError: more than `limit` bytes.
        EOFError: the last stream is not complete.
    """
    parts = []
    size = 0
    stream = new_stream()
    for start in range(0, len(data), _CHUNK):
        chunk = data[start : start + _CHUNK]
        # Between streams there may be padding.
        while chunk := chunk.lstrip(b"\0") if stream.eof else chunk:
            stream = new_stream() if stream.eof else stream
            parts.append(stream.decompress(chunk))
            size += len(parts[-1])
            if size > limit:
                raise OverflowError
            chunk = stream.unused_data if stream.eof else b""
    if not stream.eof:
        raise EOFError("the last stream is not complete")
    return b"".join(parts)


# UTF-8

# UTF-32 comes first, because its mark begins with that of UTF-16.
_BYTE_ORDER_MARKS = {
    "utf-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff"),
    "utf-16": (b"\xff\xfe", b"\xfe\xff"),
}


def _decode(data: bytes, path: str | Path, log: ProblemLog) -> str:
    """Decode UTF-8, leaving out invalid bytes; add problems to `log`.

    Raises:
        DataError: UTF-16 or UTF-32: no line can be read.
    """

    def problem(kind: str, offset: int, what: str = "", count: int = 1) -> Problem:
        """Return a problem at an offset; `what` follows the number of the byte in its line."""
        line = data.count(b"\n", 0, offset) + 1
        byte = offset - data.rfind(b"\n", 0, offset)  # counted from 1
        return Problem(kind, str(path), line, what and f"byte {byte} {what}", count=count)

    for encoding, marks in _BYTE_ORDER_MARKS.items():
        if data.startswith(marks):
            what = f"this is {encoding.upper()}, not UTF-8"
            raise DataError(Problem(encoding, str(path), 1, what))
    if data.startswith(b"\xef\xbb\xbf"):
        log.add(problem("byte-order-mark", 0))
    if (offset := data.find(b"\0")) >= 0:
        count = sum(b"\0" in line for line in data.split(b"\n"))
        nul = problem("nul-byte", offset, "is NUL: this is UTF-16 or not text", count)
        if 4 * data.count(b"\0") > len(data):  # UTF-16 without a byte order mark
            raise DataError(nul)
        log.add(nul)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", errors="ignore")
        pairs = zip(data.split(b"\n"), text.split("\n"), strict=True)
        count = sum(valid.encode() != original for original, valid in pairs)
        what = f"(0x{data[error.start]:02x}) is not UTF-8"
        log.add(problem("not-utf-8", error.start, what, count))
    newlines, windows = data.count(b"\n"), data.count(b"\r\n")
    if 0 < windows < newlines:
        rarer = rb"\r\n" if windows * 2 <= newlines else rb"(?<!\r)\n"
        offset = next(re.finditer(rarer, data)).start()
        log.add(problem("mixed-line-ends", offset, count=min(windows, newlines - windows)))
    if data.count(b"\r") - windows > newlines:
        what = "lines end in CR alone, so the whole file would be one line"
        log.add(Problem("cr-line-ends", str(path), 1, what))
    return text
