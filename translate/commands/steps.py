"""`translate decode --steps`: each word as it is chosen, for people or for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from translate.decoding.translation import Translation
    from translate.insight.steps import Steps, WordStep

_HEADINGS = ("word", "probability", "next best", "attended most")
_SMALLEST = 0.001  # a candidate less likely than that is not shown
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR = 6  # characters of a whole bar: all of the attention
_GREEN, _YELLOW, _RED, _DIM, _BOLD, _PLAIN = "32", "33", "31", "2", "1", "0"


def show(steps: Steps, *, as_json: bool) -> Translation:
    """A line whenever a word is finished, then the translation.

    In colour and with bars where standard output is a terminal, unless NO_COLOR is set
    (https://no-color.org) or the terminal says that it is "dumb".
    """
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    coloured = terminal and not os.environ.get("NO_COLOR")
    for number, step in enumerate(steps):
        if as_json:
            print(json.dumps(_object(step), ensure_ascii=False), flush=True)
            continue
        if number == 0:
            print(_row(_HEADINGS, (_DIM,) * 4 if coloured else None))
        print(_line(step, coloured), flush=True)
    text = steps.translation.text
    print(json.dumps({"translation": text}, ensure_ascii=False) if as_json else text, flush=True)
    return steps.translation


def _line(step: WordStep, coloured: bool) -> str:
    candidates = [(text, chance) for text, chance in step.candidates if chance >= _SMALLEST]
    attended = [
        f"{text} {share:.3f}{f' {_bar(share)}' if coloured else ''}"
        for text, share in step.attended[:3]
    ]
    sure = _GREEN if step.probability >= 0.8 else _YELLOW if step.probability >= 0.4 else _RED
    columns = (step.word, f"{step.probability:.3f}", _listed(candidates), "  ".join(attended))
    return _row(columns, (_BOLD, sure, _DIM, _PLAIN) if coloured else None)


def _row(columns: Sequence[str], colours: Sequence[str] | None) -> str:
    """Padded before it is painted: signs for colours have no width."""
    word, probability, candidates, attended = columns
    cells = (f"{word:<16}", f"{probability:>11}", f" {candidates:<40}", attended)
    if colours is None:
        return " ".join(cells)
    return " ".join(
        f"\x1b[{colour}m{cell}\x1b[0m" for colour, cell in zip(colours, cells, strict=True)
    )


def _listed(shares: Sequence[tuple[str, float]]) -> str:
    return "  ".join(f"{text} {share:.3f}" for text, share in shares)


def _bar(share: float) -> str:
    """▏ to ██████, in eighths of a character."""
    eighths = round(share * _BAR * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _object(step: WordStep) -> dict[str, object]:
    return {
        "word": step.word,
        "probability": step.probability,
        "candidates": [{"word": text, "probability": chance} for text, chance in step.candidates],
        "attended": [{"word": text, "weight": share} for text, share in step.attended],
    }
