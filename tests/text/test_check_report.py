"""Problems are reported by kind and line; `fit` refuses exactly the data with unsafe ones."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import string
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from translate.errors import UserError
from translate.text.check_report import Report, check_files
from translate.text.corpus import ParallelFiles
from translate.text.problems import KINDS, NOTE, UNSAFE, WARNING
from translate.text.text_files import FREE_SIZE
from translate.training.data import TranslationData

ROOT = Path(__file__).parents[2]
MAX_LENGTH = 50
VOCAB_SIZE = 200

ENGLISH = [
    "The house is old.",
    "I drink two cups of tea.",
    "You know that man well.",
    "She is reading that newspaper to me.",
    "My brother and you are ill.",
    "It never rains above the house.",
]
GERMAN = [
    "Das Haus ist alt.",
    "Ich trinke zwei Tassen Tee.",
    "Du kennst jenen Mann gut.",
    "Sie liest mir gerade die Zeitung vor.",
    "Mein Bruder und du seid krank.",
    "Es regnet nicht über dem Haus.",
]
PAIRS = list(zip(ENGLISH, GERMAN, strict=True))
ROWS = [f"{source}\t{target}" for source, target in PAIRS]
CSV = [f'"{source}";{target}' for source, target in PAIRS]
OBJECTS = [json.dumps({"en": source, "de": target}) for source, target in PAIRS]
NAMES = [f"{name}\t{name}" for name in string.ascii_letters[:15]]
SYLLABLES = [f"{a}{b}" for a in "bdfghk" for b in "aeiou"]
MORE = [f"{first}{other}\t{first}{other}" for first in string.ascii_letters for other in SYLLABLES]
LONG = " ".join(string.ascii_letters)
MANY = ("</tu>", "<tuv xml:lang='en'><seg>Hi.</seg></tuv>" * 100 + "</tu>")
UNLIKE = "Go on.\t" + "Geh weiter. " * 4
VERY_LONG = "ü " * 1400 + "\t" + "x " * 1400
NUL = r'{"en": "Go on.", "de": "Geh\u0000."}'
QUOTE = '{"en": "â€œGo on.", "de": "Geh weiter."}'
ENTITY = b"<!DOCTYPE tmx [<!ENTITY a 'Oh yes.'>]>"
SIGNS = "".join(map(chr, range(0x4E00, 0x4E00 + VOCAB_SIZE)))
MOJIBAKE = [line.replace("e", "ü").encode().decode("cp1252") for line in GERMAN]


def text(lines: list[str], end: str = "\n") -> bytes:
    return "".join(f"{line}{end}" for line in lines).encode()


def put(lines: list[str], number: int, line: str) -> bytes:
    """Replace line `number` by `line`."""
    return text([*lines[: number - 1], line, *lines[number:]])


def sign(lines: list[str], number: int, inside: str) -> bytes:
    """Insert `inside` after the first word of line `number`."""
    return put(lines, number, lines[number - 1].replace(" ", f" {inside} ", 1))


def memory(*units: str) -> bytes:
    """A translation memory with one unit per line; the first is in line 3."""
    return text(["<tmx version='1.4'><header/>", "<body>", *units, "</body></tmx>"])


def unit(source: str, target: str, code: str = "de") -> str:
    return (
        f"<tu><tuv xml:lang='en'><seg>{source}</seg></tuv>"
        f"<tuv xml:lang='{code}'><seg>{target}</seg></tuv></tu>"
    )


def tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("a.tsv")
        member.size = len(text(ROWS))
        archive.addfile(member, io.BytesIO(text(ROWS)))
    return packed.getvalue()


UNITS = [unit(*pair) for pair in PAIRS]


class Case(NamedTuple):
    """A problem: its kind, place, severity and number of lines, and the files that have it."""

    kind: str
    file: str
    line: int
    severity: str
    count: int
    files: dict[str, Any]


def one(kind: str, file: str, line: int, severity: str, data: Any, count: int = 1) -> Case:
    """A problem in `file`. With `data` None, `file` is a folder; with ..., it does not exist."""
    return Case(kind, file, line, severity, count, {file: data})


def validation(kind: str, line: int, source: list[str], count: int = 1) -> Case:
    files = {"v.en": text(source), "v.de": text(["Ich."] * len(source))}
    return Case(kind, "v.en", line, WARNING, count, files)


CASES = {
    # Bytes
    "windows-1252": one("not-utf-8", "a.de", 6, UNSAFE, "\n".join(GERMAN).encode("cp1252")),  # D07
    "utf-16": one("utf-16", "a.de", 1, UNSAFE, "\n".join(GERMAN).encode("utf-16")),  # D07
    "utf-32": one("utf-32", "a.de", 1, UNSAFE, "\n".join(GERMAN).encode("utf-32")),
    "utf-16-le": one("nul-byte", "a.de", 1, UNSAFE, "\n".join(GERMAN).encode("utf-16-le"), 6),
    "nul": one("nul-byte", "a.en", 3, UNSAFE, sign(ENGLISH, 3, "\0")),  # S14
    "cr": one("cr-line-ends", "a.en", 1, UNSAFE, text(ENGLISH, "\r")),  # D05
    "rows that end in cr": one(
        "cr-line-ends", "a.tsv", 1, UNSAFE, text(["\r".join(ROWS[:2]), *ROWS])
    ),
    "crlf in lf": one("mixed-line-ends", "a.en", 3, NOTE, put(ENGLISH, 3, "Well.\r")),  # D05
    "lf in crlf": one(
        "mixed-line-ends", "a.de", 2, NOTE, text(GERMAN, "\r\n").replace(b"Tee.\r", b"Tee.")
    ),
    "byte order mark": one("byte-order-mark", "a.de", 1, NOTE, put(GERMAN, 1, "\ufeffJa.")),  # D06
    # Files
    "missing": one("missing-file", "a.de", 0, UNSAFE, ...),  # D18
    "folder": one("folder", "a.en", 0, UNSAFE, None),  # D09
    "gzip": one("broken-archive", "a.en", 0, UNSAFE, gzip.compress(text(ENGLISH))[:-9]),  # D16
    "xz": one("broken-archive", "a.en", 0, UNSAFE, lzma.compress(text(ENGLISH))[:-9]),
    "tar": one("other-archive", "a.tsv", 0, UNSAFE, gzip.compress(tar())),
    "zip": one("other-archive", "a.tsv", 0, UNSAFE, b"PK\3\4" + text(ROWS)),
    "zst": one("broken-archive", "a.en", 0, UNSAFE, zstandard.compress(text(ENGLISH))[:-9]),
    "empty table": one("no-pairs", "a.tsv", 0, UNSAFE, b""),
    "blank table": one("no-pairs", "a.tsv", 0, UNSAFE, b" \n\t\n"),
    "no table": one("no-pairs", "a.tsv", 0, UNSAFE, text(ENGLISH)),
    "json": one("broken-format", "a.jsonl", 2, UNSAFE, put(OBJECTS, 2, "{'en'}")),
    "json array": one("broken-format", "a.jsonl", 1, UNSAFE, b"[\n1\n]\n"),
    "csv": one("broken-format", "a.csv", 2, UNSAFE, put(CSV, 2, '"Hi.;Hallo.')),  # F14
    "no such column": one("no-column", "a.csv", 1, UNSAFE, text(["id;english", *CSV])),  # F14
    "xml as text": one("other-format", "a.en", 1, UNSAFE, memory(*UNITS)),  # N04
    "html as a table": one("other-format", "a.tsv", 2, UNSAFE, b"\n<html>\n<body>x\ty\n"),
    "json as text": one("other-format", "a.de", 1, UNSAFE, text(OBJECTS)),  # N04
    "spreadsheet": one("other-archive", "a.tsv", 0, UNSAFE, b"PK\3\4..xl/workbook.xml"),  # F14
    "huge line": one("huge-line", "a.en", 2, UNSAFE, put(ENGLISH, 2, "x " * 600_000)),  # F05
    "bomb": one("broken-archive", "a.en", 0, UNSAFE, gzip.compress(bytes(FREE_SIZE + 1))),  # F05
    "xml": one("broken-format", "a.tmx", 4, UNSAFE, memory(UNITS[0], "</tuv>", *UNITS)),
    # Alignment
    "lost line": Case("unequal-counts", "a.en", 6, UNSAFE, 1, {"a.de": text(GERMAN[:5])}),  # D02
    "line too many": one("unequal-counts", "a.de", 7, UNSAFE, text([*GERMAN, "Ja."])),  # D02
    "blank target": one("blank-target", "a.de", 4, WARNING, put(GERMAN, 4, "")),  # D03
    "invisible": one("blank-source", "a.en", 2, WARNING, put(ENGLISH, 2, "\u200b\u00ad")),  # D04
    "blank both": one("blank-both", "a.tsv", 5, NOTE, put(ROWS, 5, " \t\u00a0")),  # D04
    "blank end": one("blank-end", "a.de", 7, NOTE, text([*GERMAN, ""])),  # D15
    "short row": one("few-columns", "a.tsv", 2, WARNING, put(ROWS, 2, "Hi.")),  # D12
    "long row": one("many-columns", "a.tsv", 3, WARNING, put(ROWS, 3, "a\tb\tc")),  # D11
    "no key": one("no-field", "a.jsonl", 4, WARNING, put(OBJECTS, 4, '{"en": "x"}')),
    "json nul": one("no-text", "a.jsonl", 4, WARNING, put(OBJECTS, 4, NUL)),
    "no segment": one(
        "no-segment", "a.tmx", 4, WARNING, memory(UNITS[0], UNITS[1].replace("seg>", "s>"), *UNITS)
    ),  # N24
    "many variants": one(
        "many-variants", "a.tmx", 3, WARNING, memory(unit("Hi.", "Na.").replace(*MANY), *UNITS)
    ),  # F05
    "no language": one(
        "no-language", "a.tmx", 4, WARNING, memory(UNITS[0], unit("Hi.", "Hei.", "sv"), *UNITS[1:])
    ),
    "entity": one("entity", "a.tmx", 9, WARNING, ENTITY + memory(*UNITS, unit("&a;", "Ja."))),
    # Sentences
    "U+2028": one("separator", "a.en", 2, WARNING, sign(ENGLISH, 2, "\u2028")),
    "U+2029": one("separator", "a.en", 3, WARNING, sign(ENGLISH, 3, "\u2029")),
    "U+0085": one("separator", "a.de", 4, WARNING, sign(GERMAN, 4, "\u0085")),
    "vertical tab": one("separator", "a.de", 5, WARNING, sign(GERMAN, 5, "\v")),
    "form feed": one("separator", "a.de", 6, WARNING, sign(GERMAN, 6, "\f")),
    "lone cr": one("carriage-return", "a.en", 2, WARNING, sign(ENGLISH, 2, "\r")),  # D05
    "U+2028 on both sides": one("separator", "a.tsv", 2, WARNING, put(ROWS, 2, "a\u2028\tb\u2028")),
    "tab": one("tab", "a.en", 4, WARNING, sign(ENGLISH, 4, "\t")),
    "escape": one("control-character", "a.en", 4, WARNING, sign(ENGLISH, 4, "\x1b")),
    "end piece": one("control-piece", "a.en", 1, WARNING, sign(ENGLISH, 1, "</s>")),  # S09
    "start piece": one("control-piece", "a.en", 2, WARNING, sign(ENGLISH, 2, "<s>")),
    "pad piece": one("control-piece", "a.de", 3, WARNING, sign(GERMAN, 3, "<pad>")),
    "unk piece": one("control-piece", "a.de", 4, WARNING, sign(GERMAN, 4, "<unk>")),
    "joined piece": one("control-piece", "a.en", 2, WARNING, sign(ENGLISH, 2, "@-@")),  # N04
    "split piece": one("control-piece", "a.de", 2, WARNING, sign(GERMAN, 2, "Bei@@ ")),  # N04
    "tag": one("markup", "a.en", 2, WARNING, sign(ENGLISH, 2, "<br/>")),  # N04
    "closing tag": one("markup", "a.tsv", 2, WARNING, sign(ROWS, 2, "</p>")),  # N04
    "tag with attributes": one("markup", "a.de", 2, WARNING, sign(GERMAN, 2, '<a href="x">')),
    "named entity": one("escaped", "a.en", 3, WARNING, sign(ENGLISH, 3, "&quot;")),  # N04
    "numeric entity": one("escaped", "a.de", 3, WARNING, sign(GERMAN, 3, "&#91;")),  # N04
    "word start": one("control-piece", "a.tsv", 5, WARNING, sign(ROWS, 5, "▁x")),
    "mojibake": one("mojibake", "a.en", 2, WARNING, sign([*ENGLISH, *ROWS], 2, "cafÃ©")),  # D07
    "mojibake quote": one("mojibake", "a.jsonl", 2, WARNING, put(OBJECTS, 2, QUOTE)),
    "mojibake space": one("mojibake", "a.tsv", 2, WARNING, sign(ROWS, 2, "5Â\u00a0%")),
    "all mojibake": one("garbled", "a.de", 2, UNSAFE, text(MOJIBAKE), 5),  # D07
    "lost sign": one("replacement-character", "a.de", 3, WARNING, sign(GERMAN, 3, "\ufffd")),
    # Pairs
    "headings": one("headings", "a.tsv", 1, WARNING, text(["English\tGerman", *ROWS])),
    "swapped": Case(
        "swapped", "a.en", 1, WARNING, 1, {"a.en": text(GERMAN), "a.de": text(ENGLISH)}
    ),  # M08
    "ids": one("no-letters", "a.tsv", 1, UNSAFE, text([f"{n}\t{ROWS[n]}" for n in range(6)])),
    "numbers": one("no-letters", "a.de", 1, WARNING, text(list("123456"))),
    "csv header": one("header", "a.csv", 1, NOTE, text(["en;de", *CSV])),  # F14
    "duplicate": one("duplicate", "a.tsv", 7, WARNING, text([*ROWS, *ROWS[2:4]]), 2),  # D13
    "copies": Case("copy", "a.en", 1, WARNING, 6, {"a.de": text(ENGLISH)}),  # M08 D14
    "copy": one("copy", "a.tsv", 2, WARNING, put(ROWS, 2, "It is a copy.\tit is a copy.")),  # D14
    "unlike": one("length-ratio", "a.tsv", 3, WARNING, put(ROWS, 3, UNLIKE)),
    "too long": one("too-long", "a.tsv", 2, WARNING, put(ROWS, 2, f"{LONG[:30]}\t{LONG}")),
    "all too long": one(
        "too-long", "a.tsv", 1, UNSAFE, text([f"{LONG}{n}\t{LONG}" for n in "123"]), 3
    ),
    "one of two too long": one(
        "too-long", "a.tsv", 2, UNSAFE, text([ROWS[0], f"{LONG}\tja {LONG}"])
    ),
    "test too long": Case(
        "too-long", "t.en", 1, WARNING, 1, {"t.en": text([LONG]), "t.de": text([LONG.lower()])}
    ),
    "very long": one("long-line", "a.tsv", 2, WARNING, put(ROWS, 2, VERY_LONG)),
    "one pair": one("too-few-to-split", "a.tsv", 0, UNSAFE, text(ROWS[:1])),  # D14
    "too few to test on": one("too-few-to-split", "a.tsv", 0, UNSAFE, text(ROWS[:1] + NAMES)),
    "too few in a long list": one("too-few-to-split", "a.tsv", 0, UNSAFE, text(ROWS + MORE)),
    "many signs": one("vocabulary", "a.tsv", 0, UNSAFE, put(ROWS, 1, f"{SIGNS}\t{SIGNS}.")),  # S02
    # Splits
    "overlap": validation("overlap", 2, ["Oh no.", "i DRINK  two cups of tea."]),  # D13
    "unknown": validation("unknown-characters", 3, ["You.", "I.", "You!", "(I!)"], 2),
    "unknown in a table": Case(
        "unknown-characters", "v.tsv", 1, WARNING, 1, {"v.tsv": text(["You!\tDu!"])}
    ),
}


def splits(folder: Path, files: dict[str, Any]) -> dict[str, ParallelFiles]:
    """Write `files`, and files without problems for those not given; return them by split."""
    for name, data in {"a.en": text(ENGLISH), "a.de": text(GERMAN), **files}.items():
        if data is None:
            (folder / name).mkdir()
        elif data is not ...:
            (folder / name).write_bytes(data)
    parts = {}
    for stem, split in (("a", "train"), ("v", "valid"), ("t", "test")):
        single = [form for form in ("tsv", "csv", "jsonl", "tmx") if f"{stem}.{form}" in files]
        if single:
            setting = single[0].replace("csv", "tsv")
            columns = ("en", "de") if b"english" in files.get("a.csv", b"") else (1, 2)
            parts[split] = ParallelFiles(
                **{setting: folder / f"{stem}.{single[0]}"}, columns=columns
            )
        elif stem == "a" or f"{stem}.en" in files:
            parts[split] = ParallelFiles(source=folder / f"{stem}.en", target=folder / f"{stem}.de")
    return parts


def check(folder: Path, files: dict[str, Any]) -> Report:
    parts = splits(folder, files)
    return check_files(parts, vocab_size=VOCAB_SIZE, max_length=MAX_LENGTH, section="data.")


def refusal(folder: Path, files: dict[str, Any]) -> str:
    """The message with which `fit` (or `translate test`, for test files) refuses these files."""
    torch.manual_seed(1)
    parts = splits(folder, files)
    data = TranslationData(**parts, vocab_size=VOCAB_SIZE, max_length=MAX_LENGTH)
    try:
        data.setup("fit")
        if "test" in parts:
            data.read("test")
    except UserError as error:
        return str(error)
    return ""


# N04
@pytest.mark.parametrize("name", CASES)
def test_a_broken_file_is_named_with_kind_and_line(tmp_path, name):
    case = CASES[name]
    found = {problem.kind: problem for problem in check(tmp_path, case.files).problems}
    assert case.kind in found, found
    problem = found[case.kind]
    assert (problem.file, problem.line) == (str(tmp_path / case.file), case.line)
    assert (problem.severity, problem.count) == (case.severity, case.count)
    assert not problem.line or str(problem).startswith(f"{problem.place}: ")
    assert "\n" not in str(problem)


@pytest.mark.parametrize("name", CASES)
def test_what_is_unsafe_is_what_fit_refuses(tmp_path, name):
    for folder in ("check", "fit"):
        (tmp_path / folder).mkdir()
    problems = check(tmp_path / "check", CASES[name].files).problems
    unsafe = [str(problem) for problem in problems if problem.unsafe]
    message = refusal(tmp_path / "fit", CASES[name].files)
    message = message.replace(str(tmp_path / "fit"), str(tmp_path / "check"))
    assert bool(unsafe) == bool(message)
    if unsafe and CASES[name].kind != "too-long":  # of which `fit` says how long
        assert message in unsafe


def test_every_kind_of_fault_has_a_broken_file():
    assert len(CASES) >= 25
    assert KINDS.keys() - {case.kind for case in CASES.values()} == {"unreadable"}


SCRAPS = [
    b"One",
    b" two",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b"\0",
    b"\xff",
    "ü".encode(),
    "Ã¼".encode(),
]
SCRAPS += [b"\xef\xbb\xbf", b"\xff\xfe", b'{"en": "a", "de": "b"}', b"<tmx>", b"\x1f\x8b", b"</s>"]
scraps = st.lists(st.sampled_from(SCRAPS), max_size=12).map(b"".join)


@settings(max_examples=40, deadline=None)
@given(
    files=st.fixed_dictionaries({"a.en": scraps, "a.de": scraps})
    | st.fixed_dictionaries({"a.tsv": scraps})
    | st.fixed_dictionaries({"a.jsonl": scraps})
    | st.fixed_dictionaries({"a.tmx": scraps})
)
def test_whatever_is_in_a_file_check_and_fit_agree(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("files")
    unsafe = [str(problem) for problem in check(folder, files).problems if problem.unsafe]
    message = refusal(folder, files)
    assert message in unsafe if message else not unsafe


CLEAN = {
    "two files": {},
    "windows line ends": {"a.en": text(ENGLISH, "\r\n")},
    "no last newline": {"a.de": text(GERMAN).rstrip()},
    "gzip": {"a.de": gzip.compress(text(GERMAN))},
    "table": {"a.tsv": text(ROWS)},
    "three columns": {"a.tsv": text([f"{row}\tCC BY" for row in ROWS])},
    "json lines": {"a.jsonl": text(OBJECTS)},
    "translation memory": {"a.tmx": memory(*UNITS)},
    "other signs": {"a.de": sign(GERMAN, 2, "„½ m² … 5 < 6 > 4 & a@b â Ã ™ ß“ «Âge»")},
    "names": {"a.tsv": text([*ROWS, "Boston.\tBoston."])},
    "validation": {"v.en": text(["It is the house."]), "v.de": text(["Das ist mein Haus."])},
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_files_have_no_fault(tmp_path, name):
    report = check(tmp_path, CLEAN[name])
    assert report.problems == []
    assert report.safe
    assert report.splits["train"].pairs == len(ENGLISH) + (name == "names")


def test_the_shipped_corpus_has_no_fault():
    tiny = ROOT / "data" / "tiny"
    files = {
        name: ParallelFiles(source=tiny / f"{name}.en", target=tiny / f"{name}.de")
        for name in ("train", "valid", "test")
    }
    assert check_files(files).problems == []


def test_headings_after_a_source_without_pairs_are_one_fault(tmp_path):
    parts = splits(tmp_path, {"a.tsv": text(["English\tGerman", *ROWS]), "b.tsv": b" \t \n"})
    blank = ParallelFiles(tsv=tmp_path / "b.tsv")
    report = check_files({"train": [blank, parts["train"]]}, vocab_size=VOCAB_SIZE)
    (problem,) = [problem for problem in report.problems if problem.kind == "headings"]
    assert (problem.place, problem.count) == (f"{tmp_path / 'a.tsv'}:1", 1)


def test_a_file_has_one_name_whatever_is_wrong_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_bytes(put(ROWS, 2, "Hi."))
    Path("b.tsv").write_bytes(gzip.compress(text(ROWS))[:-9])
    for name in ("a.tsv", "b.tsv", "c.tsv"):
        report = check_files({"train": ParallelFiles(tsv=Path(name))}, vocab_size=VOCAB_SIZE)
        assert {problem.file for problem in report.problems} == {name}


def test_left_out_pairs_of_one_kind_are_counted_together(tmp_path):
    faulty = ['{"en": "One"}', '{"de": "Eins"}', '{"de": "Zwei"}']
    report = check(tmp_path, {"a.jsonl": text([*OBJECTS, *faulty])})
    assert report.splits["train"].left_out == {"no-field": 3}
    assert sorted(problem.count for problem in report.problems) == [1, 2]
