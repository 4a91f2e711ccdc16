"""Line n stays line n, and a message about an unreadable file says where the fault is."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import subprocess
import sys
import zipfile

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from translate.errors import UserError
from translate.io import available_lines
from translate.text.problems import ProblemLog
from translate.text.text_files import FREE_SIZE, MAX_LINE, read_bytes, read_lines

# Lines


@pytest.fixture
def write(tmp_path):
    """Write bytes or text to a file and return its path."""

    def _write(data: bytes | str, name: str = "a.en"):
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return _write


def refusal(path) -> str:
    with pytest.raises(UserError) as caught:
        read_lines(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


@settings(max_examples=25)
@given(lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\ufeff"))))
def test_what_is_written_line_by_line_is_read_line_by_line(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "a.en"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    assert read_lines(path) == lines


@pytest.mark.parametrize("inside", ["\r", "\u0085", "\u2028", "\u2029", "\v", "\f", "\x1c"])
def test_only_a_newline_separates_lines(write, inside):  # D05
    assert read_lines(write(f"one\ntw{inside}o\nthree\n")) == ["one", f"tw{inside}o", "three"]


def test_windows_line_ends_leave_no_carriage_return(write):  # D05
    assert read_lines(write("one\r\ntwo\r\n")) == ["one", "two"]


def test_a_missing_last_newline_and_an_empty_file_are_read(write):  # D15
    assert read_lines(write("one\ntwo")) == ["one", "two"]
    assert read_lines(write("one\ntwo\n\n")) == ["one", "two", ""]
    assert read_lines(write("")) == []


def test_a_byte_order_mark_does_not_stick_to_the_first_word(write):  # D06
    assert read_lines(write(b"\xef\xbb\xbfHallo\n")) == ["Hallo"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_refused_with_line_and_byte_offset(write, encoding):  # D07
    path = write("Hallo\nGrüße\n".encode(encoding), "a.de")
    message = refusal(path)
    assert re.search(r"a\.de:1: (this is UTF-16|byte [12] is NUL: this is UTF-16)", message)
    log = ProblemLog(strict=False)  # no line is read, so no line has further problems
    with pytest.raises(UserError):
        read_lines(path, log=log)
    assert list(log) == []


def test_windows_1252_is_refused_with_line_and_byte_offset_and_what_to_do(write):  # D07
    message = refusal(write("Hallo\nGrüße\n".encode("cp1252"), "a.de"))
    assert "a.de:2: byte 3 (0xfc) is not UTF-8; " in message
    assert "iconv" in message


def test_a_null_byte_is_refused_with_its_line(write):  # S14
    assert "a.en:3: byte 2 is NUL" in refusal(write("one\ntwo\nt\0hree\n"))


@pytest.mark.parametrize("data", [b"one\nt\xfcwo\n", "Größe".encode() + b"\n\nt\0wo"])
def test_files_and_standard_input_describe_a_faulty_byte_alike(write, data):
    with pytest.raises(UserError) as caught:
        list(available_lines(io.BytesIO(data)))
    path = write(data)
    assert str(caught.value).replace("standard input, line ", f"{path}:") == refusal(path)


def test_lines_that_all_end_in_a_carriage_return_are_refused(write):  # D05
    message = refusal(write("one\rtwo\rthree\r"))
    assert message.endswith("would be one line; convert the file: tr '\\r' '\\n' < OLD > NEW")


def test_a_log_that_is_not_strict_gets_every_problem_and_the_lines_are_read(write):
    path = write(b"\xef\xbb\xbfone\r\nt\xfcwo\nth\0ree\n\xff\0\n")
    log = ProblemLog(strict=False)
    assert read_lines(path, log=log) == ["one", "two", "th\0ree", "\0"]
    places = {problem.kind: (problem.line, problem.count) for problem in log}
    assert places == {
        "byte-order-mark": (1, 1),
        "not-utf-8": (2, 2),
        "nul-byte": (3, 2),
        "mixed-line-ends": (1, 1),
    }


def test_the_locale_changes_nothing(write):  # D08
    path = write("Größe\n", "ü.de")
    code = "import sys; from translate.text.text_files import read_lines; "
    code += "print(ascii(read_lines(sys.argv[1])))"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONIOENCODING"}
    environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ascii(["Größe"])


# Compressed files

COMPRESS = {"gzip": gzip.compress, "xz": lzma.compress, "zstandard": zstandard.compress}
TEXT = "".join(f"{n}: Grüße aus Köln {n * n}\n" for n in range(1000)).encode()


@pytest.fixture(params=COMPRESS)
def kind(request) -> str:
    return request.param


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.xz", "a.zst"])
def test_a_compressed_file_is_read_whatever_its_name(tmp_path, kind, name):  # D16
    path = tmp_path / name
    path.write_bytes(COMPRESS[kind](TEXT))
    assert read_bytes(path) == TEXT


@pytest.mark.parametrize("name", ["a.gz", "a.xz", "a.zst"])
def test_a_plain_file_is_read_as_it_is_whatever_its_name(tmp_path, name):  # D16
    path = tmp_path / name
    path.write_bytes(TEXT)
    assert read_bytes(path) == TEXT


def test_files_compressed_one_after_the_other_are_all_read(tmp_path, kind):
    path = tmp_path / "a"
    path.write_bytes(COMPRESS[kind](b"one\n") + COMPRESS[kind](b"") + COMPRESS[kind](b"two\n"))
    assert read_bytes(path) == b"one\ntwo\n"


@pytest.mark.parametrize("left", [9, 100, -1])
def test_a_truncated_file_is_refused_in_one_line(tmp_path, kind, left):  # D16
    path = tmp_path / "train.en"
    path.write_bytes(COMPRESS[kind](TEXT)[:left])
    with pytest.raises(UserError) as caught:
        read_bytes(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: broken {kind} file (")
    assert message.endswith("; copy or download it again")
    assert "\n" not in message


def test_a_file_that_cannot_be_opened_is_named_in_full_with_what_to_set(
    tmp_path, monkeypatch
):  # D09 D18
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        read_bytes("no/such.en", "data.train.source")
    assert str(caught.value) == f"no such file: {tmp_path}/no/such.en; set data.train.source"
    with pytest.raises(UserError) as caught:
        read_bytes(".", "data.train.source")
    assert str(caught.value) == f"a folder, not a file: {tmp_path}; set data.train.source"


def test_a_broken_file_after_a_whole_one_is_not_left_out(tmp_path, kind):
    path = tmp_path / "a"
    second = bytearray(COMPRESS[kind](TEXT))
    second[20:-20] = b"\xff" * (len(second) - 40)
    path.write_bytes(COMPRESS[kind](TEXT) + second)
    with pytest.raises(UserError, match=f"broken {kind} file"):
        read_bytes(path)
    path.write_bytes(COMPRESS[kind](TEXT) + b"rubbish")
    with pytest.raises(UserError, match=f"broken {kind} file"):
        read_bytes(path)


def test_zstandard_files_of_pzstd_and_with_a_long_window_are_read(tmp_path):
    path = tmp_path / "a.zst"
    path.write_bytes(b"\x50\x2a\x4d\x18\x04\0\0\0size" + zstandard.compress(TEXT))
    assert read_bytes(path) == TEXT
    settings = zstandard.ZstdCompressionParameters(window_log=28)
    stream = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    path.write_bytes(stream.compress(TEXT) + stream.flush())
    assert read_bytes(path) == TEXT


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (bz2.compress(TEXT), "bzip2 file"),
        (b"PK\3\4\x14\0", "ZIP archive or office document"),
        (b"7z\xbc\xaf\x27\x1c\0\4", "7z archive"),
    ],
)
def test_other_archives_are_named_with_what_to_do(tmp_path, data, what):
    path = tmp_path / "deu-eng.tsv"
    path.write_bytes(data)
    with pytest.raises(UserError) as caught:
        read_bytes(path)
    assert str(caught.value) == f"{path}: a {what}, not a text file; unpack it, or save it as text"


# Limits


def bomb(kind: str, size: int) -> bytes:
    """A small file that unpacks to `size` bytes."""
    return COMPRESS[kind](bytes(size))


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_file_that_unpacks_to_far_more_is_refused(tmp_path, kind):  # F05
    path = tmp_path / "a"
    path.write_bytes(bomb(kind, FREE_SIZE))
    assert len(read_bytes(path)) == FREE_SIZE
    path.write_bytes(bomb(kind, FREE_SIZE + 1))
    with pytest.raises(UserError, match=f"unpacks to more than {FREE_SIZE:,} bytes, from "):
        read_bytes(path)


@pytest.mark.parametrize("kind", COMPRESS)
def test_ordinary_text_may_unpack_to_more_than_that(tmp_path, kind, monkeypatch):  # F05
    monkeypatch.setattr("translate.text.text_files.FREE_SIZE", 1000)
    text = "".join(f"Sentence number {number * 7919}.\n" for number in range(2000)).encode()
    path = tmp_path / "a"
    path.write_bytes(COMPRESS[kind](text))
    assert read_bytes(path) == text


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@pytest.mark.parametrize("kind", COMPRESS)
def test_a_bomb_takes_little_memory(tmp_path, kind):  # F05
    path = tmp_path / "a"
    path.write_bytes(bomb(kind, 1 << 30))
    code = f"""
import resource
from translate.text.text_files import read_bytes
resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
try:
    read_bytes({str(path)!r})
except Exception as error:
    print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "DataError\n"


def test_an_archive_that_needs_much_memory_is_refused(tmp_path):  # F05
    path = tmp_path / "a.zst"
    settings = zstandard.ZstdCompressionParameters(window_log=31)
    stream = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    path.write_bytes(stream.compress(TEXT) + stream.flush())
    with pytest.raises(UserError, match="broken zstandard file"):
        read_bytes(path)


def test_a_line_of_a_million_characters_is_read_and_a_longer_one_is_not(write):  # F05
    assert read_lines(write("a" * MAX_LINE + "\nb\n")) == ["a" * MAX_LINE, "b"]
    path = write("b\n" + "a" * (MAX_LINE + 1) + "\n")
    assert refusal(path).startswith(f"{path}:2: a line of 1,000,001 characters")
    log = ProblemLog(strict=False)
    assert read_lines(path, log=log) == ["b", ""]
    assert [problem.kind for problem in log] == ["huge-line"]


@pytest.mark.parametrize("name", ["xl/workbook.xml", "META-INF/opendocument.spreadsheet"])
def test_a_spreadsheet_is_named_as_such(tmp_path, name):  # F14
    path = tmp_path / "a.tsv"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "x")
        archive.writestr(name, "x")
    with pytest.raises(UserError, match=r"a spreadsheet, not a text file; save .* CSV \(UTF-8\)"):
        read_bytes(path)
