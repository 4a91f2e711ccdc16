"""The options of `translate decode`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line behind `decode`; one that cannot be meant ends the program with 2."""
    parser = _parser()
    args = parser.parse_intermixed_args(argv)
    if args.sentences and args.input:
        parser.error("give sentences or --input, not both")
    if args.steps and (args.input or args.output):
        parser.error("--steps shows single sentences: it goes with neither --input nor --output")
    if any("\n" in prefix for prefix in args.prefix):
        parser.error("a prefix is one line, but this one has a line break in it")
    if len(args.prefix) > 1 and len(args.prefix) != len(args.sentences):
        parser.error(
            f"{len(args.prefix)} prefixes for {len(args.sentences)} sentences: "
            "give --prefix once for all, or once for each sentence"
        )
    return args


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="translate decode",
        allow_abbrev=False,
        description="Translate sentences. Without any, reads standard input and answers each "
        "line as it comes.",
    )
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE", type=_utf8)
    parser.add_argument(
        "--prefix",
        action="append",
        default=[],
        metavar="TEXT",
        type=_utf8,
        help="begin the translation with exactly this text; once for all sentences, or once each",
    )
    parser.add_argument(
        "--steps",
        action="store_true",
        help="show each word as it is chosen: its probability, what came next best, and the "
        "source words attended most; the last line is the translation",
    )
    parser.add_argument(
        "--model",
        metavar="PATH",
        type=_path,
        help="a run folder or checkpoint; default: the newest finished run under runs/",
    )
    parser.add_argument(
        "--input", metavar="FILE", type=_path, help="translate the lines of this file"
    )
    parser.add_argument("--output", metavar="FILE", type=_path, help="write translations there")
    parser.add_argument(
        "--batch-size",
        default=64,
        metavar="N",
        type=_positive,
        help="sentences at a time on each thread (64)",
    )
    parser.add_argument(
        "--max-new",
        metavar="N",
        type=_positive,
        help="at most so many pieces after the prefix; default: twice those of the source and 16",
    )
    return parser


def _utf8(argument: str) -> str:
    """Bytes that are not UTF-8 arrive as lone surrogates."""
    try:
        argument.encode("utf-8")
    except UnicodeError:
        raise argparse.ArgumentTypeError(f"{argument!r} is not UTF-8") from None
    return argument


def _path(argument: str) -> Path:
    if not argument:
        raise argparse.ArgumentTypeError("it is empty: give a path")
    return Path(argument)


def _positive(argument: str) -> int:
    if not argument.isdecimal() or int(argument) < 1:
        raise argparse.ArgumentTypeError(f"{argument!r} is not a number from 1 up")
    return int(argument)
