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
        log: takes the problems of the file. If it is not strict, a damaged file is read as far as
            possible, so that further problems are found. Default: a strict one.

    Raises:
        DataError: see `read_bytes`; not UTF-8 or a NUL byte, with line and byte offset; a line of
            more than `MAX_LINE` characters.
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
    """Read a file that is plain, gzip, xz or zstandard, as its first bytes say (not its name).

    Args:
        path: "~" is the home folder.
        setting: the setting that names the file ("data.train.tsv"), for messages only.

    Raises:
        DataError: missing, a folder, no permission, a damaged or unsupported archive, or one that
            exceeds `MAX_RATIO` or `MAX_UNPACKED`.
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
    """Return the error that tells why `path` cannot be opened and which setting to change."""
    place = Path(path).expanduser().absolute()
    if isinstance(error, FileNotFoundError):
        kind, what = "missing-file", f"no such file: {place}"
    elif isinstance(error, IsADirectoryError):
        kind, what = "folder", f"a folder, not a file: {place}"
    else:
        kind, what = "unreadable", f"cannot read {place}: {error.strerror or error}"
    in_config = "." in setting or setting.startswith("--")  # "tsv" alone cannot be set
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

    `lzma.decompress` and others ignore a damaged stream after the first one. The data is passed in
    chunks, because `unused_data` is a copy of everything that follows a stream, and because a
    small file can unpack to gigabytes.

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

# Byte order marks. UTF-32 comes first, because its mark begins like that of UTF-16.
_WIDE = {
    "utf-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff"),
    "utf-16": (b"\xff\xfe", b"\xfe\xff"),
}


def _decode(data: bytes, path: str | Path, log: ProblemLog) -> str:
    """Decode UTF-8, leaving out invalid bytes; add problems to `log`."""

    def found(kind: str, offset: int, what: str = "", count: int = 1) -> None:
        line = data.count(b"\n", 0, offset) + 1
        what = f"byte offset {offset}: {what}" if what else ""
        log.add(Problem(kind, str(path), line, what=what, count=count))

    for encoding, marks in _WIDE.items():
        if data.startswith(marks):
            found(encoding, 0, f"this is {encoding.upper()}, not UTF-8")
            return data.decode(encoding, errors="ignore")
    if data.startswith(b"\xef\xbb\xbf"):
        found("byte-order-mark", 0)
    if (offset := data.find(b"\0")) >= 0:
        count = sum(b"\0" in line for line in data.split(b"\n"))
        found("nul-byte", offset, "a NUL byte: this is UTF-16 or not a text file", count)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", errors="ignore")
        lines = data.split(b"\n")
        count = sum(line.decode("utf-8", errors="ignore").encode() != line for line in lines)
        found("not-utf-8", error.start, f"0x{data[error.start]:02x} is not UTF-8", count)
    newlines, windows = data.count(b"\n"), data.count(b"\r\n")
    if 0 < windows < newlines:
        rarer = rb"\r\n" if windows * 2 <= newlines else rb"(?<!\r)\n"
        offset = next(re.finditer(rarer, data)).start()
        found("mixed-line-ends", offset, count=min(windows, newlines - windows))
    if data.count(b"\r") - windows > newlines:
        found("cr-line-ends", 0, "lines end in CR alone, so the whole file would be one line")
    return text
