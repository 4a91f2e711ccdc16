"""The report of `translate trace`: five stages of attention, then one token computed alone."""

from __future__ import annotations

from collections.abc import Sequence

import wcwidth
from torch import Tensor

from translate.commands.shape_quiz import ShapeQuiz
from translate.insight.trace import Rule, Trace, compare_stages, row_of, single_token
from translate.text.printable import printable

_MAX_NUMBERS = 8  # numbers shown of a row; twice as many if each number belongs to a token
_MAX_ROWS = 8  # larger weight matrices are not shown


def display_trace(trace: Trace, token: int, *, predict: bool) -> None:
    """Print the report.

    Args:
        trace: the attention head.
        token: the row to compute alone, counted from 0.
        predict: ask for each shape before showing it.
    """
    quiz = ShapeQuiz(trace.sizes) if predict else None
    queries, keys, values, scores, weights, context = trace.rules
    print("softmax(queries · keysᵀ / √d_k) · values, in five stages:")
    if quiz:
        print(quiz.INSTRUCTIONS)

    print(f"\n1  take the input   x: {tuple(trace.x.shape)}")
    _print_table(trace.x, trace.rows)
    if trace.memory is not trace.x:
        print(f"   memory (the encoder output): {tuple(trace.memory.shape)}")
        _print_table(trace.memory, trace.columns)

    print("\n2  project the input")
    for name, matrix in zip(("query", "key", "value"), trace.matrices, strict=True):
        if len(matrix) <= _MAX_ROWS:
            print(f"   W_{name}: {tuple(matrix.shape)}")
            _print_table(matrix, [""] * len(matrix))
    for rule in (queries, keys, values):
        _print_stage(trace, rule, quiz)

    print("\n3  score every pair")
    _print_stage(trace, scores, quiz)

    print("\n4  turn scores into weights")
    _print_mask(trace)
    print("   √d_k: a sum of d_k products has √d_k times the standard deviation of one product;")
    print("   dividing by √d_k undoes this")
    _print_stage(trace, weights, quiz)
    sums = trace.stages.weights.sum(-1)
    print(f"   row sums: {sums.min():.4f} to {sums.max():.4f}")

    print("\n5  combine the values")
    _print_stage(trace, context, quiz)
    print("   With several heads, their contexts are concatenated and projected (out_proj).")

    print(f'\nToken {token + 1}, "{trace.rows[token]}", computed alone, and its row above:')
    _print_comparison(row_of(trace.stages, token), single_token(trace, token))
    if quiz:
        print(f"\n{quiz.score()}")


def _print_stage(trace: Trace, rule: Rule, quiz: ShapeQuiz | None) -> None:
    """Print formula, question, predicted shape, actual shape and numbers of one stage."""
    numbers = getattr(trace.stages, rule.stage)
    print(f"   {rule.stage} = {rule.formula}")
    if quiz:
        print(f"   {quiz.ask(rule)}")
    predicted, actual = rule.predict(trace.sizes), tuple(numbers.shape)
    print(f"   by the rule {rule} = {predicted}")
    print(f"   actual      {actual}{'' if actual == predicted else '   NOT BY THE RULE'}")
    names = {"n": trace.rows, "T": trace.rows, "S": trace.columns}
    rows, columns = rule.shape
    _print_table(numbers, names[rows], names.get(columns))


def _print_mask(trace: Trace) -> None:
    if trace.mask is None:
        print("   mask: none, every token may attend to every token")
        return
    print("   mask: # may attend, . may not (its weight is exactly 0)")
    drawn = ["  " + " ".join(".#"[allowed] for allowed in row) for row in trace.mask.tolist()]
    _print_rows(trace.rows, drawn)


def _print_comparison(batched: dict[str, Tensor], alone: dict[str, Tensor]) -> None:
    """Print each stage of one token, and how much it differs from its row among all tokens."""
    for stage, numbers in alone.items():
        difference = (batched[stage].double().cpu() - numbers.double()).abs().max().item()
        shown = _row(numbers) if numbers.ndim == 1 else f"  all {len(numbers)} tokens"
        print(f"   {stage:<8}{shown}   largest difference {difference:.0e}")
    print(f"   First stage that disagrees: {compare_stages(batched, alone) or 'none'}")


def _print_table(matrix: Tensor, names: list[str], columns: list[str] | None = None) -> None:
    """Print one line per row of `matrix`, after its name; `columns` are the column headings."""
    shown = 2 * _MAX_NUMBERS if columns else _MAX_NUMBERS
    lines = [_row(row, shown) for row in matrix]
    if columns:
        columns = [wcwidth.clip(printable(name), 0, 8) for name in columns[:shown]]
        headings = "".join(wcwidth.rjust(name, 9) for name in columns)
        names, lines = ["", *names], [headings, *lines]
    _print_rows(names, lines)


def _print_rows(names: Sequence[str], lines: Sequence[str]) -> None:
    names = [printable(name) for name in names]
    width = max(map(wcwidth.width, names))  # on a terminal, where 犬 takes two columns
    for name, line in zip(names, lines, strict=True):
        print(f"     {wcwidth.ljust(name, width)}{line}")


def _row(numbers: Tensor, shown: int = _MAX_NUMBERS) -> str:
    text = "".join(f"{number:9.4f}" for number in numbers[:shown].tolist())
    return f"{text}{' ...' if len(numbers) > shown else ''}"
