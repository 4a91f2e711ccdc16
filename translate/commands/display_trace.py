"""The report of `translate trace`: five stages of attention, then one token computed alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from translate.commands.shape_quiz import INSTRUCTIONS, ShapeQuiz
from translate.insight.trace import Trace, compare_stages, row_of, single_token

_MAX_NUMBERS = 8  # shown of each row; twice as many in a row with one number per token
_MAX_ROWS = 8  # larger weight matrices are not shown


class Report:
    """The lines about one attention head, one method per stage."""

    def __init__(self, trace: Trace, quiz: ShapeQuiz | None = None) -> None:
        """With a `quiz`, the report asks for each shape before showing it."""
        self._trace = trace
        self._quiz = quiz
        self._rules = {rule.stage: rule for rule in trace.rules}

    def lines(self, token: int) -> Iterator[str]:
        """Yield all lines; at the end token number `token`, counted from 0, is computed alone."""
        yield "softmax(queries · keysᵀ / √d_k) · values, in five stages:"
        if self._quiz:
            yield INSTRUCTIONS
        for stage in (self._take_input, self._project, self._score, self._weight, self._combine):
            yield ""
            yield from stage()
        yield ""
        yield from self._compute_alone(token)
        if self._quiz:
            yield ""
            yield self._quiz.score()

    def _take_input(self) -> Iterator[str]:
        trace = self._trace
        yield f"1  take the input   x: {tuple(trace.x.shape)}"
        yield from _table(trace.x, trace.rows)
        if trace.memory is not trace.x:
            yield f"   memory (the encoder output): {tuple(trace.memory.shape)}"
            yield from _table(trace.memory, trace.columns)

    def _project(self) -> Iterator[str]:
        yield "2  project the input"
        for name, matrix in zip(("query", "key", "value"), self._trace.matrices, strict=True):
            if len(matrix) <= _MAX_ROWS:
                yield f"   W_{name}: {tuple(matrix.shape)}"
                yield from _table(matrix, [""] * len(matrix))
        yield from self._show("queries", self._trace.rows)
        yield from self._show("keys", self._trace.columns)
        yield from self._show("values", self._trace.columns)

    def _score(self) -> Iterator[str]:
        yield "3  score every pair"
        yield from self._show("scores", self._trace.rows, self._trace.columns)

    def _weight(self) -> Iterator[str]:
        yield "4  turn scores into weights"
        yield from _draw_mask(self._trace.mask, self._trace.rows)
        yield "   √d_k: a sum of d_k products has √d_k times the standard deviation of one product;"
        yield "   dividing by √d_k undoes this"
        yield from self._show("weights", self._trace.rows, self._trace.columns)
        sums = self._trace.stages.weights.sum(-1)
        yield f"   row sums: {sums.min():.4f} to {sums.max():.4f}"

    def _combine(self) -> Iterator[str]:
        yield "5  combine the values"
        yield from self._show("context", self._trace.rows)
        yield "   With several heads, their contexts are concatenated and projected (out_proj)."

    def _show(
        self, stage: str, rows: Sequence[str], columns: Sequence[str] | None = None
    ) -> Iterator[str]:
        """Yield formula, question, predicted shape, actual shape and numbers of one stage."""
        rule, numbers = self._rules[stage], getattr(self._trace.stages, stage)
        yield f"   {stage} = {rule.formula}"
        if self._quiz:
            yield f"   {self._quiz.ask(rule)}"
        predicted, actual = rule.predict(self._trace.sizes), tuple(numbers.shape)
        yield f"   by the rule {rule} = {predicted}"
        yield f"   actual      {actual}{'' if actual == predicted else '   NOT BY THE RULE'}"
        yield from _table(numbers, rows, columns)

    def _compute_alone(self, token: int) -> Iterator[str]:
        trace = self._trace
        yield f'Token {token + 1}, "{trace.rows[token]}", computed alone, and its row above:'
        batched, alone = row_of(trace.stages, token), single_token(trace, token)
        for stage, numbers in alone.items():
            difference = (batched[stage].double().cpu() - numbers.double()).abs().max().item()
            shown = _row(numbers) if numbers.ndim == 1 else f"  all {len(numbers)} tokens"
            yield f"   {stage:<8}{shown}   largest difference {difference:.0e}"
        yield f"   First stage that disagrees: {compare_stages(batched, alone) or 'none'}"


def _table(
    matrix: Tensor, names: Sequence[str], columns: Sequence[str] | None = None
) -> Iterator[str]:
    """Yield one line per row of `matrix`, after its name; `columns` are the column headings."""
    width = max(map(len, names))
    if columns:
        headings = "".join(f"{name[:8]:>9}" for name in columns[: 2 * _MAX_NUMBERS])
        yield f"     {'':<{width}}{headings}"
    for name, row in zip(names, matrix, strict=True):
        yield f"     {name:<{width}}{_row(row, 2 * _MAX_NUMBERS if columns else _MAX_NUMBERS)}"


def _row(numbers: Tensor, shown: int = _MAX_NUMBERS) -> str:
    text = "".join(f"{number:9.4f}" for number in numbers[:shown].tolist())
    return f"{text}{' ...' if len(numbers) > shown else ''}"


def _draw_mask(mask: Tensor | None, names: Sequence[str]) -> Iterator[str]:
    if mask is None:
        yield "   mask: none, every token may attend to every token"
        return
    width = max(map(len, names))
    yield "   mask: # may attend, . may not (its weight is exactly 0)"
    for name, row in zip(names, mask.tolist(), strict=True):
        yield f"     {name:<{width}}  {' '.join('#' if allowed else '.' for allowed in row)}"
