"""`translate trace`: the stages of attention as text, with every shape predicted first."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from translate.commands.attend import add_attention, check_prefix, look
from translate.commands.options import Parser, add_model, positive, utf8
from translate.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from translate.insight.trace import Rule, Trace

_WIDEST = 8  # numbers of a row that are shown; of a row over tokens twice as many
_SMALL = 8  # rows of a matrix that is shown whole


def main(argv: Sequence[str]) -> int:
    """Without a sentence the lesson's six tokens, with one a head of a trained model."""
    args = _parse(argv)
    opening, trace = _of_model(args) if args.sentence else _of_lesson()
    if args.token > len(trace.rows):
        raise UsageError(f"--token {args.token}: there are only {len(trace.rows)} tokens that look")
    for line in chain(opening, _report(trace, args.token - 1, predict=args.predict)):
        print(line, flush=True)
    return 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="translate trace",
        description="Go through one attention head stage by stage: the formula, the shape that the "
        "rule predicts, the shape that the program has, the numbers; then one token computed "
        "alone, against its row. Without a sentence: six tokens of width 3 and a head of width 2, "
        "no model needed.",
    )
    parser.add_argument("sentence", nargs="?", metavar="SENTENCE", type=utf8)
    parser.add_argument(
        "--predict", action="store_true", help="ask for each shape before it is shown, and count"
    )
    parser.add_argument(
        "--token",
        default=2,
        metavar="N",
        type=positive,
        help="the token to compute alone, counted from 1 (2)",
    )
    add_attention(parser, kind="encoder", otherwise="1")
    add_model(parser)
    args = parser.parse_mixed(argv)
    if args.sentence is not None and not args.sentence.strip():
        parser.error("the sentence is blank")
    check_prefix(parser, args, "encoder")
    if args.sentence is None:
        for name in ("model", "kind", "layer", "head", "prefix"):
            if getattr(args, name) is not None:
                parser.error(f"--{name} is for a trained model: give a sentence too")
    return args


def _of_lesson() -> tuple[list[str], Trace]:
    """What to say first, and the trace."""
    from translate.insight.trace import lesson_trace

    opening = "Six tokens of width 3 through one head of width 2: n = 6, d_in = 3, K = d_out = 2."
    return [opening], lesson_trace()


def _of_model(args: argparse.Namespace) -> tuple[list[str], Trace]:
    """What to say first, and the trace."""
    looked = look(args, "encoder")

    from translate.insight.trace import model_trace

    layer, head = looked.layer or 0, looked.head or 0
    translator = looked.translator
    trace = model_trace(
        translator.model,
        translator.tokenizer,
        looked.source,
        looked.target,
        kind=looked.kind,
        layer=layer,
        head=head,
    )
    what = {
        "encoder": "the source looks at itself",
        "decoder": "the translation looks at itself, never ahead",
        "cross": "the translation looks at the source",
    }[looked.kind]
    letters = ", ".join(f"{letter} = {size}" for letter, size in trace.sizes.items())
    normalised = ", normalised" if translator.model.config.norm == "pre" else ""
    opening = [
        f"{looked.kind}, layer {layer + 1}, head {head + 1}: {what}.",
        f"{letters}. x is what enters the attention{normalised}.",
    ]
    if looked.kind != "encoder":
        opening.append("A row has the name of the token last read: at <s> the first one is chosen.")
    return opening, trace


def _report(trace: Trace, token: int, *, predict: bool) -> Iterable[str]:
    """All lines; with `predict`, an answer is read from standard input before each shape."""
    from translate.insight.trace import compare_stages, row_of, single_token

    stages = trace.stages._asdict()
    yield "softmax(queries · keysᵀ / √K) · values, in five stages:"
    yield ""
    yield f"1  take the input   x: {tuple(trace.x.shape)}"
    yield from _numbers(trace.x, trace.rows)
    if trace.memory is not trace.x:
        yield f"   memory, what the encoder made of the source: {tuple(trace.memory.shape)}"
        yield from _numbers(trace.memory, trace.columns)
    titles = {
        "queries": "2  project the input",
        "scores": "3  score every pair",
        "weights": "4  turn scores into weights",
        "context": "5  combine the values",
    }
    right = asked = 0
    if predict:
        yield "   Answer with numbers or letters, such as 4, 7 or a, b; an empty line passes."
    for rule in trace.rules:
        if rule.stage in titles:
            yield ""
            yield titles[rule.stage]
        if rule.stage == "queries" and len(trace.matrices[0]) <= _SMALL:
            for name, matrix in zip(("query", "key", "value"), trace.matrices, strict=True):
                yield f"   W_{name}: {tuple(matrix.shape)}"
                yield from _numbers(matrix, [""] * len(matrix))
        if rule.stage == "weights":
            yield from _mask(trace.mask, trace.rows)
            yield "   √K: a sum of K products spreads √K times as wide as one; divided, it does not"
        yield f"   {rule.stage} = {rule.formula}"
        predicted, actual = rule.predict(trace.sizes), tuple(stages[rule.stage].shape)
        if predict:
            asked += 1
            verdict = _ask(rule, trace.sizes)
            right += verdict is None
            yield f"   {verdict or 'right'}"
        yield f"   by the rule {rule} = {predicted}"
        yield f"   actual      {actual}{'' if actual == predicted else '   NOT BY THE RULE'}"
        over_keys = rule.stage in ("scores", "weights")
        names = trace.columns if rule.stage in ("keys", "values") else trace.rows
        yield from _numbers(stages[rule.stage], names, trace.columns if over_keys else None)
        if rule.stage == "weights":
            sums = stages["weights"].sum(-1)
            yield f"   sums of the rows: {sums.min():.4f} to {sums.max():.4f}"
    yield "   Of several heads, contexts are put side by side and projected back (out_proj)."
    yield ""
    yield f'Token {token + 1}, "{trace.rows[token]}", alone, and its row of the batch:'
    batched, alone = row_of(trace.stages, token), single_token(trace, token)
    for stage, numbers in alone.items():
        difference = (batched[stage].double().cpu() - numbers.double()).abs().max().item()
        shown = _row(numbers) if numbers.ndim == 1 else f"  all {len(numbers)} tokens"
        yield f"   {stage:<8}{shown}   differ by {difference:.0e} at most"
    yield f"   First stage that disagrees: {compare_stages(batched, alone) or 'none'}"
    if predict:
        yield ""
        yield f"{right} of {asked} shapes right"


def _ask(rule: Rule, sizes: dict[str, int]) -> str | None:
    """What is wrong with the reader's answer and why; None if it is right."""
    print(f"   shape of {rule.stage}? ", end="", flush=True)
    answer = sys.stdin.readline() if sys.stdin else ""
    if not sys.stdin or not sys.stdin.isatty():
        print(answer.strip())  # as a terminal would have shown it
    given = _read_shape(answer, sizes)
    expected = rule.predict(sizes)
    if given == expected:
        return None
    if len(rule.operands) == 1:
        why = "softmax turns each number into another one, so the shape is that of the scores"
    else:
        (rows, inner), (_, columns) = rule.operands
        why = (
            f"in {rule} the two {inner} meet and are summed over; {rows} rows and {columns} "
            "columns stay"
        )
    if not answer.strip():
        return f"no answer: {why}"
    if given is None:
        return f"that is no shape (write for example 4, 7): {why}"
    if given == expected[::-1]:
        return f"wrong, rows and columns are the other way round: {why}"
    if len(given) != len(expected):
        return f"wrong, it has {len(expected)} numbers and not {len(given)}: {why}"
    return f"wrong: {why}"


def _read_shape(answer: str, sizes: dict[str, int]) -> tuple[int, ...] | None:
    """ "6, 2", "(6, 2)", "6x2" or the letters "n, K"; None if it is none of these."""
    words = re.split(r"[\s,×]+|\bx\b|(?<=\d)x(?=\d)", answer.strip(" \n()[]"))
    numbers = [
        sizes.get(word) or (int(word) if word.isdecimal() else None) for word in words if word
    ]
    return tuple(numbers) if numbers and None not in numbers else None


def _numbers(
    matrix: Tensor, names: Sequence[str], columns: Sequence[str] | None = None
) -> Iterable[str]:
    """A line a row under its name; `columns` are the names above."""
    width = max(map(len, names))
    if columns:
        cut = "".join(f"{name[:8]:>9}" for name in columns[: 2 * _WIDEST])
        yield f"     {'':<{width}}{cut}"
    for name, row in zip(names, matrix, strict=True):
        yield f"     {name:<{width}}{_row(row, 2 * _WIDEST if columns else _WIDEST)}"


def _row(numbers: Tensor, widest: int = _WIDEST) -> str:
    shown = "".join(f"{number:9.4f}" for number in numbers[:widest].tolist())
    return f"{shown}{' ...' if len(numbers) > widest else ''}"


def _mask(mask: Tensor | None, names: Sequence[str]) -> Iterable[str]:
    if mask is None:
        yield "   mask: none, every token may look at every other one"
        return
    width = max(map(len, names))
    yield "   mask: # may look there, . may not (its score becomes a weight of exactly 0)"
    for name, row in zip(names, mask.tolist(), strict=True):
        yield f"     {name:<{width}}  {' '.join('#' if seen else '.' for seen in row)}"
