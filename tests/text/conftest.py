"""Small corpora on disk, for tests of reading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from translate.errors import UserError
from translate.text.corpus import Corpus, ParallelFiles


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The working directory of the test: files in it have short names in messages."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def aligned(folder) -> Callable[..., ParallelFiles]:
    """Write a.en and a.de."""

    def write(source: str, target: str) -> ParallelFiles:
        (folder / "a.en").write_bytes(source.encode())
        (folder / "a.de").write_bytes(target.encode())
        return ParallelFiles(source=Path("a.en"), target=Path("a.de"))

    return write


@pytest.fixture
def table(folder) -> Callable[..., ParallelFiles]:
    """Write a.tsv."""

    def write(text: str, **settings) -> ParallelFiles:
        (folder / "a.tsv").write_bytes(text.encode())
        return ParallelFiles(tsv=Path("a.tsv"), **settings)

    return write


@pytest.fixture
def left_out() -> Callable[[Corpus], list[str]]:
    """The messages about the pairs that were left out of a corpus."""
    return lambda corpus: [str(entry) for entry in corpus.left_out]


@pytest.fixture
def refusal() -> Callable[..., str]:
    """The one-line message with which files are refused."""

    def message(files: ParallelFiles, setting: str = "") -> str:
        with pytest.raises(UserError) as caught:
            files.read(setting)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return message
