"""`translate trace`: shapes are predicted, shown and asked for."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace

import pytest
import torch
import wcwidth

from translate import cli
from translate.commands.display_trace import display_trace
from translate.insight.trace import lesson_trace, rules

QUERIES, _, _, SCORES, *_ = rules()
D_K = QUERIES.shape[1]  # its letter
LETTERS = [f"n, {D_K}", f"n x {D_K}", f"n × {D_K}"]
SHAPES = ["6, 2", "6, 2", "6, 2", "6, 6", "6, 6", "6, 2"]


@pytest.fixture
def trace(capsys, monkeypatch):
    """Run the command; returns (exit code, standard output, standard error)."""

    def run(*arguments: str, answers: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
        code = cli.main(["trace", *arguments])
        return code, *capsys.readouterr()

    return run


def differences(out: str) -> list[tuple[str, float]]:
    """Return the largest difference of each stage between one token alone and its row."""
    found = re.findall(r"^   (\w+) .* largest difference ([\d.e+-]+)$", out, re.MULTILINE)
    return [(stage, float(difference)) for stage, difference in found]


def test_the_lesson_needs_no_model_and_shows_the_numbers_of_the_book(trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = trace()
    assert (code, err) == (0, "")
    assert "journey   0.1500   0.2264   0.2199   0.1311   0.0906   0.1820" in out
    assert "journey   0.3061   0.8210" in out
    assert f"by the rule {SCORES} = (6, 6)" in out
    assert "by the rule (n, n) -> (n, n) = (6, 6)" in out  # softmax
    assert out.count("by the rule") == out.count("   actual") == 6
    assert "NOT BY THE RULE" not in out
    assert "mask: none" in out
    assert "row sums: 1.0000 to 1.0000" in out
    stages = [line for line in out.splitlines() if re.match(r"[1-5]  ", line)]
    assert [line[0] for line in stages] == list("12345")


def test_a_token_alone_equals_its_row(trace):
    _, out, _ = trace("--token", "5")
    assert 'Token 5, "one", computed alone' in out
    assert [name for name, _ in differences(out)] == [
        "queries", "keys", "values", "scores", "weights", "context",
    ]  # fmt: skip
    assert all(difference < 1e-6 for _, difference in differences(out))
    assert "First stage that disagrees: none" in out


def test_every_number_of_the_lesson_follows_from_those_shown_before_it(trace):
    _, out, _ = trace()
    blocks = re.findall(r"((?:^ {5}.*\d\.\d{4}\n)+)", out, re.MULTILINE)
    numbers = [
        torch.tensor([[float(n) for n in re.findall(r"-?\d+\.\d{4}", line)] for line in rows])
        for rows in (block.splitlines() for block in blocks)
    ]
    x, w_query, w_key, w_value, queries, keys, values, scores, weights, context = numbers[:10]
    for made, shown in (
        (x @ w_query, queries),
        (x @ w_key, keys),
        (x @ w_value, values),
        (queries @ keys.T, scores),
        ((scores / 2**0.5).softmax(-1), weights),
        (weights @ values, context),
    ):
        torch.testing.assert_close(made, shown, rtol=0, atol=3e-4)


def test_right_answers_are_counted(trace):
    _, out, _ = trace("--predict", answers="\n".join(SHAPES))
    assert out.endswith("6 of 6 shapes right\n")
    assert out.count("   right\n") == 6


@pytest.mark.parametrize("answer", ["(6,2)", "6 x 2", "6x2", "[6, 2]", *LETTERS])
def test_a_shape_can_be_written_in_many_ways(trace, answer):
    _, out, _ = trace("--predict", answers=answer)
    assert out.endswith("1 of 6 shapes right\n")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("2, 6", f"wrong, rows and columns are swapped: {QUERIES} sums over d_in"),
        ("6, 3", f"wrong: {QUERIES} sums over d_in and keeps n rows and {D_K} columns"),
        ("6", "wrong, the shape has 2 numbers, not 1"),
        ("what", f"that is not a shape; write for example 4, 7: {QUERIES} sums over d_in"),
        ("6, -2", "that is not a shape"),
        ("", f"no answer: {QUERIES}"),
    ],
)
def test_a_wrong_shape_is_explained(trace, answer, verdict):
    code, out, _ = trace("--predict", answers=f"{answer}\n")
    assert code == 0
    assert verdict in out
    assert out.endswith("0 of 6 shapes right\n")


def test_the_question_comes_before_the_answer(trace):
    _, out, _ = trace("--predict", answers="\n".join(SHAPES))
    for stage in ("queries", "context"):
        formula, asked = out.index(f"   {stage} = "), out.index(f"shape of {stage}?")
        assert formula < asked < out.index("by the rule", formula)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_head_of_a_trained_model_is_shown_with_its_words(trace, checkpoint_file, kind):
    code, out, err = trace(
        *("This is an example.", "--model", str(checkpoint_file), "--kind", kind),
        *("--layer", "2", "--head", "4", "--token", "3"),
    )
    assert code == 0
    assert err == f"model {checkpoint_file}\n"
    assert out.startswith(f"{kind}, layer 2, head 4: ")
    assert "NOT BY THE RULE" not in out
    assert ("mask: # may attend" in out) == (kind == "decoder")
    found = differences(out)
    assert len(found) == 6 and all(difference < 1e-4 for _, difference in found)
    letters = "T = 6, S = 6" if kind == "cross" else "n = "
    assert letters in out
    first = "example" if kind == "encoder" else "<s>"
    assert re.search(rf"^     {re.escape(first)} ", out, re.MULTILINE)


def test_columns_stand_below_each_other_by_the_width_of_a_terminal(capsys):  # N41
    trace = lesson_trace()
    trace = replace(trace, rows=["犬", "e\u0301", "a\x1b[2J", *trace.rows[3:]], columns=["犬"] * 6)
    display_trace(trace, 0, predict=False)
    tables = re.findall(r"(?:^ {5}.*\d\.\d{4}\n)+", capsys.readouterr().out, re.MULTILINE)
    assert any("犬" in table for table in tables)
    for table in tables:
        lines = [line for line in table.splitlines() if " ..." not in line]
        assert len({wcwidth.width(line) for line in lines}) <= 1


def test_the_mask_is_drawn_as_a_triangle(trace, checkpoint_file):
    _, out, _ = trace("No", "--model", str(checkpoint_file), "--kind", "decoder", "--token", "1")
    drawn = re.findall(r"^     \S+ +([#.](?: [#.])*)$", out, re.MULTILINE)
    size = len(drawn)
    assert size >= 2
    assert drawn == [" ".join("#" * (i + 1) + "." * (size - i - 1)) for i in range(size)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--layer", "1"], "--layer needs a trained model: give a sentence, too"),
        ([" "], "the sentence is blank"),
        (["--token", "7"], "--token 7: there are only 6 tokens"),
        (["Hi.", "--prefix", "Ha"], "--kind encoder shows only the source"),
        (["--token", "x"], "expected a whole number from 1, got 'x'"),
    ],
)
def test_an_invalid_command_line_exits_with_2(trace, capsys, arguments, said):
    try:
        code, out, err = trace(*arguments)
        assert out == ""
    except SystemExit as stop:
        code, err = stop.code, capsys.readouterr().err
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


def test_a_sentence_that_is_too_long_is_shown_as_far_as_it_was_read(trace, checkpoint_file):
    code, out, err = trace("No " * 100, "--model", str(checkpoint_file))
    assert code == 0
    assert "n = 48" in out  # the model's max_length
    assert "the source is too long for this model" in err
