"""Files of every format to pairs: lines stay aligned, and left-out pairs are reported."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from translate.errors import UserError
from translate.text.corpus import Corpus, Pair, ParallelFiles

NESTED = ("translation.en", "translation.de")


@pytest.fixture
def read(folder):
    def _read(*lines: str, **settings) -> Corpus:
        (folder / "a.jsonl").write_bytes("".join(f"{line}\n" for line in lines).encode())
        return ParallelFiles(jsonl="a.jsonl", **settings).read("data.train")

    return _read


# Line-aligned files


def test_line_n_of_one_file_translates_line_n_of_the_other(aligned):
    corpus = aligned("one\ntwo\n", "eins\nzwei\n").read()
    assert corpus.pairs == [Pair("one", "eins"), Pair("two", "zwei")]
    assert corpus.left_out == []


def test_pairs_hold_the_text_as_it_stands_in_the_file(aligned):  # S07
    corpus = aligned("½  m² \n", "25.\u00a0Mai … ™\n").read()
    assert corpus.pairs == [Pair("½  m² ", "25.\u00a0Mai … ™")]


def test_unequal_line_counts_are_refused_naming_both_files_and_counts(aligned, refusal):  # D02
    message = refusal(aligned("x\n" * 10, "y\n" * 9))
    for part in ("a.en", "10", "a.de", "9"):
        assert part in message


def test_a_line_blank_on_one_side_takes_its_partner_along_and_shifts_nothing(
    aligned, left_out
):  # D03
    corpus = aligned("1\n2\n3\n4\n5\n6\n", "a\nb\nc\n\ne\n \n").read()
    assert corpus.pairs == [Pair(*row) for row in ("1a", "2b", "3c", "5e")]
    assert left_out(corpus) == ["left out 2 (blank target), first at a.de:4: '4' / ''"]


@pytest.mark.parametrize("blank", ["  ", "\u00a0", "\t", "\u200b", "\u00ad"])
def test_lines_that_show_nothing_are_blank(blank, aligned):  # D04
    corpus = aligned(f"one\n{blank}\nthree\n", f"eins\n{blank}\ndrei\n").read()
    assert corpus.pairs == [Pair("one", "eins"), Pair("three", "drei")]
    (entry,) = corpus.left_out
    assert str(entry).startswith("left out 1 (blank on both sides), first at a.en:2: ")


def test_windows_line_ends_on_one_side_give_the_same_pairs(aligned):  # D05
    windows = aligned("one\r\ntwo\r\n", "eins\nzw\rei\n").read()
    assert windows.pairs == [Pair("one", "eins"), Pair("two", "zw\rei")]


def test_the_last_pair_is_kept_once_whatever_newlines_end_the_files(aligned, left_out):  # D15
    corpus = aligned("one\ntwo", "eins\nzwei\n\n").read()
    assert corpus.pairs == [Pair("one", "eins"), Pair("two", "zwei")]
    assert left_out(corpus) == [
        "left out 1 (blank line at the end of one side), first at a.de:3: ''"
    ]


def test_a_folder_name_with_space_and_comma_is_one_path(folder):  # S11
    (folder / "my data, v1").mkdir()
    for name, text in (("a.en", "one\n"), ("a.de", "eins\n")):
        (folder / "my data, v1" / name).write_text(text)
    files = ParallelFiles(source="my data, v1/a.en", target="my data, v1/a.de")
    assert files.read().pairs == [Pair("one", "eins")]


# Tables


def test_a_table_with_byte_order_mark_and_windows_line_ends_reads_the_same(table):  # D06
    plain = table("Go.\tGeh.\nHi.\tHallo!\n").read()
    export = table("\ufeffGo.\tGeh.\r\nHi.\tHallo!\r\n").read()
    assert export == plain
    assert plain.pairs == [Pair("Go.", "Geh."), Pair("Hi.", "Hallo!")]


def test_a_column_of_licence_text_never_becomes_the_target(table):  # D11
    text = "Go.\tGeh.\tCC-BY 2.0\nHi.\tHallo!\tCC-BY 2.0\n"
    assert table(text).read().pairs == [Pair("Go.", "Geh."), Pair("Hi.", "Hallo!")]


def test_columns_are_selectable_and_swappable(table):  # D11
    text = "17\tGo.\t18\tGeh.\n"
    assert table(text, columns=(2, 4)).read().pairs == [Pair("Go.", "Geh.")]
    assert table(text, columns=(4, 2)).read().pairs == [Pair("Geh.", "Go.")]


def test_a_tab_inside_a_sentence_is_reported_by_line(table, left_out):  # D11
    corpus = table("a\tb\tcc\na\tb\tb\tcc\na\tb\tcc\n").read()
    assert corpus.pairs == [Pair("a", "b")] * 2
    assert left_out(corpus) == [
        r"left out 1 (more columns than the usual 3), first at a.tsv:2: 'a\tb\tb\tcc'"
    ]


def test_a_short_row_is_left_out_and_reported_by_line(table, left_out):  # D12
    corpus = table("Go.\tGeh.\nHi.\nRun!\tLauf!\n").read()
    assert corpus.pairs == [Pair("Go.", "Geh."), Pair("Run!", "Lauf!")]
    assert left_out(corpus) == ["left out 1 (fewer than 2 columns), first at a.tsv:2: 'Hi.'"]


def test_quotes_have_no_meaning_in_a_table(table):
    corpus = table('"Go.\tGeh."\nHe said: "Hi."\tEr sagte: "Hallo."\n').read()
    assert corpus.pairs[0] == Pair('"Go.', 'Geh."')
    assert len(corpus.pairs) == 2


def test_blank_cells_and_blank_rows_are_counted_apart(table, left_out):  # D03 D04
    corpus = table("a\tb\n\n\tc\nd\t\u200b\ne\tf\n").read()
    assert corpus.pairs == [Pair("a", "b"), Pair("e", "f")]
    assert left_out(corpus) == [
        "left out 1 (blank on both sides), first at a.tsv:2: '' / ''",
        "left out 1 (blank source), first at a.tsv:3: '' / 'c'",
        r"left out 1 (blank target), first at a.tsv:4: 'd' / '\u200b'",
    ]


# JSON lines


def test_each_line_is_an_object_and_escapes_are_text(read):
    corpus = read('{"id": 1, "en": "One", "de": "Eins"}', r'{"de": "gr\u00fcn\t!", "en": "green"}')
    assert corpus.pairs == [Pair("One", "Eins"), Pair("green", "grün\t!")]
    assert corpus.place(1) == "a.jsonl:2"
    assert corpus.left_out == []


def test_fields_are_chosen_by_name_within_objects_too(read):
    line = '{"translation": {"en": "One", "de": "Eins"}, "text": "x"}'
    assert read(line, fields=NESTED).pairs == [Pair("One", "Eins")]
    assert read(line, fields=("text", "translation.de")).pairs == [Pair("x", "Eins")]


def test_byte_order_mark_windows_line_ends_and_blank_lines_change_nothing(read):  # D05 D06
    corpus = read('\ufeff{"en": "One", "de": "Eins"}\r', "\r", '{"en": "Two", "de": "Zwei"}\r')
    assert corpus.pairs == [Pair("One", "Eins"), Pair("Two", "Zwei")]
    assert [(entry.kind, entry.line) for entry in corpus.left_out] == [("blank-both", 2)]


def test_a_record_without_text_in_a_field_is_left_out_and_counted(read, left_out):  # D12
    corpus = read(
        '{"en": "One", "de": "Eins"}', '{"en": "Two"}', '{"en": "Two", "de": null}',
        '{"en": 3, "de": "Drei"}', '{"en": "", "de": "Vier"}',
    )  # fmt: skip
    assert corpus.pairs == [Pair("One", "Eins")]
    assert left_out(corpus) == [
        """left out 2 (no text under de), first at a.jsonl:2: '{"en": "Two"}'""",
        """left out 1 (no text under en), first at a.jsonl:4: '{"en": 3, "de": "Drei"}'""",
        "left out 1 (blank source), first at a.jsonl:5: '' / 'Vier'",
    ]


def test_wrong_field_names_are_refused_with_what_is_there(read):
    with pytest.raises(UserError) as caught:
        read('{"english": "One", "german": "Eins"}')
    assert str(caught.value) == (
        "no sentence pairs in data.train: left out 1 (no text under en), first at a.jsonl:1: "
        """'{"english": "One", "german": "Eins"}'"""
    )


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud800"])
def test_what_is_no_text_is_left_out_and_counted(read, escape):  # S14
    corpus = read('{"en": "One", "de": "Eins"}', f'{{"en": "Two{escape}", "de": "Zwei"}}')
    assert corpus.pairs == [Pair("One", "Eins")]
    assert [(entry.kind, entry.line) for entry in corpus.left_out] == [("no-text", 2)]


def test_a_character_spelled_in_two_halves_is_one_character(read):
    assert read(r'{"en": "\ud83d\ude00", "de": "x"}').pairs == [Pair("\U0001f600", "x")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"en": "Two", "de": ', "Expecting value: line 1 column 21 (char 20)"),
        ('["Two", "Zwei"]', "a list"),
        ("Two\tZwei", "Expecting value: line 1 column 1 (char 0)"),
        ("[" * 100_000, ""),  # too deep
    ],
)
def test_a_line_that_is_no_object_is_refused_with_its_line(read, line, reason):
    with pytest.raises(UserError) as caught:
        read('{"en": "One", "de": "Eins"}', line)
    message = str(caught.value)
    assert message.startswith("a.jsonl:2: expected one JSON object per line (")
    assert reason in message
    todo = "convert an array to such lines: jq -c '.[]' OLD > NEW"
    assert message.endswith(todo if line.startswith("[") else "; fix the line")
    assert "\n" not in message


# The datasets library, replaced by a fake


@pytest.fixture
def hub(monkeypatch) -> list[tuple]:
    """A `datasets` module that answers every request with two records, and the requests."""
    requests = []

    def load_dataset(*args, **settings):
        requests.append((args, settings))
        if args[0] == "no/such":
            raise FileNotFoundError("no such dataset\nand a long explanation")
        texts = [("One", "Eins"), ("Two", "Zwei")]
        return iter([{"translation": {"en": en, "de": de}} for en, de in texts])

    module = SimpleNamespace(load_dataset=load_dataset, disable_progress_bars=lambda: None)
    monkeypatch.setitem(sys.modules, "datasets", module)
    return requests


def test_a_dataset_is_asked_for_by_name_subset_and_split(hub):
    files = ParallelFiles(hub="wmt/wmt14", subset="de-en", split="test", fields=NESTED)
    corpus = files.read()
    assert corpus.pairs == [Pair("One", "Eins"), Pair("Two", "Zwei")]
    assert corpus.place(1) == "wmt/wmt14:2"
    assert hub == [(("wmt/wmt14", "de-en"), {"split": "test"})]


def test_a_dataset_that_cannot_be_loaded_is_reported_in_one_line(hub):
    with pytest.raises(UserError) as caught:
        ParallelFiles(hub="no/such").read("data.train")
    assert str(caught.value) == "cannot read no/such: no such dataset; set data.train.hub"


def test_a_parquet_file_is_read_where_it_lies(hub, folder):
    (folder / "a.parquet").write_bytes(b"PAR1")
    corpus = ParallelFiles(parquet="a.parquet", fields=NESTED).read()
    assert corpus.pairs == [Pair("One", "Eins"), Pair("Two", "Zwei")]
    ((args, settings),) = hub
    assert (args, settings["data_files"]) == (("parquet",), str(folder / "a.parquet"))


def test_a_parquet_file_that_is_not_there_is_named_in_full(folder):  # D18
    with pytest.raises(UserError) as caught:
        ParallelFiles(parquet="a.parquet").read("data.train")
    message = f"no such file: {folder}/a.parquet; set data.train.parquet"
    assert str(caught.value) == message


@pytest.mark.parametrize("settings", [{"hub": "x/y"}, {"parquet": "a.parquet"}])
def test_without_the_library_one_line_says_what_to_install(settings, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    (folder / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError) as caught:
        ParallelFiles(**settings).read("data.train")
    (name,) = settings
    message = f"data.train.{name} needs the datasets library: pip install datasets"
    assert str(caught.value) == message


def test_the_library_itself_reads_parquet_without_a_network(folder, monkeypatch):
    pytest.importorskip("datasets")
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rows = [{"en": f"Hi {n}.", "de": f"Hallo {n}."} for n in range(3)]
    parquet.write_table(pyarrow.table({"translation": rows}), folder / "a.parquet")
    corpus = ParallelFiles(parquet="a.parquet", fields=NESTED).read()
    assert corpus.pairs == [Pair(f"Hi {n}.", f"Hallo {n}.") for n in range(3)]
    (folder / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match=r"cannot read .*a\.parquet: .*; set data\.train\.parquet"):
        ParallelFiles(parquet="a.parquet").read("data.train")


# CSV


@pytest.fixture
def spreadsheet(folder):
    """Write a.csv and read it."""

    def _read(text: str, **settings) -> Corpus:
        (folder / "a.csv").write_bytes(text.encode())
        return ParallelFiles(tsv="a.csv", **settings).read()

    return _read


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_csv_file_is_read_with_its_separator_quotes_and_header(
    spreadsheet, separator, end, left_out
):  # F14
    rows = [
        ["English", "German"],
        ['"He said: ""Yes, no; well."""', '"Er sagte: ""Ja, nein; nun."""'],
        ["Go on.", "Geh weiter."],
        ['"Two\nlines."', "Zwei Zeilen."],
        ["Last.", "Letzte."],
    ]
    corpus = spreadsheet("".join(separator.join(row) + end for row in rows))
    assert corpus.pairs[:2] == [
        Pair('He said: "Yes, no; well."', 'Er sagte: "Ja, nein; nun."'),
        Pair("Go on.", "Geh weiter."),
    ]
    assert corpus.pairs[2].source.split() == ["Two", "lines."]
    assert corpus.pairs[3] == Pair("Last.", "Letzte.")
    assert [corpus.place(index) for index in range(4)] == [f"a.csv:{n}" for n in (2, 3, 4, 6)]
    assert left_out(corpus)[0].startswith("left out 1 (names of columns), first at a.csv:1: ")


def test_a_csv_file_without_a_header_loses_no_pair(spreadsheet):  # F14
    assert spreadsheet("Yes.,Ja.\nNo.,Nein.\n").pairs == [Pair("Yes.", "Ja."), Pair("No.", "Nein.")]


def test_columns_can_be_named_by_the_header(spreadsheet, table):  # F14
    text = "id;de;en\n1;Ja.;Yes.\n2;Nein.;No.\n"
    pairs = [Pair("Yes.", "Ja."), Pair("No.", "Nein.")]
    assert spreadsheet(text, columns=("en", "de")).pairs == pairs
    assert table(text.replace(";", "\t"), columns=("en", "de")).read().pairs == pairs
    with pytest.raises(UserError, match=r"a\.csv:1: no column 'fr'; the first row has 'id' / 'de'"):
        spreadsheet(text, columns=("en", "fr"))


def test_a_csv_file_with_open_quotes_is_refused_where_they_open(spreadsheet):  # F14
    with pytest.raises(UserError, match=r"a\.csv:2: not well-formed CSV"):
        spreadsheet('Yes.,Ja.\n"No.,Nein.\nOh.,Oh.\n')


def test_quotes_in_other_files_are_text(table):  # F14
    assert table('"Yes.\t"Ja."\n').read().pairs == [Pair('"Yes.', '"Ja."')]


def test_columns_with_numbers_are_refused_and_the_right_ones_named(table, refusal):  # F15
    rows = "".join(f"{n}\tWord {n} here.\t{n + 900}\tWort {n} hier.\n" for n in range(20))
    message = refusal(table(rows))
    assert message.startswith("a.tsv:1: column 1 has numbers instead of sentences")
    assert message.endswith("set columns to 2 and 4, which have sentences")
    assert len(table(rows, columns=(2, 4)).read().pairs) == 20


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("a.tsv", '<?xml version="1.0"?>\n<tmx>\n', "belongs to tmx"),
        ("a.tsv", '{"en": "Yes.", "de": "Ja."}\n' * 3, "belongs to jsonl"),
        ("a.tsv", "---\nen: Yes.\n", "YAML"),
    ],
)
def test_another_format_is_not_read_as_sentences(folder, refusal, name, text, hint):  # N04
    (folder / name).write_text(text)
    assert hint in refusal(ParallelFiles(tsv=name))
    (folder / "b").write_text(text.replace("Yes", "No"))
    assert hint in refusal(ParallelFiles(source=name, target="b"))


def test_messages_are_short_whatever_the_rows_contain(table, left_out):  # F13
    corpus = table(f"{'x' * 9000}\na\tb\n{'y' * 9000}\t{'z' * 9000}\tc\n").read()
    assert all(len(message) < 300 for message in left_out(corpus))
