"""`translate trace --predict`: ask for the shape of each stage before it is shown."""

from __future__ import annotations

import re

from translate.commands import console
from translate.insight.trace import Rule


class ShapeQuiz:
    """Quiz that asks for shapes and counts the right answers."""

    INSTRUCTIONS = (
        "Answer with numbers or letters, such as 4, 7 or a, b; an empty line skips a question."
    )

    def __init__(self, sizes: dict[str, int]) -> None:
        """Start a quiz; `sizes` maps each letter of the shapes to its number."""
        self._sizes = sizes
        self._asked = self._right = 0

    def ask(self, rule: Rule) -> str:
        """Ask for the shape of `rule.stage`; return "right", or what is wrong and why."""
        answer = console.ask(f"   shape of {rule.stage}? ")
        given, expected = _read_shape(answer, self._sizes), rule.predict(self._sizes)
        self._asked += 1
        if given == expected:
            self._right += 1
            return "right"
        if not answer.strip():
            mistake = "no answer"
        elif given is None:
            mistake = "that is not a shape; write for example 4, 7"
        elif given == expected[::-1]:
            mistake = "wrong, rows and columns are swapped"
        elif len(given) != len(expected):
            mistake = f"wrong, the shape has {len(expected)} numbers, not {len(given)}"
        else:
            mistake = "wrong"
        return f"{mistake}: {_reason(rule)}"

    def score(self) -> str:
        return f"{self._right} of {self._asked} shapes right"


def _reason(rule: Rule) -> str:
    if len(rule.operands) == 1:
        return "softmax changes the numbers, but not the shape"
    (rows, inner), (_, columns) = rule.operands
    return f"{rule} sums over {inner} and keeps {rows} rows and {columns} columns"


def _read_shape(answer: str, sizes: dict[str, int]) -> tuple[int, ...] | None:
    """Read "6, 2", "(6, 2)", "6x2" or the letters "n, d_k"; return None if it is not a shape."""
    words = list(filter(None, re.split(r"[\s,×]+|\bx\b|(?<=\d)x(?=\d)", answer.strip(" \n()[]"))))
    if not words or not all(word in sizes or word.isdecimal() for word in words):
        return None
    return tuple(sizes.get(word) or int(word) for word in words)
