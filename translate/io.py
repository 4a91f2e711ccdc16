"""Lines in as they come, whole files out: the plumbing of `translate decode`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from translate.errors import UserError

_CHUNK = 1 << 16  # what a pipe holds on Linux


def waiting_lines(stream: BinaryIO) -> Iterator[list[str]]:
    r"""Groups of lines: each time all that have arrived, waiting only if there is none.

    So a writer that sends one line and waits has its answer at once, and a file comes in large
    groups. `read1` is what makes it so: it returns what is there instead of filling a buffer.

    Only "\n" separates lines; the last one need not end in it. Raises UserError with the number
    of a line that is not UTF-8 or holds a NUL byte, after the lines before it.
    """
    count = 0
    rest = b""
    while chunk := stream.read1(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield from _decoded(lines, count + 1)
            count += len(lines)
    if rest:
        yield from _decoded([rest], count + 1)


def _decoded(lines: list[bytes], first: int) -> Iterator[list[str]]:
    """All `lines` together; those before a faulty one, and then its fault."""
    texts: list[str] = []
    try:
        for number, line in enumerate(lines, first):
            texts.append(_text(line, number))
    except UserError:
        if texts:
            yield texts
        raise
    yield texts


def _text(line: bytes, number: int) -> str:
    if (nul := line.find(b"\0")) >= 0:
        raise UserError(
            f"standard input, line {number}: byte {nul + 1} is NUL, so this is UTF-16 or no text; "
            "convert it to UTF-8 or take the line out"
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"standard input, line {number}: byte {error.start + 1} is not UTF-8; "
            "convert the text to UTF-8"
        ) from None


def check_writable(path: Path) -> None:
    """Refuse what cannot become a file before hours of work go into it."""
    try:
        folder = path.is_dir()
    except OSError as error:  # a name that is too long
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    if folder:
        raise UserError(f"--output {path} is a folder: give the name of a file")
    if not path.resolve().parent.is_dir():
        raise UserError(f"--output {path}: there is no folder {path.resolve().parent}")


def write_atomically(path: Path, content: bytes) -> None:
    """Write so that `path` holds all of it or is as it was before."""
    path = path.resolve()
    try:
        if path.exists() and not path.is_file():  # /dev/null, a named pipe: not to be replaced
            path.write_bytes(content)
            return
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            partial.write_bytes(content)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
