"""`translate attend`: pictures and pages of attention weights."""

from __future__ import annotations

import json
import re

import pytest

from translate import cli

SENTENCE = "This is an example."


@pytest.fixture
def attend(checkpoint_file, capsys, tmp_path, monkeypatch):
    """Run the command; returns (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(["attend", *arguments, "--model", str(checkpoint_file)])
        return code, *capsys.readouterr()

    return run


def page(path) -> dict:
    """The data of an HTML page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text)[1])


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("b.svg", b"<?xml"), ("c.HTML", b"<!DOCTYPE html>")]
)
def test_the_suffix_selects_the_format_and_the_translation_is_printed(
    attend, tmp_path, checkpoint_file, name, start
):
    code, out, err = attend(SENTENCE, "-o", name)
    assert (code, out) == (0, "Das ist ein Beispiel.\n")
    assert err == f"model {checkpoint_file}\n"
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_page_needs_no_other_file(attend, tmp_path):
    attend(SENTENCE, "-o", "a.html")
    text = (tmp_path / "a.html").read_text()
    assert not re.search(r"(src|href)\s*=|url\(|@import|https?:", text)
    assert "$maps" not in text


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_every_kind_has_its_words_on_both_axes_and_row_sums_of_one(attend, tmp_path, kind):
    attend(SENTENCE, "-o", "a.html", "--kind", kind, "--words", "--layer", "2")
    maps = page(tmp_path / "a.html")
    source = ["This", "is", "an", "example", ".", "</s>"]
    target = ["Das", "ist", "ein", "Beispiel", "."]
    assert (
        maps["rows"]
        == {
            "cross": [*target, "</s>"],
            "encoder": source,
            "decoder": ["<s>", *target],
        }[kind]
    )
    assert maps["columns"] == (maps["rows"] if kind == "decoder" else source)
    assert maps["titles"] == [f"layer 2, head {head}" for head in range(1, 5)]
    for panel in maps["weights"]:
        for row in panel:
            assert sum(row) == pytest.approx(1, abs=1e-3)


def test_pieces_are_joined_only_with_words(attend, tmp_path):
    attend("My house has a big garden.", "-o", "pieces.html")
    attend("My house has a big garden.", "-o", "words.html", "--words")
    pieces, words = page(tmp_path / "pieces.html"), page(tmp_path / "words.html")
    assert len(pieces["columns"]) > len(words["columns"]) == 8
    assert any(name.startswith("-") for name in pieces["columns"])
    assert "▁" not in "".join(pieces["columns"] + pieces["rows"])


def test_the_prefix_begins_the_translation(attend):
    assert attend("This is a cat.", "-o", "a.png", "--prefix", "Das ist ein ")[1].startswith(
        "Das ist ein "
    )


def test_a_sentence_cannot_end_the_script_of_the_page(attend, tmp_path):
    attend("</script><b>$x ${y}", "-o", "a.html")
    assert page(tmp_path / "a.html")["title"] == "</script><b>$x ${y}"
    assert "</script><b>" not in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "a.jpg"], "must end in .png, .svg, .html"),
        (["-o", "a.png", "--layer", "3"], "--layer 3: this model has only 2 decoder layers"),
        (["-o", "a.png", "--layer", "3", "--kind", "encoder"], "has only 2 encoder layers"),
        (
            ["-o", "a.png", "--prefix", "Das", "--kind", "encoder"],
            "shows only the source",
        ),
        (["-o", "a.png", "--head", "5"], "--head 5: this model has only 4"),
        (["-o", "a.png", "--head", "0"], "expected a whole number from 1, got '0'"),
        (["-o", "a.png", "--kind", "both"], "invalid choice: 'both'"),
        ([], "required: -o/--output"),
    ],
)
def test_an_invalid_command_line_exits_with_2_and_writes_nothing(
    attend, capsys, tmp_path, arguments, said
):
    try:
        code, _, err = attend(SENTENCE, *arguments)
    except SystemExit as stop:
        code, err = stop.code, capsys.readouterr().err
    assert code == 2
    assert said in err
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_reported_before_the_model_is_loaded(attend):
    code, out, err = attend(SENTENCE, "-o", "there/a.png")
    assert (code, out) == (1, "")
    assert "there is no folder" in err and "model" not in err


def test_a_name_that_is_too_long_is_reported_in_one_line(attend):
    code, _, err = attend(SENTENCE, "-o", "a" * 300 + ".png")
    assert code == 1
    assert err.startswith("translate: cannot write aaa") and err.count("\n") == 1


def test_a_blank_sentence_is_refused(attend, capsys):
    with pytest.raises(SystemExit) as stop:
        attend(" ", "-o", "a.png")
    assert stop.value.code == 2
    assert "the sentence is blank" in capsys.readouterr().err
