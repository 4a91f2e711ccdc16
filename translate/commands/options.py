"""The parser, the argument types and the options that several commands share."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from translate.text.printable import printable

if TYPE_CHECKING:
    from translate.insight.attention import Kind


class Parser(argparse.ArgumentParser):
    """A parser that reports an invalid command line in one line and exits with code 2."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def add_options(self, options: Mapping[tuple[Any, ...], str]) -> None:
        """Add options: (name, metavar, type), or (name,) for a flag, with the help text of each."""
        for (name, *value), description in options.items():
            if value:
                metavar, kind = value
                self.add_argument(name, metavar=metavar, type=kind, help=description)
            else:
                self.add_argument(name, action="store_true", help=description)

    def parse_mixed(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse options and sentences in any order.

        A sentence that starts with a dash must follow "--". `parse_intermixed_args` would read
        such a sentence as an option, and `parse_args` requires all sentences to stand together.
        """
        return self.parse_args(argv) if "--" in argv else self.parse_intermixed_args(argv)

    def error(self, message: str) -> NoReturn:
        about_dash = re.search("unrecognized arguments: -|expected one argument", message)
        if about_dash and "SENTENCE" in self.format_usage():
            message += "; if a sentence begins with a dash, write -- before all sentences"
            message += "; write such a prefix as --prefix=-TEXT"
        self.exit(2, printable(f"{self.prog}: error: {message} (see {self.prog} --help)") + "\n")


# Argument types


def utf8_text(argument: str) -> str:
    """Refuse bytes that are not UTF-8; Python passes them on as lone surrogates."""
    try:
        argument.encode("utf-8")
    except UnicodeError:
        given = argument.encode("utf-8", "surrogateescape")
        raise argparse.ArgumentTypeError(f"{str(given)[1:]} is not UTF-8") from None
    return argument


def file_path(argument: str) -> Path:
    if not argument:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(argument)


def number(kind: type, minimum: float, maximum: float = math.inf) -> Callable[[str], Any]:
    """Return an argument type: numbers of a `kind`, int or float, from `minimum` to `maximum`."""
    limits = f"from {minimum}" if maximum == math.inf else f"from {minimum} to {maximum:,}"
    name = "whole number" if kind is int else "number"

    def read(argument: str) -> Any:
        with suppress(ValueError):
            if minimum <= (value := kind(argument)) <= maximum:
                return value
        raise argparse.ArgumentTypeError(f"expected a {name} {limits}, got {argument!r}")

    return read


def whole_number(minimum: int, maximum: float = math.inf) -> Callable[[str], int]:
    """Return an argument type: whole numbers from `minimum` to `maximum`."""
    return number(int, minimum, maximum)


positive_int = whole_number(1)


def index(argument: str) -> int:
    """Read a number counted from 1; return it counted from 0."""
    return positive_int(argument) - 1


# Shared options


def add_model(parser: Parser) -> None:
    """Add `--model`; `Translator.load` loads it."""
    description = "run folder or checkpoint (default: the newest finished run in runs/)"
    parser.add_options({("--model", "PATH", file_path): description})


def parse_attention(
    parser: Parser, argv: Sequence[str], *, kind: Kind, default: str
) -> argparse.Namespace:
    """Add the options that select a translation and its attention weights, then parse `argv`.

    Args:
        parser: of `attend` or `trace`; it has the argument "sentence", which may be None.
        argv: the command line after the name of the command.
        kind: the default of `--kind`.
        default: the default of `--layer` and `--head`, for the help text.

    Returns:
        The arguments, with `layer` and `head` counted from 0, or None if not given.
    """
    parser.add_argument(
        "--kind",
        choices=("cross", "encoder", "decoder"),
        help="cross: from the translation to the source; encoder: within the source; decoder: "
        f"within the translation (default: {kind})",
    )
    parser.add_options(
        {
            ("--layer", "L", index): f"number of the layer, from 1 (default: {default})",
            ("--head", "H", index): f"number of the head, from 1 (default: {default})",
            ("--prefix", "TEXT", utf8_text): (
                "begin the translation with exactly this text (not for --kind encoder)"
            ),
        }
    )
    add_model(parser)
    args = parser.parse_mixed(argv)
    if args.sentence is None:
        for name in ("model", "kind", "layer", "head", "prefix"):
            if getattr(args, name) is not None:
                parser.error(f"--{name} needs a trained model: give a sentence, too")
    elif not args.sentence.strip():
        parser.error("the sentence is blank")
    args.kind = args.kind or kind
    if args.prefix is not None and args.kind == "encoder":
        parser.error("--prefix begins the translation, but --kind encoder shows only the source")
    return args
