"""Problems and left-out pairs are counted, and described in one line each."""

from __future__ import annotations

import pytest

from translate.errors import UserError
from translate.text.problems import DataError, Problem, ProblemLog, excerpt


@pytest.fixture
def log() -> ProblemLog:
    return ProblemLog(strict=False)


def test_left_out_pairs_are_counted_by_reason_and_the_first_is_kept(log):
    for number in range(1, 6):
        kind, reason = ("copy", "odd one") if number % 2 else ("no-text", "even one")
        log.leave_out(kind, reason, "a.tsv", number, f"source {number}", "ü")
    assert [str(entry) for entry in log.left_out.values()] == [
        "left out 3 (odd one), first at a.tsv:1: 'source 1' / 'ü'",
        "left out 2 (even one), first at a.tsv:2: 'source 2' / 'ü'",
    ]
    first = log.left_out["odd one"]
    assert (first.kind, first.count, first.file, first.line) == ("copy", 3, "a.tsv", 1)


def test_equal_problems_of_a_file_become_one_with_its_first_lines(log):
    for line in range(2, 10):
        log.add(Problem("tab", "a.en", line))
    log.add(Problem("tab", "b.en", 1))
    first, second = log
    assert (first.place, first.count, first.lines) == ("a.en:2", 8, [2, 3, 4, 5, 6])
    assert (second.place, second.count) == ("b.en:1", 1)
    assert str(first).startswith("a.en:2: a tab inside a sentence, in 8 lines; ")


def test_a_strict_log_raises_what_is_unsafe_and_collects_the_rest():
    log = ProblemLog(strict=True)
    log.add(Problem("tab", "a.en", 1))
    with pytest.raises(DataError, match=r"^a\.en:3: "):
        log.add(Problem("nul-byte", "a.en", 3))
    with pytest.raises(UserError, match="unreadable"), log.catch("a.en"):
        raise UserError("unreadable")
    assert [problem.kind for problem in log] == ["tab"]


def test_an_excerpt_is_one_short_line():
    text = excerpt("a\tb\r\u2028c\n", "x" * 1000)
    assert text.splitlines() == [text]
    assert text == r"'a\tb\r\u2028c\n' / " + f"'{'x' * 49}…'"
