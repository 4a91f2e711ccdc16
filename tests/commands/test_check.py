"""`translate check`: its report as text and as JSON, and its exit code."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from translate import cli
from translate.text.corpus import Pair
from translate.text.split import split_by_source
from translate.text.tokenizer import Tokenizer

ROOT = Path(__file__).parents[1]

PAIRS = [
    Pair("The house is old.", "Das Haus ist alt."),
    Pair("You know that man.", "Du kennst den Mann."),
    Pair("I drink tea.", "Ich trinke Tee."),
]
TABLE = "".join(f"{source}\t{target}\n" for source, target in PAIRS)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name: str, data: str | bytes) -> None:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


@pytest.fixture
def check(capsys):
    """Runs the command; returns its exit code and its output. Nothing goes to standard error."""

    def _check(*argv: str) -> tuple[int, str]:
        code = cli.main(["check", *argv])
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, captured.out

    return _check


@pytest.fixture
def report(check):
    """Runs the command with --json; returns its exit code and the object."""

    def _report(*argv: str) -> tuple[int, dict]:
        code, out = check("--json", *argv)
        return code, json.loads(out)

    return _report


def test_a_clean_file_is_safe(check):
    write("a.tsv", TABLE)
    code, out = check("a.tsv")
    assert code == 0
    assert out.splitlines() == [
        "                                       train",
        "pairs                                      3",
        "longer than 256                            0",
        "characters not in train                0.00%",
        "source: median / 99 % / longest   6 / 6 / 18",  # the longest is the one held out
        "target: median / 99 % / longest   6 / 6 / 17",
        "",
        "Lengths in pieces of a vocabulary of 101.",
        "The training text supports vocabularies of 24 to 101 pieces.",
        "",
        "safe to train on: no problems found",
    ]


def test_problems_follow_the_table_worst_first(check):
    write("a.en", "One\ntab\there\ntab\ttoo\n")
    write("a.de", b"\xef\xbb\xbfEins\nZw\xf6lf\n\n")
    code, out = check("a.en", "a.de")
    assert code == 1
    lines = out.splitlines()
    assert lines[1:3] == [
        "pairs                                     2",
        "left out: blank-target                    1",
    ]
    assert lines[lines.index("") + 3 :] == [
        "",
        "unsafe   not-utf-8              a.de:2",
        "         byte 3 (0xf6) is not UTF-8",
        "         if it is Windows-1252: iconv -f CP1252 -t UTF-8 OLD > NEW",
        "",
        "warning  tab                    a.en:2   2 lines",
        "         a tab inside a sentence: 'tab\\there'",
        "         it is read as a space; pass a table as one file",
        "",
        "warning  blank-target           a.de:3",
        "         left out: blank target: 'tab\\ttoo' / ''",
        "         translate the line, or remove it from both sides",
        "",
        "note     byte-order-mark        a.de:1",
        "         a byte order mark before the first word",
        "         it is removed",
        "",
        "NOT SAFE to train on: 1 unsafe, 2 warnings, 1 note",
    ]


@pytest.mark.parametrize("encoding", [None, "utf-16", "utf-16-le"])
def test_of_a_file_that_cannot_be_read_only_the_problem_is_printed(check, encoding):
    if encoding:
        write("a.tsv", TABLE.encode(encoding))
    code, out = check("a.tsv")
    assert code == 1
    heading, *_, blank, verdict = out.splitlines()
    assert heading.startswith("unsafe ")
    assert (blank, verdict) == ("", "NOT SAFE to train on: 1 unsafe")
    write("b.tsv", TABLE)
    _, out = check("b.tsv", "--valid", "a.tsv")
    assert out.split("\n", maxsplit=1)[0].split() == ["train"]


def test_the_json_report_is_one_object(report):
    write("a.en", "One\ntab\there\nThree\n")
    write("a.de", "Eins\nZwei\n")
    code, found = report("a.en", "a.de")
    assert code == 1
    assert (found["pairs"], found["safe"]) == (2, False)
    assert found["faults"] == [
        {
            "kind": "unequal-counts",
            "file": "a.en",
            "line": 3,
            "lines": [3],
            "count": 1,
            "severity": "unsafe",
            "unsafe": True,
            "what": "a.en has 3 lines but a.de has 2",
            "todo": "line n of one must translate line n of the other",
            "example": "",
            "message": "a.en:3: a.en has 3 lines but a.de has 2; "
            "line n of one must translate line n of the other",
        },
        {
            "kind": "tab",
            "file": "a.en",
            "line": 2,
            "lines": [2],
            "count": 1,
            "severity": "warning",
            "unsafe": False,
            "what": "a tab inside a sentence",
            "todo": "it is read as a space; pass a table as one file",
            "example": r"'tab\there'",
            "message": r"a.en:2: a tab inside a sentence, such as 'tab\there'; "
            "it is read as a space; pass a table as one file",
        },
    ]
    assert found["vocabulary"].keys() == {"smallest", "largest", "pieces"}


def test_pairs_counts_training_pairs_and_every_split_is_checked(report):
    write("a.tsv", TABLE)
    write("v.en", "It is old.\n")
    write("v.de", "Das ist alt\0.\n")
    write("t.tsv", "Das\n")
    code, found = report("a.tsv", "--valid", "v.en", "v.de", "--test", "t.tsv")
    assert code == 1
    assert found["pairs"] == 3
    pairs = {name: split["pairs"] for name, split in found["splits"].items()}
    assert pairs == {"train": 3, "valid": 1, "test": 0}
    places = [(fault["file"], fault["line"], fault["kind"]) for fault in found["faults"]]
    assert places == [
        ("v.de", 1, "nul-byte"),
        ("t.tsv", 0, "no-pairs"),
        ("t.tsv", 1, "few-columns"),
        ("v.de", 1, "unknown-characters"),
    ]


OBJECTS = "".join(f'{{"en": "{source}", "de": "{target}"}}\n' for source, target in PAIRS)
UNITS = "".join(
    f'<tu><tuv xml:lang="en"><seg>{source}</seg></tuv>'
    f'<tuv xml:lang="de"><seg>{target}</seg></tuv></tu>'
    for source, target in PAIRS
)


@pytest.mark.parametrize(
    ("name", "data", "options"),
    [
        ("a.tsv", TABLE, []),
        ("a.txt", TABLE, []),
        ("a.tsv.gz", gzip.compress(TABLE.encode()), []),
        ("a.tsv", TABLE.replace("\t", "\t7\t"), ["--columns", "1", "3"]),
        ("a.jsonl", OBJECTS, []),
        ("a.JSONL.gz", gzip.compress(OBJECTS.encode()), []),
        ("a.jsonl", OBJECTS.replace('"de"', '"ger"'), ["--fields", "en", "ger"]),
        ("a.tmx", f"<tmx><body>{UNITS}</body></tmx>", []),
        (
            "a.tmx",
            f"<tmx><body>{UNITS}</body></tmx>".replace('"de"', '"nl"'),
            ["--languages", "en", "nl"],
        ),
    ],
)
def test_the_name_of_a_single_file_tells_its_format(report, name, data, options):
    write(name, data)
    code, found = report(name, *options)
    assert (code, found["pairs"], found["faults"]) == (0, 3, [])


CONFIG = """
data:
  train: {tsv: a.tsv}
  valid:
    - {source: v.en, target: v.de}
    - {tsv: w.tsv}
  vocab_size: 60
  batch_tokens: 512
model: {max_length: 5, d_model: 64}
trainer: {max_epochs: 3}
"""


def test_a_config_file_is_read_as_fit_reads_it(report):
    """Paths are relative to the file, sources are joined, limits are those of the run."""
    write("my/a.tsv", TABLE)
    write("my/v.en", "The house.\n")
    write("my/v.de", "Das Haus.\n")
    write("my/w.tsv", "You.\tIch.\n")
    write("my/own.yaml", CONFIG)
    code, found = report("--config", "my/own.yaml")
    assert found["pairs"] == 3
    assert found["splits"]["valid"]["pairs"] == 2
    assert {fault["kind"] for fault in found["faults"]} == {"too-long"}
    assert code == 1  # all three are
    assert found["faults"][0]["file"] == str(Path.cwd() / "my" / "a.tsv")
    code, found = report("--config", "my/own.yaml", "--max-length", "64")
    assert (code, found["faults"]) == (0, [])


def test_the_filters_of_a_config_file_are_applied(report):
    write("a.tsv", TABLE * 2)
    for value, pairs in (("true", 3), ("false", 6)):
        write(
            "own.yaml",
            f"data: {{train: {{tsv: a.tsv}}, filters: {{drop_duplicates: {value}}}}}",
        )
        assert report("--config", "own.yaml")[1]["pairs"] == pairs


def test_pieces_of_a_given_tokenizer_are_counted(report):
    write("a.tsv", TABLE)
    tokenizer, _ = Tokenizer.train((side for pair in PAIRS for side in pair), vocab_size=40)
    write("my.model", tokenizer.to_bytes())
    _, found = report("a.tsv", "--tokenizer", "my.model")
    longest = max(len(tokenizer.encode(pair.source)) for pair in PAIRS)
    assert found["splits"]["train"]["source"]["longest"] == longest + 1


def test_a_tokenizer_that_cannot_be_read_is_a_problem(report):
    write("a.tsv", TABLE)
    write("own.yaml", "data: {train: {tsv: a.tsv}, tokenizer: none.model}\n")
    for argv in (["a.tsv", "--tokenizer", "none.model"], ["--config", "own.yaml"]):
        code, found = report(*argv)
        assert (code, found["pairs"], len(found["faults"])) == (1, 3, 1)
        assert found["faults"][0]["what"].startswith("cannot read the tokenizer ")


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        ([], "nothing to check: give one file with both languages, two files, or --config"),
        (
            ["a.tsv", "b.tsv", "c.tsv"],
            "3 files: give one with both languages, or source and target",
        ),
        (["a.tsv", "--config", "own.yaml"], "give files or --config, not both"),
        (
            ["--config", "typo.yaml", "--columns", "2", "1", "--fields", "a", "b"],
            "--columns and --fields: with --config, set this in the config file",
        ),
        (["a.tsv", "--max-length", "0"], "--max-length: expected a whole number from 2, got '0'"),
        (
            ["a.en", "a.de", "--columns", "1", "2"],
            "--columns: no file is a .tsv",
        ),
        (["a.tsv", "--columns", "1", "1"], "columns: source and target are both 1"),
        (["--config", "ratio.yaml"], "filters.length_ratio must be 1 or more, not 0.5"),
        (["a.en", "a.en"], "source and target are the same file: a.en"),
        (["--config", "none.yaml"], "none.yaml"),
        (["--config", "empty.yaml"], "data.train is not set"),
        (
            ["--config", "typo.yaml"],
            "typo.yaml:1: no setting data.train.tvs; did you mean data.train.tsv?",
        ),
        (["--config", "no.yaml"], "a section of settings"),
        (["--config", "three.yaml"], "a section of settings"),
        (
            ["--config", "filter.yaml"],
            "filter.yaml:1: no setting data.filters.ratio; did you mean data.filters.length_ratio?",
        ),
        (["--config", "tab.yaml"], "tab.yaml:2: not YAML: "),
        (["--config", "latin.yaml"], "latin.yaml: not UTF-8 text"),
        (["--config", "null.yaml"], "null.yaml:2: model.max_length: expected int, but it"),
        (["--config", "least.yaml"], "least.yaml:1: data.vocab_size must be 5 or more, not 4"),
        (["--config", "trainer.yaml"], "no setting trainer.max_epoch; did you mean"),
    ],
)
def test_an_invalid_command_line_or_config_file_exits_with_2(capsys, argv, complaint):
    write("a.tsv", TABLE)
    write("empty.yaml", "model: {}\n")
    write("ratio.yaml", "data: {train: {tsv: a.tsv}, filters: {length_ratio: 0.5}}\n")
    write("typo.yaml", "data: {train: {tvs: a.tsv}}\n")
    write("no.yaml", "data: {train: {tsv: a.tsv}, filters: null}\n")
    write("three.yaml", "data: {train: {tsv: a.tsv}}\nmodel: 3\n")
    write("filter.yaml", "data: {train: {tsv: a.tsv}, filters: {ratio: 3}}\n")
    write("tab.yaml", "data:\n\ttrain: a.tsv\n")
    write("latin.yaml", "name: ü\n".encode("latin-1"))
    write("null.yaml", "data: {train: {tsv: a.tsv}}\nmodel: {max_length: null}\n")
    write("trainer.yaml", "data: {train: {tsv: a.tsv}}\ntrainer: {max_epoch: 3}\n")
    write("least.yaml", "data: {train: {tsv: a.tsv}, held_out: -1, vocab_size: 4}\n")
    try:
        code = cli.main(["check", *argv])
    except SystemExit as end:
        code = end.code
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert complaint in captured.err.splitlines()[-1]


def test_without_a_config_file_torch_is_not_imported():
    write("a.tsv", TABLE)
    code = (
        "import sys\n"
        "from translate.cli import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "assert not {'torch', 'lightning'} & sys.modules.keys()\n"
    )
    command = [sys.executable, "-c", code, "check", "a.tsv"]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_file_name_that_is_not_utf8_is_spelled_out():
    for option in ([], ["--json"]):
        finished = subprocess.run(
            [sys.executable, "-m", "translate", "check", b"sch\xf6n.tsv", *option],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            encoding="utf-8",
        )
        assert (finished.returncode, finished.stderr) == (1, "")
        assert "sch\\udcf6n.tsv" in finished.stdout
    assert json.loads(finished.stdout)["faults"][0]["file"].endswith("sch\udcf6n.tsv")


def test_the_seed_of_the_config_decides_what_is_held_out(report):
    words = " ".join(f"w{n}" for n in range(60))
    pairs = [Pair("Go on.", "Geh weiter."), Pair(words, f"ja {words}")]
    write("a.tsv", "".join(f"{source}\t{target}\n" for source, target in pairs))
    uses = set()
    for seed in range(1, 7):
        config = {"seed_everything": seed, "data": {"train": {"tsv": "a.tsv"}}}
        write("c.yaml", json.dumps({**config, "model": {"max_length": 50}}))
        _, found = report("--config", "c.yaml")
        (fault,) = [fault for fault in found["faults"] if fault["kind"] == "too-long"]
        _, (held_out,) = split_by_source(pairs, held_out=1, seed=seed)
        use = "validate on" if held_out == pairs[1] else "learn from"
        assert fault["what"] == f"more than 50 pieces, and no shorter pair to {use}"
        uses.add(use)
    assert len(uses) == 2
