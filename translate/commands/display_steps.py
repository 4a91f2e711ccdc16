"""`translate decode --steps`: one line per word, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import wcwidth

from translate.commands.console import (
    BOLD,
    DIM,
    GREEN,
    RED,
    YELLOW,
    has_colours,
    paint,
    print_painted,
)
from translate.decoding.translation import Translation
from translate.insight.steps import Steps, WordStep
from translate.text.printable import printable

_HEADINGS = ("word", "probability", "next best", "attended most")
_MIN_PROBABILITY = 0.001  # the table omits less probable candidates
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR_WIDTH = 6  # characters of a bar for an attention weight of 1


def display_steps(steps: Steps, *, as_json: bool) -> Translation:
    """Print a line whenever a word is finished, and the translation at the end; return it.

    The table has colours and bars if the terminal shows colours.
    """
    for number, step in enumerate(steps):
        if number == 0 and not as_json:
            print_painted(_row(_HEADINGS, (DIM,) * 4))
        if as_json:
            print(_json_row(step), flush=True)
        else:
            print_painted(_table_row(step))
    text = steps.translation.text
    print(json.dumps({"translation": text}, ensure_ascii=False) if as_json else text, flush=True)
    return steps.translation


def _json_row(step: WordStep) -> str:
    fields = {
        "word": step.word,
        "probability": step.probability,
        "candidates": [{"word": word, "probability": chance} for word, chance in step.candidates],
        "attended": [{"word": word, "weight": weight} for word, weight in step.attended],
    }
    return json.dumps(fields, ensure_ascii=False)


def _table_row(step: WordStep) -> str:
    probable = [(word, chance) for word, chance in step.candidates if chance >= _MIN_PROBABILITY]
    candidates = "  ".join(f"{word} {chance:.3f}" for word, chance in probable)
    attended = "  ".join(f"{word} {weight:.3f}{_bar(weight)}" for word, weight in step.attended[:3])
    confidence = RED
    if step.probability >= 0.4:
        confidence = GREEN if step.probability >= 0.8 else YELLOW
    columns = (step.word, f"{step.probability:.3f}", candidates, attended)
    return _row(columns, (BOLD, confidence, DIM, ""))


def _row(columns: Sequence[str], colours: Sequence[str]) -> str:
    """Pad the columns to their widths on a terminal, where 犬 takes two columns; paint them."""
    word, probability, candidates, attended = map(printable, columns)
    cells = (
        wcwidth.ljust(word, 16),
        wcwidth.rjust(probability, 11),
        f" {wcwidth.ljust(candidates, 40)}",
        attended,
    )
    return " ".join(paint(cell, colour) for cell, colour in zip(cells, colours, strict=True))


def _bar(share: float) -> str:
    """Draw a number from 0 to 1 as a bar of up to six characters, in eighths of a character."""
    if not has_colours():
        return ""
    eighths = round(share * _BAR_WIDTH * 8)
    return (" " + "█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
