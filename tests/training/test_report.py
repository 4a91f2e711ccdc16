"""`translate test`: its output, its result files, and scoring of other files."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from translate.decoding.translation import Translation
from translate.errors import UserError
from translate.evaluation.report import report
from translate.text.corpus import Pair
from translate.training.data import read_files

ENGLISH = ["The cat and the house are here.", "The tree is there.", "The day and the man."]
GERMAN = ["Katze und Haus sind hier.", "Der Baum ist dort.", "Tag und Mann."]


def write(folder: Path, **files: list[str]) -> list[Path]:
    """write(folder, en=[...]) writes lines to folder/en."""
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [folder / name for name in files]


def results(folder: Path) -> list[str]:
    """The result files of `translate test` in the folder of a run."""
    return sorted(
        path.name
        for path in folder.glob("*")
        if path.name.count(".") > 1 and ".tfevents" not in path.name
    )


def test_greedy_and_beam_search_have_a_table_each(run, settings, trained):  # M07
    version = r"version:\d[\d.]+"
    bleu = rf"nrefs:1\|bs:1000\|seed:12345\|case:CASE\|eff:no\|tok:13a\|smooth:exp\|{version}"
    chrf = rf"nrefs:1\|bs:1000\|seed:12345\|case:mixed\|eff:yes\|nc:6\|nw:0\|space:no\|{version}"
    score = r" +\d+\.\d\d  95 %: \d+\.\d\d to \d+\.\d\d +"
    table = [
        "BLEU" + score + bleu.replace("CASE", "mixed"),
        "BLEU lowercase" + score + bleu.replace("CASE", "lc"),
        "chrF" + score + chrf,
        "95 % intervals  unreliable: fewer than 30 sentences",
        r"length ratio +\d+\.\d{3}",
        r"exactly right   0\.0% \(0 of 4\)",
        r"limit reached   \d+\.0% \([0-4] of 4\)",
        r"copied source   0\.0% \(0 of 4\)",
        r"repeats itself  \d+\.0% \([0-4] of 4\)",
    ]
    expected = ["test: 4 sentences, greedy", *table, "", "test: 4 sentences, beam 5", *table]
    outcome = run("test", settings, "--ckpt_path", trained)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert len(lines) == len(expected)
    for line, pattern in zip(lines, expected, strict=True):
        assert re.fullmatch(pattern, line)
    assert outcome.err.startswith(f"model {trained}/checkpoints/best.ckpt\n")


def test_beam_width_and_length_penalty_are_settings(run, settings, trained):
    outcome = run("test", settings, "--ckpt_path", trained, "--beam", 2, "--length_penalty", 0.5)
    assert "test: 4 sentences, beam 2" in outcome.out.splitlines()
    stored = json.loads((trained / "test.beam2.json").read_text())
    assert (stored["beam"], stored["length_penalty"]) == (2, 0.5)


def test_a_penalty_for_greedy_search_is_said_to_have_no_effect(run, settings, trained):
    args = ("test", settings, "--ckpt_path", trained, "--beam", 1)
    warning = "warning: length_penalty has no effect with beam 1, which is greedy search"
    assert warning in run(*args, "--length_penalty", 3).err.splitlines()
    assert "warning" not in run(*args).err


@pytest.mark.parametrize(("beam", "penalty"), [(0, -1.0), (10**20, 20.0)])
def test_a_search_that_cannot_be_is_refused_before_any_sentence(
    run, settings, trained, beam, penalty
):
    settings |= {"beam": beam, "length_penalty": penalty}
    refused = run("test", settings, "--ckpt_path", trained)
    assert (refused.code, refused.out) == (2, "")
    first, second = refused.err.splitlines()
    assert first.endswith(f"my.yaml:1: beam must be from 1 to 1,000, not {beam}")
    assert second.endswith(f": length_penalty must be from 0 to 10, not {penalty}")


def test_translations_and_scores_lie_beside_the_run(run, settings, trained):
    outcome = run("test", settings, "--ckpt_path", trained)
    names = [f"test.{search}.{kind}" for search in ("beam5", "greedy") for kind in ("json", "txt")]
    assert results(trained) == names
    lines = outcome.err.splitlines()
    for search in ("greedy", "beam5"):
        stem = trained / f"test.{search}"
        assert f"translations: {stem}.txt, scores: {stem}.json" in lines
        assert len((trained / f"test.{search}.txt").read_text().split("\n")) == 4 + 1
    stored = json.loads((trained / "test.greedy.json").read_text())
    assert stored["sentences"] == 4
    value = stored["metrics"]["chrF"]["value"]
    assert f"chrF            {value:6.2f}" in outcome.out
    assert {"exact", "length_ratio", "limit_reached", "copied_source", "repeats_itself"} < {*stored}


class Fixed:
    """A translator that always returns the same text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def translate_detailed(self, sentences: list[str], **_) -> list[Translation]:
        return [Translation(self.text, []) for _ in sentences]


def scored(text: str, folder: Path, beam: int = 1) -> list[str]:
    """The printed lines for one pair; results are written to `folder`."""
    search = {"beam": beam, "length_penalty": 1.0}
    place = {"checkpoint": "best.ckpt", "results_path": lambda name: folder / name}
    return list(
        report(Fixed(text), [Pair("One cat.", "Eine Katze.")], name="test", **search, **place)
    )


def test_existing_results_are_not_replaced(tmp_path, caplog):
    caplog.set_level("INFO")
    scored("Eine Katze.", tmp_path)
    scored("Eine Katze.", tmp_path)
    assert results(tmp_path) == ["test.greedy.json", "test.greedy.txt"]
    assert "overwritten" not in caplog.text
    (tmp_path / "test.greedy.txt").write_text("mine")
    (tmp_path / "test.greedy_2.json").mkdir()
    caplog.clear()
    scored("Eine Katze.", tmp_path)
    assert (tmp_path / "test.greedy.txt").read_text() == "mine"
    assert (tmp_path / "test.greedy_3.txt").read_text() == "Eine Katze.\n"
    assert caplog.messages == [
        f"{tmp_path}/test.greedy.txt: existing result files are never overwritten",
        f"{tmp_path}/test.greedy_2.txt: existing result files are never overwritten",
        f"translations: {tmp_path}/test.greedy_3.txt, scores: {tmp_path}/test.greedy_3.json",
    ]


def test_a_beam_of_one_is_greedy_search_alone(tmp_path):
    assert not any("beam" in line for line in scored("Eine Katze.", tmp_path, beam=1))
    lines = scored("Eine Katze.", tmp_path, beam=3)
    assert lines[lines.index("test: 1 sentences, beam 3") - 1] == ""


def test_a_folder_that_cannot_be_written_to_costs_no_scores(run, settings, trained, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    outcome = run("test", settings, "--ckpt_path", trained, "--beam", 1)
    assert outcome.code == 1
    assert len(outcome.out.splitlines()) == 10
    message = f"translate: cannot write {trained}/test.greedy.txt: No space left on device"
    assert outcome.err.splitlines()[-1] == message
    assert results(trained) == []


# F10
def test_results_that_cannot_be_saved_are_announced_before_the_work(tmp_path, caplog):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "none", tmp_path / ("n" * 256)):
        caplog.clear()
        lines = scored("Eine Katze.", folder, beam=2)
        assert "test: 1 sentences, beam 2" in lines
        (message,) = caplog.messages
        assert message.startswith("translations and scores are only printed, not saved: cannot")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# N44
def test_intervals_of_few_sentences_are_called_unreliable(tmp_path):
    pairs = [Pair("One cat.", "Eine Katze.")]
    tables = {}
    for count in (29, 30):
        table = report(
            Fixed("Eine Katze."),
            pairs * count,
            name=str(count),
            beam=1,
            length_penalty=1.0,
            checkpoint="best.ckpt",
            results_path=lambda name: tmp_path / name,
        )
        tables[count] = [line for line in table if "unreliable" in line]
    assert tables == {29: ["95 % intervals  unreliable: fewer than 30 sentences"], 30: []}


def test_each_challenge_file_has_a_line(run, settings, trained, tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    for name in ("gender", "articles"):
        (folder / f"{name}.tsv").write_text("The cat\tDie Katze\nA cat\tEine Katze\n")
    args = ("--data.challenge", folder, "--beam", 1)
    outcome = run("test", settings, "--ckpt_path", trained, *args)
    assert outcome.out.splitlines()[10] == ""
    table = outcome.out.splitlines()[11:]
    assert table[0].split() == ["challenge,", "greedy", "exactly", "right", "BLEU", "chrF"]
    assert [line.split()[0] for line in table[1:]] == ["articles", "gender"]
    assert all("(0 of 2)" in line for line in table[1:])


def test_other_files_are_scored_without_a_config(run, trained, tmp_path):
    source, reference = write(tmp_path, en=ENGLISH, de=GERMAN)
    plain = run("test", None, "--ckpt_path", trained, "--input", source, "--reference", "de")
    assert plain.code == 0
    headings = [line for line in plain.out.splitlines() if " sentences, " in line]
    assert headings == ["en: 3 sentences, greedy", "en: 3 sentences, beam 5"]
    assert len((trained / "en.beam5.txt").read_text().splitlines()) == 3
    for path in (source, reference):
        path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes()))
    packed = run("test", None, "--ckpt_path", trained, "--input", "en.gz", "--reference", "de.gz")
    assert packed.out == plain.out.replace("en:", "en.gz:")


def test_a_blank_line_of_a_challenge_file_is_counted(run, settings, trained, tmp_path):
    folder = tmp_path / "challenge"
    folder.mkdir()
    (folder / "one.tsv").write_text("the cat\tdie Katze\n\tdas Haus\n", encoding="utf-8")
    args = ("--data.challenge", folder, "--beam", 1)
    outcome = run("test", settings, "--ckpt_path", trained, *args)
    assert f"(blank source), first at {folder / 'one.tsv'}:2" in outcome.err


def test_the_config_s_challenge_files_are_no_part_of_other_files(run, settings, trained, tmp_path):
    write(tmp_path, en=ENGLISH, de=GERMAN)
    settings["data"]["challenge"] = str(tmp_path / "missing")
    args = ("--input", "en", "--reference", "de", "--beam", 1)
    outcome = run("test", settings, "--ckpt_path", trained, *args)
    assert outcome.code == 0
    assert "challenge" not in outcome.out


def test_references_change_the_scores_and_nothing_else(run, trained, tmp_path):  # G10
    write(tmp_path, en=ENGLISH, de=GERMAN, other=["Ein anderer Satz"] * 3)
    first, second = (
        run("test", None, "--ckpt_path", trained, "--input", "en", "--reference", name)
        for name in ("de", "other")
    )
    assert first.out != second.out
    for search in ("greedy", "beam5"):
        texts = [(trained / f"en.{search}{mark}.txt").read_text() for mark in ("", "_2")]
        assert texts[0] == texts[1] != ""


@pytest.mark.parametrize(
    ("names", "code", "message"),
    [
        (("en", None), 2, "give both --input and --reference: line n of one must translate"),
        ((None, "de"), 2, "give both --input and --reference: "),
        (("en", "en"), 2, "--input and --reference are the same file: "),
        (("en", "two"), 1, "/en has 3 lines but /"),
        (("en", "none"), 1, "no such file: /"),
        (("empty", "empty2"), 1, "no sentence pairs in the data: /"),
        (("en", "blank"), 1, "left out 3 (blank target), first at /"),
    ],
)  # M03 M04 M06 M08
def test_files_that_cannot_be_scored_are_refused(tmp_path, names, code, message):
    write(tmp_path, en=ENGLISH, de=GERMAN, two=GERMAN[:2], blank=[""] * 3, empty=[], empty2=[])
    with pytest.raises(UserError) as caught:
        read_files(*(name and tmp_path / name for name in names))
    assert message in str(caught.value)
    assert caught.value.exit_code == code


def test_unequal_counts_name_both_files_and_nothing_is_left(run, trained, tmp_path):  # M06
    source, reference = write(tmp_path, en=ENGLISH, de=GERMAN[:2])
    outcome = run("test", None, "--ckpt_path", trained, "--input", "en", "--reference", "de")
    assert outcome.err == (
        f"translate: {source}:3: {source} has 3 lines but {reference} has 2; "
        "line n of one must translate line n of the other\n"
    )
    assert (outcome.code, outcome.out, results(trained)) == (1, "", [])


def test_blank_lines_are_left_out_and_counted(run, trained, tmp_path):  # M04
    english, german = [*ENGLISH, "", "Three"], [GERMAN[0], "\u00a0", GERMAN[2], "", "Drei"]
    source, reference = write(tmp_path, en=english, de=german)
    args = ("--input", "en", "--reference", "de", "--beam", 1)
    outcome = run("test", None, "--ckpt_path", trained, *args)
    assert outcome.err.splitlines()[:2] == [
        f"left out 1 (blank target), first at {reference}:2: 'The tree is there.' / '\\xa0'",
        f"left out 1 (blank on both sides), first at {source}:4: '' / ''",
    ]
    assert outcome.out.startswith("en: 3 sentences, greedy\n")


def test_a_blank_line_at_the_end_of_one_file_is_no_matter(run, trained, tmp_path):
    write(tmp_path, en=ENGLISH, de=[*GERMAN, ""])
    args = ("--input", "en", "--reference", "de", "--beam", 1)
    outcome = run("test", None, "--ckpt_path", trained, *args)
    assert outcome.out.startswith("en: 3 sentences, greedy\n")


def test_a_set_of_one_word_has_scores(run, trained, tmp_path):  # M05
    write(tmp_path, en=["cat"], de=["Katze"])
    args = ("--input", "en", "--reference", "de", "--beam", 1)
    outcome = run("test", None, "--ckpt_path", trained, *args)
    assert outcome.code == 0
    assert "eff:yes|tok:13a" in outcome.out.splitlines()[1]
