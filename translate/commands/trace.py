"""`translate trace`: compute one attention head stage by stage, predicting every shape."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from translate.commands import options
from translate.errors import UsageError

if TYPE_CHECKING:
    from translate.insight.trace import Trace

_LESSON = "Six tokens of width 3 and one head of width 2: n = 6, d_in = 3, d_k = d_out = 2."
_DIRECTIONS = {
    "encoder": "the source attends to itself",
    "decoder": "the translation attends to itself, never to later tokens",
    "cross": "the translation attends to the source",
}


def main(argv: Sequence[str]) -> int:
    """Print the report on a head of a trained model; without a sentence, on the lesson's head."""
    args = _parse(argv[1:])

    from translate.commands.display_trace import display_trace
    from translate.insight.trace import lesson_trace

    introduction, trace = (_LESSON, lesson_trace()) if args.sentence is None else _trace_model(args)
    tokens = len(trace.rows)
    token = min(1, tokens - 1) if args.token is None else args.token
    if token >= tokens:
        raise UsageError(f"--token {token + 1}: there are only {tokens} tokens (rows)")
    print(introduction)
    display_trace(trace, token, predict=args.predict)
    return 0


def _trace_model(args: argparse.Namespace) -> tuple[str, Trace]:
    """Return an introduction to the report, and the trace of a trained model."""
    from translate.commands.loading import translate_sentence
    from translate.insight.trace import model_trace

    translator, source, translation = translate_sentence(args)
    model, tokenizer = translator.model, translator.tokenizer
    layer, head = args.layer or 0, args.head or 0
    trace = model_trace(
        model, tokenizer, source, translation.ids, kind=args.kind, layer=layer, head=head
    )
    sizes = ", ".join(f"{letter} = {size}" for letter, size in trace.sizes.items())
    normalised = ", after layer normalisation" if model.config.norm == "pre" else ""
    introduction = (
        f"{args.kind}, layer {layer + 1}, head {head + 1}: {_DIRECTIONS[args.kind]}.\n"
        f"{sizes}. x is the input of the attention{normalised}."
    )
    if args.kind != "encoder":
        introduction += "\nA row is named after the token just read and predicts the next token."
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
    parser.add_options(
        {
            ("--predict",): "ask for each shape before it is shown",
            ("--token", "N", options.index): (
                "number of the token to compute alone, from 1 (default: 2)"
            ),
        }
    )
    return options.parse_attention(parser, argv, kind="encoder", default="1")
