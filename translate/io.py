"""Read lines as they arrive, and write files atomically."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

from translate.errors import UserError, WriteError

_CHUNK = 1 << 16  # bytes; the capacity of a pipe on Linux


def available_lines(stream: BufferedIOBase) -> Iterator[list[str]]:
    r"""Yield groups of lines: all lines that have arrived, waiting only if there are none.

    A program that writes one line and waits gets its answer at once, and the lines of a file come
    in large groups. `read1` makes this possible: it returns the bytes that have arrived, whereas
    `read` waits until its buffer is full.

    Only "\n" separates lines. The last line need not end in "\n".

    Raises:
        UserError: a line that is not UTF-8 or contains a NUL byte; raised after the lines before
            it have been yielded.
    """
    count = 0
    rest = b""
    while chunk := stream.read1(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from _decode(lines, count + 1)
        count += len(lines)
    if rest:
        yield from _decode([rest], count + 1)


def _decode(lines: list[bytes], first: int) -> Iterator[list[str]]:
    """Yield `lines` as one group, up to the first faulty line; then raise an error about it."""
    texts: list[str] = []
    fault = ""
    for line in lines:
        if (nul := line.find(b"\0")) >= 0:
            what = "the input is UTF-16 or not text: convert it to UTF-8, or remove the line"
            fault = f"byte {nul + 1} is NUL; {what}"
            break
        try:
            texts.append(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            fault = f"byte {error.start + 1} is not UTF-8; convert the text to UTF-8"
            break
    if texts:
        yield texts
    if fault:
        raise UserError(f"standard input, line {first + len(texts)}: {fault}")


def check_writable(path: Path) -> None:
    """Refuse a path that cannot become a file, before a long computation.

    Raises:
        UserError: `path` is a folder, its folder does not exist, or its name is too long.
    """
    folder = path.resolve().parent
    try:
        if path.is_dir():
            raise UserError(f"cannot write {path}: it is a folder; give the name of a file")
        if not folder.is_dir():
            raise UserError(f"cannot write {path}: there is no folder {folder}")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that it has either the whole new content or the old one, at any moment.

    The content is written to a partial file in the same folder, because a file can be renamed at
    once only within one file system. `fsync` puts the content on the disk before its new name.

    A symbolic link stays a link: its target is replaced. A device or a named pipe is not replaced:
    the content is written to it.

    Raises:
        WriteError: the file cannot be written; the old content is still there.
    """
    path = path.resolve()
    try:
        if path.exists() and not path.is_file():  # /dev/null must not be replaced by a file
            path.write_bytes(content)
            return
        partial = path.with_name(f".{os.getpid()}.partial")  # short, however long the name is
        try:
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from None
    with contextlib.suppress(OSError):  # Windows and some network disks cannot do this
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def remove_partial_files(folder: Path) -> None:
    """Remove what killed processes left of files that they were writing with `write_atomically`."""
    for partial in folder.glob(".*.partial"):
        with contextlib.suppress(OSError):
            partial.unlink()
