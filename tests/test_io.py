"""Lines in as they come, whole files out."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest

from translate.errors import UserError
from translate.io import check_writable, waiting_lines, write_atomically


def test_only_newlines_separate_lines_and_the_last_needs_none():
    text = "a\r\n\n\u0085b\u2028c\x0bd\re\nlast"
    assert list(waiting_lines(io.BytesIO(text.encode()))) == [
        ["a\r", "", "\u0085b\u2028c\x0bd\re"],
        ["last"],
    ]
    assert list(waiting_lines(io.BytesIO(b""))) == []
    assert list(waiting_lines(io.BytesIO(b"\n"))) == [[""]]


# G11
def test_what_has_arrived_is_handed_on_before_more_is_asked_for():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as writer:
        groups = waiting_lines(stream)
        writer.write(b"eins\nzw")
        assert next(groups) == ["eins"]
        writer.write("ölf\ndrei\nvier\n".encode())
        assert next(groups) == ["zwölf", "drei", "vier"]
        writer.write("f\u00fcnf".encode()[:2])
        writer.close()
        with pytest.raises(UserError, match="line 5: byte 2 is not UTF-8"):
            next(groups)


@pytest.mark.parametrize("fault", [b"z\xff", b"z\0"])
def test_the_lines_before_a_faulty_one_are_not_lost(fault):
    groups = waiting_lines(io.BytesIO(b"eins\nzwei\n" + fault + b"\nvier\n"))
    assert next(groups) == ["eins", "zwei"]
    with pytest.raises(UserError, match="line 3: byte 2 is"):
        next(groups)


def test_a_character_cut_in_two_by_a_chunk_is_whole():
    text = ("ä" * 30_001 + "\n") * 5
    lines = [line for group in waiting_lines(io.BytesIO(text.encode())) for line in group]
    assert lines == ["ä" * 30_001] * 5


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_text("before")

    def full(self: Path, content: bytes) -> None:
        with self.open("wb") as file:
            file.write(content[:2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(UserError, match="No space left"):
        patched.setattr(Path, "write_bytes", full)
        write_atomically(path, b"half\n")
    assert path.read_text() == "before"
    write_atomically(path, "Tür\n\n".encode())
    assert path.read_bytes() == "Tür\n\n".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    real = tmp_path / "real.txt"
    link = tmp_path / "link.txt"
    link.symlink_to(real)
    write_atomically(link, b"x\n")
    assert link.is_symlink() and real.read_text() == "x\n"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"y\n")
    assert os.read(reading, 10) == b"y\n"
    os.close(reading)
    assert pipe.is_fifo()


def test_what_cannot_be_written_is_refused_at_the_start(tmp_path):
    check_writable(tmp_path / "new.txt")
    with pytest.raises(UserError, match="is a folder"):
        check_writable(tmp_path)
    with pytest.raises(UserError, match="there is no folder"):
        check_writable(tmp_path / "none" / "new.txt")


def test_a_nul_byte_is_refused_with_its_line():
    with pytest.raises(UserError, match="line 2: byte 2 is NUL"):
        list(waiting_lines(io.BytesIO(b"one\nt\0wo\n")))
