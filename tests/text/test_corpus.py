"""Files to pairs: nothing shifts, nothing is lost without a word."""

from __future__ import annotations

import gzip
import lzma

import pytest
import zstandard

from translate.errors import UserError
from translate.text.corpus import Corpus, Pair, ParallelFiles, read_corpus
from translate.text.filters import Filters


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def aligned(folder, source: str, target: str) -> ParallelFiles:
    (folder / "a.en").write_bytes(source.encode())
    (folder / "a.de").write_bytes(target.encode())
    return ParallelFiles(source="a.en", target="a.de")


def table(folder, text: str, **settings) -> ParallelFiles:
    (folder / "a.tsv").write_bytes(text.encode())
    return ParallelFiles(tsv="a.tsv", **settings)


def left_out(corpus: Corpus) -> list[str]:
    return [str(entry) for entry in corpus.left_out]


def refusal(files: ParallelFiles, setting: str = "") -> str:
    with pytest.raises(UserError) as caught:
        files.read(setting)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Line-aligned files


def test_line_n_of_one_file_translates_line_n_of_the_other(tmp_path):
    corpus = aligned(tmp_path, "one\ntwo\n", "eins\nzwei\n").read()
    assert corpus.pairs == [Pair("one", "eins"), Pair("two", "zwei")]
    assert corpus.left_out == []


def test_pairs_hold_the_text_as_it_stands_in_the_file(tmp_path):  # S07
    corpus = aligned(tmp_path, "½  m² \n", "25.\u00a0Mai … ™\n").read()
    assert corpus.pairs == [Pair("½  m² ", "25.\u00a0Mai … ™")]


def test_unequal_line_counts_are_refused_naming_both_files_and_counts(tmp_path):  # D02
    message = refusal(aligned(tmp_path, "x\n" * 10, "y\n" * 9))
    for part in ("a.en", "10", "a.de", "9"):
        assert part in message


def test_a_line_blank_on_one_side_takes_its_partner_along_and_shifts_nothing(
    tmp_path,
):  # D03
    corpus = aligned(tmp_path, "1\n2\n3\n4\n5\n6\n", "a\nb\nc\n\ne\n \n").read()
    assert corpus.pairs == [Pair(*row) for row in ("1a", "2b", "3c", "5e")]
    assert left_out(corpus) == ["left out 2 (blank target), first at a.de:4: '4' / ''"]


@pytest.mark.parametrize("blank", ["  ", "\u00a0", "\t", "\u200b", "\u00ad"])
def test_lines_that_show_nothing_are_blank(tmp_path, blank):  # D04
    corpus = aligned(tmp_path, f"one\n{blank}\nthree\n", f"eins\n{blank}\ndrei\n").read()
    assert corpus.pairs == [Pair("one", "eins"), Pair("three", "drei")]
    (entry,) = corpus.left_out
    assert str(entry).startswith("left out 1 (blank on both sides), first at a.en:2: ")


def test_windows_line_ends_on_one_side_give_the_same_pairs(tmp_path):  # D05
    windows = aligned(tmp_path, "one\r\ntwo\r\n", "eins\nzw\rei\n").read()
    assert windows.pairs == [Pair("one", "eins"), Pair("two", "zw\rei")]


def test_the_last_pair_is_kept_once_whatever_newlines_end_the_files(tmp_path):  # D15
    corpus = aligned(tmp_path, "one\ntwo", "eins\nzwei\n\n").read()
    assert corpus.pairs == [Pair("one", "eins"), Pair("two", "zwei")]
    assert left_out(corpus) == [
        "left out 1 (blank line at the end of one side), first at a.de:3: ''"
    ]


def test_a_folder_name_with_space_and_comma_is_one_path(tmp_path):  # S11
    folder = tmp_path / "my data, v1"
    folder.mkdir()
    aligned(folder, "one\n", "eins\n")
    files = ParallelFiles(source="my data, v1/a.en", target="my data, v1/a.de")
    assert files.read().pairs == [Pair("one", "eins")]


# Tables


def test_a_table_with_byte_order_mark_and_windows_line_ends_reads_the_same(tmp_path):  # D06
    plain = table(tmp_path, "Go.\tGeh.\nHi.\tHallo!\n").read()
    export = table(tmp_path, "\ufeffGo.\tGeh.\r\nHi.\tHallo!\r\n").read()
    assert export == plain
    assert plain.pairs == [Pair("Go.", "Geh."), Pair("Hi.", "Hallo!")]


def test_a_column_of_licence_text_never_becomes_the_target(tmp_path):  # D11
    text = "Go.\tGeh.\tCC-BY 2.0\nHi.\tHallo!\tCC-BY 2.0\n"
    assert table(tmp_path, text).read().pairs == [Pair("Go.", "Geh."), Pair("Hi.", "Hallo!")]


def test_columns_are_selectable_and_swappable(tmp_path):  # D11
    text = "17\tGo.\t18\tGeh.\n"
    assert table(tmp_path, text, columns=(2, 4)).read().pairs == [Pair("Go.", "Geh.")]
    assert table(tmp_path, text, columns=(4, 2)).read().pairs == [Pair("Geh.", "Go.")]


def test_a_tab_inside_a_sentence_is_reported_by_line(tmp_path):  # D11
    corpus = table(tmp_path, "a\tb\tcc\na\tb\tb\tcc\na\tb\tcc\n").read()
    assert corpus.pairs == [Pair("a", "b")] * 2
    assert left_out(corpus) == [
        r"left out 1 (more columns than the usual 3), first at a.tsv:2: 'a\tb\tb\tcc'"
    ]


def test_a_short_row_is_left_out_and_reported_by_line(tmp_path):  # D12
    corpus = table(tmp_path, "Go.\tGeh.\nHi.\nRun!\tLauf!\n").read()
    assert corpus.pairs == [Pair("Go.", "Geh."), Pair("Run!", "Lauf!")]
    assert left_out(corpus) == ["left out 1 (fewer than 2 columns), first at a.tsv:2: 'Hi.'"]


def test_quotes_mean_nothing_in_a_table(tmp_path):
    corpus = table(tmp_path, '"Go.\tGeh."\nHe said: "Hi."\tEr sagte: "Hallo."\n').read()
    assert corpus.pairs[0] == Pair('"Go.', 'Geh."')
    assert len(corpus.pairs) == 2


def test_blank_cells_and_blank_rows_are_counted_apart(tmp_path):  # D03 D04
    corpus = table(tmp_path, "a\tb\n\n\tc\nd\t\u200b\ne\tf\n").read()
    assert corpus.pairs == [Pair("a", "b"), Pair("e", "f")]
    assert left_out(corpus) == [
        "left out 1 (blank on both sides), first at a.tsv:2: '' / ''",
        "left out 1 (blank source), first at a.tsv:3: '' / 'c'",
        r"left out 1 (blank target), first at a.tsv:4: 'd' / '\u200b'",
    ]


# Several sources


def test_sources_in_a_list_are_read_one_after_the_other_each_pair_with_its_place(tmp_path):
    files = [aligned(tmp_path, "one\n\n", "eins\n\n"), table(tmp_path, "\ntwo\tzwei\n")]
    corpus = read_corpus(files, "data.train")
    assert corpus.pairs == [Pair("one", "eins"), Pair("two", "zwei")]
    assert [corpus.place(0), corpus.place(1)] == ["a.en:1", "a.tsv:2"]
    assert left_out(corpus) == ["left out 2 (blank on both sides), first at a.en:2: '' / ''"]


def test_a_source_without_pairs_shifts_no_place(tmp_path):
    (tmp_path / "empty.tsv").write_bytes(b"")
    empty = ParallelFiles(tsv="empty.tsv")
    corpus = read_corpus([empty, table(tmp_path, "a\tb\n"), empty])
    assert (corpus.pairs, corpus.place(0)) == ([Pair("a", "b")], "a.tsv:1")


def test_a_duplicate_in_another_file_is_one_too(tmp_path):
    files = [aligned(tmp_path, "one\n", "eins\n"), table(tmp_path, "one\teins\none\tein\n")]
    corpus = read_corpus(files, filters=Filters())
    assert corpus.pairs == [Pair("one", "eins"), Pair("one", "ein")]
    assert left_out(corpus) == ["left out 1 (exact duplicates), first at a.tsv:1: 'one' / 'eins'"]
    assert len(read_corpus(files).pairs) == 3


def test_a_fault_in_a_list_names_the_source_by_its_number(tmp_path):
    files = [table(tmp_path, "a\tb\n"), ParallelFiles(source="a.en")]
    with pytest.raises(UserError, match=r"data\.train\[2\]\.target is not set"):
        read_corpus(files, "data.train")
    with pytest.raises(UserError, match=r"no\.tsv; set data\.train\[1\]\.tsv"):
        read_corpus([ParallelFiles(tsv="no.tsv")], "data.train")
    with pytest.raises(UserError, match=r"data\.train is an empty list: name a file"):
        read_corpus([], "data.train")


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstandard.compress])
def test_every_form_may_be_compressed(tmp_path, compress):  # D16
    contents = {
        "tsv": "Go.\tGeh!\n",
        "jsonl": '{"en": "Go.", "de": "Geh!"}\n',
        "tmx": '<tmx><body><tu><tuv xml:lang="en"><seg>Go.</seg></tuv>'
        '<tuv xml:lang="de"><seg>Geh!</seg></tuv></tu></body></tmx>',
        "source": "Go.\n",
        "target": "Geh!\n",
    }
    for name, text in contents.items():
        (tmp_path / name).write_bytes(compress(text.encode()))
    files = [ParallelFiles(**{name: name}) for name in ("tsv", "jsonl", "tmx")]
    files.append(ParallelFiles(source="source", target="target"))
    assert read_corpus(files).pairs == [Pair("Go.", "Geh!")] * 4


# Settings


def test_nothing_left_is_refused_at_once_with_the_reason(tmp_path):  # T23
    message = refusal(aligned(tmp_path, "one\n\n", "\nzwei\n"), "data.train")
    assert "data.train" in message
    assert "blank target" in message
    assert "blank source" in message
    assert "a.tsv holds none" in refusal(table(tmp_path, ""))


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
def test_a_wrong_setting_is_named(settings, names):  # D18
    message = refusal(ParallelFiles(**settings), "d")
    assert all(name in message for name in names)
