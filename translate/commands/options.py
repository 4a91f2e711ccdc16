"""What several commands share: the parser, argument types, and options with what they select."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from translate.errors import UsageError

if TYPE_CHECKING:
    from translate.decoding.translator import Translator
    from translate.insight.attention import Kind
    from translate.model.transformer import TransformerConfig

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


@dataclass(frozen=True)
class Selection:
    """A sentence, its translation, and the attention weights to show."""

    translator: Translator
    source: list[int]  # pieces without eos
    target: list[int]  # pieces without bos and eos
    text: str  # the translation
    kind: Kind
    layer: int | None  # counted from 0
    head: int | None  # counted from 0


def select_attention(args: argparse.Namespace) -> Selection:
    """Load the model and translate the sentence, as the options of `add_attention` say.

    Raises:
        UsageError: the model does not have this layer or head.
        UserError: there is no such model, or it cannot be used.
    """
    translator = load_translator(args.model)
    config = translator.model.config
    _check_numbers(args, config)
    (translation,) = translator.translate_detailed([args.sentence], [args.prefix or ""])
    for note in translation.notes():
        logger.warning(note)
    return Selection(
        translator,
        # The encoder reads at most max_length pieces, eos included.
        translator.tokenizer.encode(args.sentence)[: config.max_length - 1],
        translation.ids,
        translation.text,
        args.kind,
        None if args.layer is None else args.layer - 1,
        None if args.head is None else args.head - 1,
    )


def _check_numbers(args: argparse.Namespace, config: TransformerConfig) -> None:
    layers, stack = config.decoder_layers, "decoder"
    if args.kind == "encoder":
        layers, stack = config.encoder_layers, "encoder"
    if args.layer is not None and args.layer > layers:
        raise UsageError(f"--layer {args.layer}: this model has only {layers} {stack} layers")
    if args.head is not None and args.head > config.n_heads:
        raise UsageError(f"--head {args.head}: this model has only {config.n_heads} heads")
