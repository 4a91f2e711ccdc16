"""Lines are read as they arrive; files are written completely or not at all."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from translate.errors import UserError
from translate.io import available_lines, check_writable, write_atomically


def test_only_newlines_separate_lines_and_the_last_line_needs_none():
    text = "a\r\n\n\u0085b\u2028c\x0bd\re\nlast"
    assert list(available_lines(io.BytesIO(text.encode()))) == [
        ["a\r", "", "\u0085b\u2028c\x0bd\re"],
        ["last"],
    ]
    assert list(available_lines(io.BytesIO(b""))) == []
    assert list(available_lines(io.BytesIO(b"\n"))) == [[""]]


# G11
def test_lines_that_have_arrived_are_yielded_before_more_is_read():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as writer:
        groups = available_lines(stream)
        writer.write(b"eins\nzw")
        assert next(groups) == ["eins"]
        writer.write("ölf\ndrei\nvier\n".encode())
        assert next(groups) == ["zwölf", "drei", "vier"]
        writer.write("f\u00fcnf".encode()[:2])
        writer.close()
        with pytest.raises(UserError, match=r"line 5: byte 2 \(0xc3\) is not UTF-8"):
            next(groups)


@pytest.mark.parametrize("fault", [b"z\xff", b"z\0"])
def test_the_lines_before_a_faulty_line_are_not_lost(fault):
    groups = available_lines(io.BytesIO(b"eins\nzwei\n" + fault + b"\nvier\n"))
    assert next(groups) == ["eins", "zwei"]
    with pytest.raises(UserError, match=r"line 3: byte 2 .*is"):
        next(groups)


def test_a_character_may_be_split_between_two_chunks():
    text = ("ä" * 30_001 + "\n") * 5
    lines = [line for group in available_lines(io.BytesIO(text.encode())) for line in group]
    assert lines == ["ä" * 30_001] * 5


def test_a_file_is_written_completely_or_not_at_all(tmp_path):
    resource = pytest.importorskip("resource")  # not on Windows
    path = tmp_path / "out.txt"
    path.write_text("before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2, limits[1]))
    try:
        with pytest.raises(UserError, match=r"cannot write .*out\.txt: "):
            write_atomically(path, b"too long\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "before"
    write_atomically(path, "Tür\n\n".encode())
    assert path.read_bytes() == "Tür\n\n".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


def test_a_link_stays_a_link_and_a_pipe_stays_a_pipe(tmp_path):
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


def test_a_pipe_without_a_path_can_be_written():
    reading, writing = os.pipe()
    path = Path(f"/dev/fd/{writing}")
    if not path.exists():
        pytest.skip("this system has no /dev/fd")
    check_writable(path)
    write_atomically(path, b"x\n")
    assert os.read(reading, 10) == b"x\n"
    os.close(reading)
    os.close(writing)


# F10
def test_a_path_that_cannot_become_a_file_is_refused_and_nothing_is_left_behind(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "locked.txt").write_text("kept")
    (tmp_path / "locked.txt").chmod(0o444)
    refused = {
        ".": "it is a folder",
        "none/new.txt": "there is no folder",
        "locked.txt/new.txt": "Not a directory",
        "locked.txt": "the file is read-only",
        "n" * 256: "name too long",
        "d/" * 2100 + "new.txt": "name too long",
        "loop": "symbolic links",
    }
    before = sorted(tmp_path.iterdir())
    for name, message in refused.items():
        with pytest.raises(UserError, match=f"(?s)^cannot write .*{message}"):
            check_writable(tmp_path / name)
    check_writable(tmp_path / "new.txt")
    check_writable(tmp_path / ("n" * 255))
    check_writable(Path(os.devnull))
    assert sorted(tmp_path.iterdir()) == before


# F10
def test_a_folder_is_tried_rather_than_believed(unprivileged):
    """`os.access` would say yes to each of these on some system."""
    locked = unprivileged / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(UserError, match="Permission denied"):
        check_writable(locked / "new.txt")
    locked.chmod(0o000)
    with pytest.raises(UserError, match="Permission denied"):
        check_writable(locked / "new.txt")
    locked.chmod(0o700)
    check_writable(locked / "new.txt")


# F10
def test_a_full_disk_is_noticed_before_the_work(tmp_path):
    resource = pytest.importorskip("resource")  # not on Windows
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(UserError, match=r"cannot write .*new\.txt: "):
            check_writable(tmp_path / "new.txt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_a_nul_byte_is_reported_with_its_line():
    with pytest.raises(UserError, match="line 2: byte 2 is NUL"):
        list(available_lines(io.BytesIO(b"one\nt\0wo\n")))


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path):
    path = tmp_path / ("n" * 255)
    write_atomically(path, b"text")
    assert path.read_bytes() == b"text"
    assert list(tmp_path.iterdir()) == [path]
