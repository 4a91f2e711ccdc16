"""Read lines as they arrive, and write files atomically."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from tempfile import NamedTemporaryFile

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
    """Yield `lines` as one group, up to the first faulty line; then raise an error about it.

    The error counts and describes bytes as `translate.text.text_files` does for files.
    """
    texts: list[str] = []
    fault = ""
    for line in lines:
        if (nul := line.find(b"\0")) >= 0:
            fault = f"byte {nul + 1} is NUL: this is UTF-16 or not text"
            fault += "; convert it to UTF-8, or remove the line"
            break
        try:
            texts.append(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            fault = f"byte {error.start + 1} (0x{line[error.start]:02x}) is not UTF-8"
            fault += "; if it is Windows-1252: iconv -f CP1252 -t UTF-8 OLD > NEW"
            break
    if texts:
        yield texts
    if fault:
        raise UserError(f"standard input, line {first + len(texts)}: {fault}")


def check_writable(path: Path) -> None:
    """Refuse a path that cannot become a file, before a long computation.

    Raises:
        UserError: `path` is a folder or a read-only file, or a file cannot be created there.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG | stat.S_IWUSR  # as a new file
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    if stat.S_ISDIR(mode):
        raise UserError(f"cannot write {path}: it is a folder; give the name of a file")
    if stat.S_ISREG(mode):  # a device or a named pipe is not opened before it is written
        if not mode & 0o222:  # the system would let root write it
            raise UserError(f"cannot write {path}: the file is read-only")
        check_can_create(path)


def check_can_create(path: Path) -> None:
    """Create a temporary file beside `path` and remove it again.

    `os.access` does not tell whether a folder accepts files: it is wrong on network disks and for
    root, and knows nothing of a full disk.

    Raises:
        UserError: the folder does not exist or does not accept files, or the path is too long.
    """
    path = Path(os.path.realpath(path))
    try:
        if not path.parent.is_dir():
            raise UserError(f"cannot write {path}: there is no folder {path.parent}")
        with contextlib.suppress(FileNotFoundError):
            path.lstat()  # fails if the name is too long
        with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".partial") as file:
            file.write(b"\n")
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: Exception) -> UserError:
    return UserError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}")


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that it has either the whole new content or the old one, at any moment.

    The content is written to a partial file in the same folder, because a file can be renamed at
    once only within one file system. `fsync` puts the content on the disk before its new name.

    A symbolic link stays a link: its target is replaced. A device or a named pipe is not replaced:
    the content is written to it.

    Raises:
        WriteError: the file cannot be written; the old content is still there.
    """
    try:
        if path.exists() and not path.is_file():  # /dev/null must not be replaced by a file
            path.write_bytes(content)  # the target of /dev/stdout may be a pipe without a path
            return
        path = path.resolve()
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
