"""A file is what its first bytes say, not what its name says."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pytest
import zstandard

from translate.errors import UserError
from translate.text.files import read_bytes

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
    assert message.startswith(f"{path}: broken {kind} file, copy it again (")
    assert "\n" not in message


def test_a_file_that_cannot_be_opened_is_named_in_full_with_what_to_set(
    tmp_path, monkeypatch
):  # D18
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
    assert str(caught.value) == f"{path}: a {what}, not text; unpack it, or save it as text"
