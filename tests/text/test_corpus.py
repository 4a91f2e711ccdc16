"""One or several sources to one corpus, and settings that contradict each other."""

from __future__ import annotations

import gzip
import lzma

import pytest
import zstandard

from translate.errors import UserError
from translate.text.corpus import Pair, ParallelFiles, read_corpus
from translate.text.filters import Filters

# Several sources


def test_sources_in_a_list_are_read_one_after_the_other_each_pair_with_its_place(
    aligned, table, left_out
):
    files = [aligned("one\n\n", "eins\n\n"), table("\ntwo\tzwei\n")]
    corpus = read_corpus(files, "data.train")
    assert corpus.pairs == [Pair("one", "eins"), Pair("two", "zwei")]
    assert [corpus.place(0), corpus.place(1)] == ["a.en:1", "a.tsv:2"]
    assert left_out(corpus) == ["left out 2 (blank on both sides), first at a.en:2: '' / ''"]


def test_a_source_without_pairs_shifts_no_place(folder, table):
    (folder / "empty.tsv").write_bytes(b"")
    empty = ParallelFiles(tsv="empty.tsv")
    corpus = read_corpus([empty, table("a\tb\n"), empty])
    assert (corpus.pairs, corpus.place(0)) == ([Pair("a", "b")], "a.tsv:1")


def test_a_duplicate_in_another_file_is_one_too(aligned, table, left_out):
    files = [aligned("one\n", "eins\n"), table("one\teins\none\tein\n")]
    corpus = read_corpus(files, filters=Filters())
    assert corpus.pairs == [Pair("one", "eins"), Pair("one", "ein")]
    assert left_out(corpus) == ["left out 1 (exact duplicates), first at a.tsv:1: 'one' / 'eins'"]
    assert len(read_corpus(files).pairs) == 3


def test_a_fault_in_a_list_names_the_source_by_its_number(table):
    files = [table("a\tb\n"), ParallelFiles(source="a.en")]
    with pytest.raises(UserError, match=r"data\.train\[2\]\.target is not set"):
        read_corpus(files, "data.train")
    with pytest.raises(UserError, match=r"no\.tsv; set data\.train\[1\]\.tsv"):
        read_corpus([ParallelFiles(tsv="no.tsv")], "data.train")
    with pytest.raises(UserError, match=r"data\.train is an empty list: name a file"):
        read_corpus([], "data.train")


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstandard.compress])
def test_every_form_may_be_compressed(folder, compress):  # D16
    contents = {
        "tsv": "Go.\tGeh!\n",
        "jsonl": '{"en": "Go.", "de": "Geh!"}\n',
        "tmx": '<tmx><body><tu><tuv xml:lang="en"><seg>Go.</seg></tuv>'
        '<tuv xml:lang="de"><seg>Geh!</seg></tuv></tu></body></tmx>',
        "source": "Go.\n",
        "target": "Geh!\n",
    }
    for name, text in contents.items():
        (folder / name).write_bytes(compress(text.encode()))
    files = [ParallelFiles(**{name: name}) for name in ("tsv", "jsonl", "tmx")]
    files.append(ParallelFiles(source="source", target="target"))
    assert read_corpus(files).pairs == [Pair("Go.", "Geh!")] * 4


# Settings


def test_nothing_left_is_refused_at_once_with_the_reason(aligned, table, refusal):  # T23
    message = refusal(aligned("one\n\n", "\nzwei\n"), "data.train")
    assert "data.train" in message
    assert "blank target" in message
    assert "blank source" in message
    assert "a.tsv has none" in refusal(table(""))


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ["d.source", "d.tsv"]),
        ({"source": "a.en"}, ["d.target"]),
        ({"target": "a.de"}, ["d.source"]),
        ({"source": "a.en", "tsv": "a.tsv"}, ["d.tsv", "d.source"]),
        ({"source": "a.en", "target": "a.en"}, ["d.source", "d.target"]),
        ({"tsv": "a.tsv", "columns": (0, 1)}, ["d.columns", "[0, 1]"]),
        ({"tsv": "a.tsv", "columns": (2, 2)}, ["d.columns", "both 2"]),
        ({"tsv": "a.tsv", "jsonl": "a.jsonl"}, ["d.tsv and d.jsonl are both set"]),
        ({"tmx": "a.tmx", "target": "a.de"}, ["d.tmx and d.target are both set"]),
        ({"tmx": "a.tmx", "languages": ("en", "en")}, ["d.languages", "both en"]),
        ({"tmx": "a.tmx", "columns": (2, 1)}, ["d.columns is set, but it belongs to tsv"]),
        ({"tsv": "a.tsv", "fields": ("a", "b")}, ["d.fields", "jsonl or parquet or hub, not to"]),
        ({"parquet": "a.parquet", "split": "test"}, ["d.split is set, but it belongs to hub"]),
        ({"source": "no.en", "target": "a.de"}, ["no.en", "d.source"]),
        ({"tsv": "no.tsv"}, ["no.tsv", "d.tsv"]),
    ],
)
def test_a_wrong_setting_is_named(settings, names, refusal):  # D18
    message = refusal(ParallelFiles(**settings), "d")
    assert all(name in message for name in names)
