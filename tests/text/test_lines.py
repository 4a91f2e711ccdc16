"""Line n stays line n, and what cannot be read is refused with its place."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from translate.errors import UserError
from translate.text.faults import Findings
from translate.text.lines import read_lines


@pytest.fixture
def write(tmp_path):
    """Write bytes or text to a file and return its path."""

    def _write(data: bytes | str, name: str = "a.en"):
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return _write


def refusal(path, setting: str = "") -> str:
    with pytest.raises(UserError) as caught:
        read_lines(path, setting)
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


def test_a_missing_last_newline_and_an_empty_file_are_no_matter(write):  # D15
    assert read_lines(write("one\ntwo")) == ["one", "two"]
    assert read_lines(write("one\ntwo\n\n")) == ["one", "two", ""]
    assert read_lines(write("")) == []


def test_a_byte_order_mark_does_not_stick_to_the_first_word(write):  # D06
    assert read_lines(write(b"\xef\xbb\xbfHallo\n")) == ["Hallo"]


@pytest.mark.parametrize("name", ["train.en.gz", "train.txt"])
def test_gzip_is_known_by_its_content_not_its_name(write, name):  # D16
    assert read_lines(write(gzip.compress("Grüße\nzwei\n".encode()), name)) == ["Grüße", "zwei"]


def test_a_plain_file_named_gz_is_read_as_it_is(write):  # D16
    assert read_lines(write("Grüße\n", "train.en.gz")) == ["Grüße"]


@pytest.mark.parametrize("keep", [5, 15, 30])
def test_a_truncated_gzip_file_is_refused_by_name(write, keep):  # D16
    packed = gzip.compress(bytes(range(1, 128)) * 50)
    message = refusal(write(packed[:keep], "train.en.gz"))
    assert "train.en.gz" in message
    assert "gzip" in message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_refused_with_line_and_byte_offset(write, encoding):  # D07
    message = refusal(write("Hallo\nGrüße\n".encode(encoding), "a.de"))
    assert "a.de:1: byte offset" in message
    assert "UTF-16" in message


def test_windows_1252_is_refused_with_line_and_byte_offset_and_what_to_do(write):  # D07
    message = refusal(write("Hallo\nGrüße\n".encode("cp1252"), "a.de"))
    assert "a.de:2: byte offset 8: 0xfc" in message
    assert "iconv" in message


def test_a_null_byte_is_refused_with_its_line(write):  # S14
    assert "a.en:3: byte offset 8" in refusal(write("one\ntwo\n\0three\n"))


def test_lines_that_all_end_in_a_carriage_return_are_refused(write):  # D05
    message = refusal(write("one\rtwo\rthree\r"))
    assert message.endswith("would be one; convert the file: tr '\\r' '\\n' < OLD > NEW")


def test_a_check_reads_on_and_notes_every_fault(write):
    path = write(b"\xef\xbb\xbfone\r\nt\xfcwo\nth\0ree\n\xff\0\n")
    findings = Findings(strict=False)
    assert read_lines(path, "", findings) == ["one", "two", "th\0ree", "\0"]
    places = {fault.kind: (fault.line, fault.count) for fault in findings}
    assert places == {
        "byte-order-mark": (1, 1),
        "not-utf-8": (2, 2),
        "nul-byte": (3, 2),
        "mixed-line-ends": (1, 1),
    }


def test_a_missing_file_is_named_in_full_with_the_setting_to_change(tmp_path, monkeypatch):  # D18
    monkeypatch.chdir(tmp_path)
    message = refusal("data/val.de", "data.valid.target")
    assert str(tmp_path / "data" / "val.de") in message
    assert "data.valid.target" in message


def test_a_folder_is_refused_in_one_line(tmp_path):  # D09
    assert "a folder, not a file" in refusal(tmp_path)


def test_the_locale_changes_nothing(write):  # D08
    path = write("Größe\n", "ü.de")
    code = "import sys; from translate.text.lines import read_lines; "
    code += "print(ascii(read_lines(sys.argv[1])))"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONIOENCODING"}
    environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ascii(["Größe"])
