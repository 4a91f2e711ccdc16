"""`translate decode --steps`: one line per word, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from translate.commands import console

if TYPE_CHECKING:
    from translate.decoding.translation import Translation
    from translate.insight.steps import Steps, WordStep

_HEADINGS = ("word", "probability", "next best", "attended most")
_MIN_PROBABILITY = 0.001  # the table omits less probable candidates
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR_WIDTH = 6  # characters of a bar for an attention weight of 1


def display_steps(steps: Steps, *, as_json: bool) -> Translation:
    """Print a line whenever a word is finished, and the translation at the end; return it.

    The table has colours and bars if the terminal shows colours.
    """
    coloured = console.has_colours()
    for number, step in enumerate(steps):
        if as_json:
            print(json.dumps(_to_json(step), ensure_ascii=False), flush=True)
            continue
        if number == 0:
            print(_row(_HEADINGS, (console.DIM,) * 4 if coloured else None))
        print(_step_row(step, coloured), flush=True)
    text = steps.translation.text
    print(json.dumps({"translation": text}, ensure_ascii=False) if as_json else text, flush=True)
    return steps.translation


def _step_row(step: WordStep, coloured: bool) -> str:
    candidates = "  ".join(
        f"{word} {probability:.3f}"
        for word, probability in step.candidates
        if probability >= _MIN_PROBABILITY
    )
    attended = "  ".join(
        f"{word} {weight:.3f}{f' {_bar(weight)}' if coloured else ''}"
        for word, weight in step.attended[:3]
    )
    columns = (step.word, f"{step.probability:.3f}", candidates, attended)
    colours = (console.BOLD, _confidence_colour(step.probability), console.DIM, None)
    return _row(columns, colours if coloured else None)


def _confidence_colour(probability: float) -> str:
    if probability >= 0.8:
        return console.GREEN
    return console.YELLOW if probability >= 0.4 else console.RED


def _row(columns: Sequence[str], colours: Sequence[str | None] | None) -> str:
    """Pad the columns, then paint them: escape sequences would count as width."""
    word, probability, candidates, attended = columns
    cells = [f"{word:<16}", f"{probability:>11}", f" {candidates:<40}", attended]
    if colours is not None:
        pairs = zip(cells, colours, strict=True)
        cells = [console.paint(cell, colour) if colour else cell for cell, colour in pairs]
    return " ".join(cells)


def _bar(share: float) -> str:
    """Draw a number from 0 to 1 as a bar of up to six characters, in eighths of a character."""
    eighths = round(share * _BAR_WIDTH * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _to_json(step: WordStep) -> dict[str, object]:
    return {
        "word": step.word,
        "probability": step.probability,
        "candidates": [{"word": word, "probability": chance} for word, chance in step.candidates],
        "attended": [{"word": word, "weight": weight} for word, weight in step.attended],
    }
