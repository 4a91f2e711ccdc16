"""The options of `translate decode`, and what other commands' options share with them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from translate.decoding.scoring import MAX_BEAM, MAX_LENGTH_PENALTY


class Parser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one line and exits with 2."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def parse_mixed(self, argv: Sequence[str]) -> argparse.Namespace:
        """Options and sentences in any order; one that begins with a dash comes behind a "--".

        `parse_intermixed_args` forgets what "--" protects, `parse_args` wants the sentences
        together.
        """
        return self.parse_args(argv) if "--" in argv else self.parse_intermixed_args(argv)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} ({self.prog} --help says more)\n")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line behind `decode`; one that cannot be meant ends the program with 2."""
    parser = _parser()
    args = parser.parse_mixed(argv)
    if args.sentences and args.input:
        parser.error("give sentences or --input, not both")
    if args.steps and (args.input or args.output):
        parser.error("--steps shows single sentences: it goes with neither --input nor --output")
    if args.steps and (args.beam > 1 or args.n_best):
        parser.error("--steps shows a greedy search: it goes with neither --beam nor --n-best")
    if args.json and not args.steps:
        parser.error("--json is for --steps")
    if args.length_penalty is not None and args.beam == 1:
        parser.error("--length-penalty is for --beam 2 or more: one hypothesis has no rival")
    if args.n_best and args.n_best > args.beam:
        parser.error(f"--n-best {args.n_best} needs --beam {args.n_best} or more")
    if args.input and args.output and args.output.exists() and args.input.samefile(args.output):
        parser.error("--output is the --input: it would be replaced")
    if any("\n" in prefix for prefix in args.prefix):
        parser.error("a prefix is one line, but this one has a line break in it")
    if len(args.prefix) > 1 and len(args.prefix) != len(args.sentences):
        parser.error(
            f"{len(args.prefix)} prefixes, but sentences: {len(args.sentences)}; "
            "give --prefix once for all, or once for each sentence"
        )
    return args


def _parser() -> Parser:
    parser = Parser(
        prog="translate decode",
        description="Translate sentences. Without any, reads standard input and answers each "
        "line as it comes.",
    )
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE", type=utf8)
    parser.add_argument(
        "--prefix",
        action="append",
        default=[],
        metavar="TEXT",
        type=utf8,
        help="begin the translation with exactly this text; once for all sentences, or once each",
    )
    parser.add_argument(
        "--steps",
        action="store_true",
        help="show each word as it is chosen: its probability, what came next best, and the "
        "source words attended most; the last line is the translation",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="with --steps: a JSON object a word, and one with the translation at the end",
    )
    parser.add_argument(
        "--beam",
        default=1,
        metavar="N",
        type=_beam,
        help="follow the N likeliest hypotheses of each sentence (1: greedy search)",
    )
    parser.add_argument(
        "--length-penalty",
        metavar="A",
        type=_penalty,
        help="score a hypothesis by log probability / pieces ** A, A from 0 to 10 (1: per piece)",
    )
    parser.add_argument(
        "--n-best",
        metavar="K",
        type=positive,
        help="print up to K translations of each sentence, best first, K at most N; each as "
        "number of the sentence, score and text, separated by tabs",
    )
    add_model(parser)
    parser.add_argument(
        "--input", metavar="FILE", type=path, help="translate the lines of this file"
    )
    parser.add_argument("--output", metavar="FILE", type=path, help="write translations there")
    parser.add_argument(
        "--batch-size",
        default=64,
        metavar="N",
        type=positive,
        help="sentences at a time on each thread (64)",
    )
    parser.add_argument(
        "--max-new",
        metavar="N",
        type=positive,
        help="at most so many pieces after the prefix; default: twice those of the source and 16",
    )
    return parser


def add_model(parser: argparse.ArgumentParser) -> None:
    """`--model`, of every command that needs a trained one."""
    parser.add_argument(
        "--model",
        metavar="PATH",
        type=path,
        help="a run folder or checkpoint; default: the newest finished run under runs/",
    )


def utf8(argument: str) -> str:
    """Bytes that are not UTF-8 arrive as lone surrogates."""
    try:
        argument.encode("utf-8")
    except UnicodeError:
        given = argument.encode("utf-8", "surrogateescape")
        raise argparse.ArgumentTypeError(f"{str(given)[1:]} is not UTF-8") from None
    return argument


def path(argument: str) -> Path:
    if not argument:
        raise argparse.ArgumentTypeError("it is empty: give a path")
    return Path(argument)


def positive(argument: str) -> int:
    if not argument.isdecimal() or int(argument) < 1:
        raise argparse.ArgumentTypeError(f"{argument!r} is not a number from 1 up")
    return int(argument)


def _beam(argument: str) -> int:
    if (number := positive(argument)) > MAX_BEAM:
        raise argparse.ArgumentTypeError(f"{argument!r} is more than {MAX_BEAM:,}")
    return number


def _penalty(argument: str) -> float:
    try:
        number = float(argument)
    except ValueError:
        number = -1.0
    if not 0 <= number <= MAX_LENGTH_PENALTY:
        raise argparse.ArgumentTypeError(
            f"{argument!r} is not a number from 0 to {MAX_LENGTH_PENALTY}"
        )
    return number
