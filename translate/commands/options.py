"""Options that several commands share: the parser, argument types, and the model that they name."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from translate.decoding.translator import Translator
    from translate.insight.attention import Kind

logger = logging.getLogger(__name__)


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong command line in one line and exits with code 2."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def add_options(self, options: Mapping[tuple[str, str, Callable[[str], Any]], str]) -> None:
        """Add options with one value each; `options` maps (name, metavar, type) to a help text."""
        for (name, metavar, kind), description in options.items():
            self.add_argument(name, metavar=metavar, type=kind, help=description)

    def parse_mixed(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse options and sentences in any order.

        A sentence that starts with a dash must follow "--". `parse_intermixed_args` would read
        such a sentence as an option, and `parse_args` requires all sentences to stand together.
        """
        return self.parse_args(argv) if "--" in argv else self.parse_intermixed_args(argv)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


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


def whole_number(minimum: int) -> Callable[[str], int]:
    """Return an argument type: whole numbers from `minimum`."""

    def read(argument: str) -> int:
        if not argument.isdecimal() or int(argument) < minimum:
            raise argparse.ArgumentTypeError(
                f"expected a whole number from {minimum}, got {argument!r}"
            )
        return int(argument)

    return read


positive_int = whole_number(1)


# Shared options


def add_model(parser: Parser) -> None:
    """Add `--model`; `load_translator` loads it."""
    description = "run folder or checkpoint (default: the newest finished run in runs/)"
    parser.add_options({("--model", "PATH", file_path): description})


def load_translator(given: Path | None) -> Translator:
    """Load the model that `--model` names, and log its path.

    Raises:
        UserError: there is no such model, or it cannot be used.
    """
    from translate.decoding.checkpoint import find_model
    from translate.decoding.translator import Translator

    path = find_model(given)
    logger.info("model %s", path)
    return Translator.load(path)


def add_attention(parser: Parser, *, kind: Kind, default: str) -> None:
    """Add the options that select a translation and attention weights of it.

    Their defaults are None, so that a command sees which ones were given; `check_attention` sets
    the kind.

    Args:
        parser: of `attend` or `trace`.
        kind: the default of `--kind`, for the help text.
        default: the default of `--layer` and `--head`, for the help text.
    """
    parser.add_argument(
        "--kind",
        choices=("cross", "encoder", "decoder"),
        help="cross: from the translation to the source; encoder: within the source; decoder: "
        f"within the translation (default: {kind})",
    )
    parser.add_options(
        {
            ("--layer", "L", positive_int): f"number of the layer, from 1 (default: {default})",
            ("--head", "H", positive_int): f"number of the head, from 1 (default: {default})",
            ("--prefix", "TEXT", utf8_text): (
                "begin the translation with exactly this text (not for --kind encoder)"
            ),
        }
    )


def check_attention(parser: Parser, args: argparse.Namespace, kind: Kind) -> None:
    """Set `args.kind` to its default, `kind`, and refuse options that have no effect."""
    if args.sentence is not None and not args.sentence.strip():
        parser.error("the sentence is blank")
    args.kind = args.kind or kind
    if args.prefix is not None and args.kind == "encoder":
        parser.error(
            "--prefix begins the translation, but --kind encoder shows only the source sentence"
        )
