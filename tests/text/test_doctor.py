"""The doctor names what is wrong, by kind and line; `fit` refuses exactly what it calls unsafe."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard

from translate.errors import UserError
from translate.text.corpus import ParallelFiles, read_corpus
from translate.text.doctor import Report, examine
from translate.text.faults import NOTE, UNSAFE, WARNING
from translate.text.filters import Filters

ROOT = Path(__file__).parents[2]

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


def text(lines: list[str], end: str = "\n") -> bytes:
    return "".join(f"{line}{end}" for line in lines).encode()


def with_line(lines: list[str], number: int, line: str) -> list[str]:
    return [*lines[: number - 1], line, *lines[number:]]


def with_sign(lines: list[str], number: int, sign: str) -> list[str]:
    """`sign` comes after the first word of line `number`."""
    return with_line(lines, number, lines[number - 1].replace(" ", f" {sign} ", 1))


ROWS = [f"{source}\t{target}" for source, target in zip(ENGLISH, GERMAN, strict=True)]
OBJECTS = [
    json.dumps({"en": source, "de": target}, ensure_ascii=False)
    for source, target in zip(ENGLISH, GERMAN, strict=True)
]


def memory(units: list[str]) -> bytes:
    """A translation memory with one unit a line; the first stands in line 3."""
    return text(["<tmx version='1.4'><header/>", "<body>", *units, "</body></tmx>"])


def unit(source: str, target: str, code: str = "de") -> str:
    return (
        f"<tu><tuv xml:lang='en'><seg>{source}</seg></tuv>"
        f"<tuv xml:lang='{code}'><seg>{target}</seg></tuv></tu>"
    )


UNITS = [unit(source, target) for source, target in zip(ENGLISH, GERMAN, strict=True)]
GARBLED = [line.replace("e", "ü").encode().decode("cp1252") for line in GERMAN]
MAX_LENGTH = 40


class Case(NamedTuple):
    """Files to write, and the fault that they have: in which file and line, and how bad it is."""

    kind: str
    file: str
    line: int
    severity: str
    files: dict[str, bytes | None] = {}  # noqa: RUF012 (never changed); None is a folder
    count: int = 1


def source(kind, line, severity, data, count=1) -> Case:
    return Case(kind, "a.en", line, severity, {"a.en": data}, count)


def target(kind, line, severity, data, count=1) -> Case:
    return Case(kind, "a.de", line, severity, {"a.de": data}, count)


def single(kind, name, line, severity, data, count=1) -> Case:
    return Case(kind, name, line, severity, {name: data}, count)


CASES = {
    # Bytes
    "windows-1252": target(
        "not-utf-8", 4, UNSAFE, "".join(f"{x}\n" for x in GERMAN).encode("cp1252")
    ),  # D07
    "utf-16": target("utf-16", 1, UNSAFE, "\n".join(GERMAN).encode("utf-16")),  # D07
    "utf-16 without mark": target("nul-byte", 1, UNSAFE, "\n".join(GERMAN).encode("utf-16-le"), 6),
    "nul": source("nul-byte", 3, UNSAFE, text(with_sign(ENGLISH, 3, "\0"))),  # S14
    "cr": source("cr-line-ends", 1, UNSAFE, text(ENGLISH, "\r")),  # D05
    "crlf and lf": source(
        "mixed-line-ends",
        3,
        NOTE,
        text(ENGLISH[:2]) + text(ENGLISH[2:3], "\r\n") + text(ENGLISH[3:]),
    ),  # D05
    "lf in crlf": target(
        "mixed-line-ends",
        2,
        NOTE,
        text(GERMAN[:1], "\r\n") + text(GERMAN[1:2]) + text(GERMAN[2:], "\r\n"),
    ),  # D05
    "byte order mark": target("byte-order-mark", 1, NOTE, b"\xef\xbb\xbf" + text(GERMAN)),  # D06
    # Files
    "folder": source("folder", 0, UNSAFE, None),  # D09
    "broken gzip": source("broken-archive", 0, UNSAFE, gzip.compress(text(ENGLISH))[:-9]),  # D16
    "broken xz": source("broken-archive", 0, UNSAFE, lzma.compress(text(ENGLISH))[:-9]),
    "broken zst": source("broken-archive", 0, UNSAFE, zstandard.compress(text(ENGLISH))[:-9]),
    "empty table": single("no-pairs", "a.tsv", 0, UNSAFE, b""),
    "blank table": single("no-pairs", "a.tsv", 0, UNSAFE, b" \n\t\n"),
    "no table": single("few-columns", "a.tsv", 1, WARNING, text(ENGLISH), 6),
    "json": single("broken-format", "a.jsonl", 2, UNSAFE, text(with_line(OBJECTS, 2, "{'en'}"))),
    "json array": single("broken-format", "a.jsonl", 1, UNSAFE, b"[\n1\n]\n"),
    "xml": single(
        "broken-format", "a.tmx", 5, UNSAFE, memory(with_line(UNITS, 3, "<tu><tuv></tu>"))
    ),
    # Alignment
    "lost line": target("unequal-counts", 6, UNSAFE, text(GERMAN[:5])),  # D02
    "blank target": target("blank-target", 4, WARNING, text(with_line(GERMAN, 4, ""))),  # D03
    "invisible source": source(
        "blank-source", 2, WARNING, text(with_line(ENGLISH, 2, "\u200b \u00ad"))
    ),  # D04
    "blank both": Case(
        "blank-both",
        "a.en",
        5,
        NOTE,
        {"a.en": text(with_line(ENGLISH, 5, "")), "a.de": text(with_line(GERMAN, 5, "\u00a0"))},
    ),
    "blank end": target("blank-end", 7, NOTE, text(GERMAN) + b"\n"),  # D15
    "short row": single("few-columns", "a.tsv", 2, WARNING, text(with_line(ROWS, 2, "Hi."))),  # D12
    "long row": single("many-columns", "a.tsv", 3, WARNING, text(with_line(ROWS, 3, "a\tb\tc"))),
    "no key": single("no-key", "a.jsonl", 4, WARNING, text(with_line(OBJECTS, 4, '{"en": "x"}'))),
    "no language": single(
        "no-language", "a.tmx", 4, WARNING, memory(with_line(UNITS, 2, unit("Hi.", "Hei.", "sv")))
    ),
    # Sentences
    "U+2028": source("separator", 2, WARNING, text(with_sign(ENGLISH, 2, "\u2028"))),
    "U+2029": source("separator", 3, WARNING, text(with_sign(ENGLISH, 3, "\u2029"))),
    "U+0085": target("separator", 4, WARNING, text(with_sign(GERMAN, 4, "\u0085"))),
    "vertical tab": target("separator", 5, WARNING, text(with_sign(GERMAN, 5, "\v"))),
    "form feed": target("separator", 6, WARNING, text(with_sign(GERMAN, 6, "\f"))),
    "lone cr": source("carriage-return", 2, WARNING, text(with_sign(ENGLISH, 2, "\r"))),  # D05
    "tab": source("tab", 4, WARNING, text(with_sign(ENGLISH, 4, "\t"))),
    "escape": source("control-character", 4, WARNING, text(with_sign(ENGLISH, 4, "\x1b"))),
    "end piece": source("control-piece", 1, WARNING, text(with_sign(ENGLISH, 1, "</s>"))),  # S09
    "start piece": source("control-piece", 2, WARNING, text(with_sign(ENGLISH, 2, "<s>"))),
    "pad piece": target("control-piece", 3, WARNING, text(with_sign(GERMAN, 3, "<pad>"))),
    "unk piece": target("control-piece", 4, WARNING, text(with_sign(GERMAN, 4, "<unk>"))),
    "word start": target("control-piece", 5, WARNING, text(with_sign(GERMAN, 5, "▁"))),
    "mojibake": source("mojibake", 2, WARNING, text(with_sign(ENGLISH, 2, "cafÃ©"))),  # D07
    "mojibake quote": source("mojibake", 2, WARNING, text(with_sign(ENGLISH, 2, "â€œ"))),
    "Â mojibake": source("mojibake", 2, WARNING, text(with_sign(ENGLISH, 2, "5\u00c2\u00a0%"))),
    "all mojibake": target("garbled", 1, UNSAFE, text(GARBLED), 6),  # D07
    "lost character": target(
        "replacement-character", 3, WARNING, text(with_sign(GERMAN, 3, "\ufffd"))
    ),
    # Pairs
    "swapped": Case(
        "swapped", "a.en", 1, WARNING, {"a.en": text(GERMAN), "a.de": text(ENGLISH)}
    ),  # M08
    "duplicate": single(
        "duplicate", "a.tsv", 7, WARNING, text([*ROWS, ROWS[2], ROWS[2]]), 2
    ),  # D13
    "copies": Case("copy", "a.en", 1, WARNING, {"a.de": text(ENGLISH)}, 6),  # M08 D14
    "length ratio": target("length-ratio", 3, WARNING, text(with_line(GERMAN, 3, "Gut. " * 30))),
    "too long": target("too-long", 2, WARNING, text(with_line(GERMAN, 2, "q x " * 10))),
}


def splits(folder: Path, files: dict[str, bytes | None]) -> dict[str, ParallelFiles]:
    """Write the files, clean ones where a side has none, and say how `fit` would be given them."""
    parts = {}
    tables = {"tsv": "tsv", "jsonl": "jsonl", "tmx": "tmx"}
    for name, data in {"a.en": text(ENGLISH), "a.de": text(GERMAN), **files}.items():
        if data is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(data)
    for stem, split in (("a", "train"), ("v", "valid"), ("t", "test")):
        for ending, form in tables.items():
            if f"{stem}.{ending}" in files:
                parts[split] = ParallelFiles(**{form: folder / f"{stem}.{ending}"})
        if split not in parts and (stem == "a" or f"{stem}.en" in files):
            parts[split] = ParallelFiles(source=folder / f"{stem}.en", target=folder / f"{stem}.de")
    return parts


def check(folder: Path, files: dict[str, bytes | None]) -> Report:
    return examine(splits(folder, files), vocab_size=200, max_length=MAX_LENGTH)


def refusal(folder: Path, files: dict[str, bytes | None]) -> str:
    """What `fit` says when it reads these files and will not have them, or ""."""
    try:
        for name, part in splits(folder, files).items():
            read_corpus(part, "", Filters() if name == "train" else None)
    except UserError as error:
        return str(error)
    return ""


def test_there_are_many_broken_files():
    assert len(CASES) >= 25


@pytest.mark.parametrize("name", CASES)
def test_a_broken_file_is_named_with_its_kind_and_line(tmp_path, name):
    case = CASES[name]
    found = {fault.kind: fault for fault in check(tmp_path, case.files).faults}
    assert case.kind in found, found
    fault = found[case.kind]
    place = (fault.file, fault.line, fault.count, fault.severity)
    assert place == (str(tmp_path / case.file), case.line, case.count, case.severity)
    assert "\n" not in str(fault)
    assert str(fault).startswith(fault.place)


@pytest.mark.parametrize("name", CASES)
def test_what_is_unsafe_is_what_fit_refuses_in_the_same_words(tmp_path, name):
    (tmp_path / "check").mkdir()
    (tmp_path / "fit").mkdir()
    faults = check(tmp_path / "check", CASES[name].files).faults
    unsafe = [str(fault).replace("check", "fit") for fault in faults if fault.unsafe]
    message = refusal(tmp_path / "fit", CASES[name].files)
    assert bool(unsafe) == bool(message)
    assert not message or message in unsafe
