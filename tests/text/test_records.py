"""Records to pairs: JSON lines, and what the `datasets` library reads."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from translate.errors import UserError
from translate.text.corpus import Corpus, Pair, ParallelFiles

NESTED = ("translation.en", "translation.de")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def read(tmp_path):
    def _read(*lines: str, **settings) -> Corpus:
        (tmp_path / "a.jsonl").write_bytes("".join(f"{line}\n" for line in lines).encode())
        return ParallelFiles(jsonl="a.jsonl", **settings).read("data.train")

    return _read


def left_out(corpus: Corpus) -> list[str]:
    return [str(entry) for entry in corpus.left_out]


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


def test_byte_order_mark_windows_line_ends_and_blank_lines_are_no_matter(read):  # D05 D06
    corpus = read('\ufeff{"en": "One", "de": "Eins"}\r', "\r", '{"en": "Two", "de": "Zwei"}\r')
    assert corpus.pairs == [Pair("One", "Eins"), Pair("Two", "Zwei")]
    assert [(entry.kind, entry.line) for entry in corpus.left_out] == [("blank-both", 2)]


def test_a_record_without_text_in_a_field_is_left_out_and_counted(read):  # D12
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
    assert message.startswith("a.jsonl:2: expected one JSON object on each line (")
    assert reason in message
    todo = "an array becomes such lines with: jq -c '.[]' OLD > NEW"
    assert message.endswith(todo if line.startswith("[") else "; mend the line")
    assert "\n" not in message


# The datasets library, stood in for where it is not installed


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


def test_a_dataset_that_does_not_come_is_told_in_one_line(hub):
    with pytest.raises(UserError) as caught:
        ParallelFiles(hub="no/such").read("data.train")
    assert str(caught.value) == "cannot read no/such: no such dataset; set data.train.hub"


def test_a_parquet_file_is_read_where_it_lies(hub, tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    corpus = ParallelFiles(parquet="a.parquet", fields=NESTED).read()
    assert corpus.pairs == [Pair("One", "Eins"), Pair("Two", "Zwei")]
    ((args, settings),) = hub
    assert (args, settings["data_files"]) == (("parquet",), str(tmp_path / "a.parquet"))


def test_a_parquet_file_that_is_not_there_is_named_in_full(tmp_path):  # D18
    with pytest.raises(UserError) as caught:
        ParallelFiles(parquet="a.parquet").read("data.train")
    message = f"no such file: {tmp_path}/a.parquet; set data.train.parquet"
    assert str(caught.value) == message


@pytest.mark.parametrize("settings", [{"hub": "x/y"}, {"parquet": "a.parquet"}])
def test_without_the_library_one_line_says_what_to_install(settings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError) as caught:
        ParallelFiles(**settings).read("data.train")
    (name,) = settings
    message = f"data.train.{name} needs the datasets library: pip install datasets"
    assert str(caught.value) == message


def test_the_library_itself_reads_parquet_without_a_network(tmp_path, monkeypatch):
    pytest.importorskip("datasets")
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rows = [{"en": f"Hi {n}.", "de": f"Hallo {n}."} for n in range(3)]
    parquet.write_table(pyarrow.table({"translation": rows}), tmp_path / "a.parquet")
    corpus = ParallelFiles(parquet="a.parquet", fields=NESTED).read()
    assert corpus.pairs == [Pair(f"Hi {n}.", f"Hallo {n}.") for n in range(3)]
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match=r"cannot read .*a\.parquet: .*; set data\.train\.parquet"):
        ParallelFiles(parquet="a.parquet").read("data.train")
