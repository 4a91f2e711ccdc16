"""The bytes of a file, plain or compressed: where every file of text is opened."""

from __future__ import annotations

import gzip
import lzma
import zlib
from pathlib import Path

import zstandard

from translate.text.faults import DataError, Fault


def read_bytes(path: str | Path, setting: str = "") -> bytes:
    """Read a file, plain, gzip, xz or zstandard: the first bytes decide, not the name.

    Args:
        path: "~" is the home folder.
        setting: what to set where the file cannot be read ("data.train.tsv"), for messages only.

    Raises:
        DataError: no such file, a folder, no permission, a broken or truncated archive, one of
            another kind.
    """
    place = Path(path).expanduser().absolute()
    in_config = "." in setting or setting.startswith("--")  # "tsv" alone cannot be set
    hint = f"; set {setting}" if in_config else ""
    try:
        data = place.read_bytes()
    except FileNotFoundError:
        raise DataError(
            Fault("missing-file", str(path), what=f"no such file: {place}{hint}")
        ) from None
    except IsADirectoryError:
        raise DataError(
            Fault("folder", str(path), what=f"a folder, not a file: {place}{hint}")
        ) from None
    except OSError as error:
        reason = f"cannot read {place}: {error.strerror or error}{hint}"
        raise DataError(Fault("unreadable", str(path), what=reason)) from None
    kind = next((kind for kind, magic in _MAGIC.items() if data.startswith(magic)), "")
    try:
        data = _DECOMPRESS[kind](data) if kind in _DECOMPRESS else data
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        reason = f"{place}: broken {kind} file, copy it again ({error})"
        raise DataError(Fault("broken-archive", str(path), what=reason)) from None
    if data[257:262] == b"ustar":
        kind = "tar archive"
    if kind and kind not in _DECOMPRESS:
        reason = f"{place}: a {kind}, not text; unpack it, or save it as text"
        raise DataError(Fault("other-archive", str(path), what=reason))
    return data


def _decompress_xz(data: bytes) -> bytes:
    """All streams of `data`; `lzma.decompress` would leave out a broken one after the first."""
    parts = []
    while data:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        parts.append(stream.decompress(data))
        if not stream.eof:
            raise EOFError("the last stream is not complete")
        data = stream.unused_data.lstrip(b"\0")  # between streams there may be padding
    return b"".join(parts)


def _decompress_zstandard(data: bytes) -> bytes:
    """All frames of `data`; `stream_reader` would take a truncated one for a whole one."""
    parts = []
    while data:
        decompressor = zstandard.ZstdDecompressor(max_window_size=2**31)  # zstd --long=31
        frame = decompressor.decompressobj()
        parts.append(frame.decompress(data))
        if not frame.eof:
            raise EOFError("the last frame is not complete")
        data = frame.unused_data
    return b"".join(parts)


_MAGIC = {
    "gzip": b"\x1f\x8b",
    "xz": b"\xfd7zXZ\0",
    "zstandard": (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"),  # the second is from pzstd
    "bzip2 file": tuple(b"BZh%d1AY&SY" % level for level in range(1, 10)),
    "ZIP archive or office document": b"PK\3\4",
    "7z archive": b"7z\xbc\xaf\x27\x1c",
}
_DECOMPRESS = {
    "gzip": gzip.decompress,
    "xz": _decompress_xz,
    "zstandard": _decompress_zstandard,
}
