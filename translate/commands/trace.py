"""`translate trace`: compute one attention head stage by stage, predicting every shape."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from translate.commands import options
from translate.commands.shape_quiz import ShapeQuiz
from translate.errors import UsageError

if TYPE_CHECKING:
    from translate.insight.trace import Trace

_DIRECTIONS = {
    "encoder": "the source attends to itself",
    "decoder": "the translation attends to itself, never to later tokens",
    "cross": "the translation attends to the source",
}


def main(argv: Sequence[str]) -> int:
    """Print the report: with a sentence about a trained model, without about the lesson's head."""
    args = _parse(argv[1:])
    introduction, trace = _trace_lesson() if args.sentence is None else _trace_model(args)
    if args.token > len(trace.rows):
        raise UsageError(f"--token {args.token}: there are only {len(trace.rows)} tokens (rows)")

    from translate.commands.display_trace import Report

    print("\n".join(introduction))
    report = Report(trace, ShapeQuiz(trace.sizes) if args.predict else None)
    for line in report.lines(args.token - 1):
        print(line, flush=True)
    return 0


def _trace_lesson() -> tuple[list[str], Trace]:
    """Return an introduction to the report, and the trace."""
    from translate.insight.trace import lesson_trace

    sizes = "n = 6, d_in = 3, d_k = d_out = 2"
    return [f"Six tokens of width 3 and one head of width 2: {sizes}."], lesson_trace()


def _trace_model(args: argparse.Namespace) -> tuple[list[str], Trace]:
    """Return an introduction to the report, and the trace."""
    selection = options.select_attention(args)

    from translate.insight.trace import model_trace

    translator, kind = selection.translator, selection.kind
    layer, head = selection.layer or 0, selection.head or 0
    trace = model_trace(
        translator.model,
        translator.tokenizer,
        selection.source,
        selection.target,
        kind=kind,
        layer=layer,
        head=head,
    )
    sizes = ", ".join(f"{letter} = {size}" for letter, size in trace.sizes.items())
    normalised = ", after layer normalisation" if translator.model.config.norm == "pre" else ""
    introduction = [
        f"{kind}, layer {layer + 1}, head {head + 1}: {_DIRECTIONS[kind]}.",
        f"{sizes}. x is the input of the attention{normalised}.",
    ]
    if kind != "encoder":
        introduction.append(
            "Each row is named after the token that the decoder has read; it chooses the next one."
        )
    return introduction, trace


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = options.Parser(
        prog="translate trace",
        description="Compute one attention head stage by stage. Each stage shows its formula, the "
        "shape that the rule predicts, the actual shape and the numbers. At the end, one token is "
        "computed alone and compared with its row. Without a sentence, no model is needed: six "
        "tokens of width 3 pass through a head of width 2.",
    )
    parser.add_argument("sentence", nargs="?", metavar="SENTENCE", type=options.utf8_text)
    parser.add_argument(
        "--predict", action="store_true", help="ask for each shape before it is shown"
    )
    description = "number of the token to compute alone, from 1 (default: 2)"
    parser.add_options({("--token", "N", options.positive_int): description})
    parser.set_defaults(token=2)
    options.add_attention(parser, kind="encoder", default="1")
    options.add_model(parser)
    args = parser.parse_mixed(argv)
    if args.sentence is None:
        for name in ("model", "kind", "layer", "head", "prefix"):
            if getattr(args, name) is not None:
                parser.error(f"--{name} needs a trained model: give a sentence, too")
    options.check_attention(parser, args, "encoder")
    return args
