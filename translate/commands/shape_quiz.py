"""`translate trace --predict`: ask for the shape of each stage before it is shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from translate.commands import console

if TYPE_CHECKING:
    from translate.insight.trace import Rule

INSTRUCTIONS = (
    "Answer with numbers or letters, such as 4, 7 or a, b; an empty line skips a question."
)


class ShapeQuiz:
    """Asks for shapes and counts the right answers."""

    def __init__(self, sizes: dict[str, int]) -> None:
        """`sizes` maps each letter of the shapes to its number."""
        self._sizes = sizes
        self._asked = self._right = 0

    def ask(self, rule: Rule) -> str:
        """Ask for the shape of `rule.stage`; return "right", or what is wrong and why."""
        answer = console.ask(f"   shape of {rule.stage}? ")
        given, expected = _read_shape(answer, self._sizes), rule.predict(self._sizes)
        self._asked += 1
        self._right += given == expected
        if given == expected:
            return "right"
        return f"{_mistake(answer, given, expected)}: {_reason(rule)}"

    def score(self) -> str:
        return f"{self._right} of {self._asked} shapes right"


def _mistake(answer: str, given: tuple[int, ...] | None, expected: tuple[int, ...]) -> str:
    if not answer.strip():
        return "no answer"
    if given is None:
        return "that is not a shape; write for example 4, 7"
    if given == expected[::-1]:
        return "wrong, rows and columns are swapped"
    if len(given) != len(expected):
        return f"wrong, the shape has {len(expected)} numbers, not {len(given)}"
    return "wrong"


def _reason(rule: Rule) -> str:
    if len(rule.operands) == 1:
        return "softmax changes the numbers, but not the shape"
    (rows, inner), (_, columns) = rule.operands
    return f"{rule} sums over {inner} and keeps {rows} rows and {columns} columns"


def _read_shape(answer: str, sizes: dict[str, int]) -> tuple[int, ...] | None:
    """Read "6, 2", "(6, 2)", "6x2" or the letters "n, d_k"; return None if it is not a shape."""
    words = re.split(r"[\s,×]+|\bx\b|(?<=\d)x(?=\d)", answer.strip(" \n()[]"))
    numbers = []
    for word in filter(None, words):
        if word not in sizes and not word.isdecimal():
            return None
        numbers.append(sizes.get(word) or int(word))
    return tuple(numbers) or None
