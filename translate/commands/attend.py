"""`translate attend`: a picture or a page of what looks at what."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from translate.commands.options import Parser, add_model, path, positive, utf8
from translate.errors import UsageError

if TYPE_CHECKING:
    from translate.decoding.translator import Translator
    from translate.insight.attention import Kind

_KINDS = ("cross", "encoder", "decoder")
_ENDINGS = (".png", ".svg", ".html")


def main(argv: Sequence[str]) -> int:
    """Write the picture; the translation that it belongs to is printed."""
    args = _parse(argv)

    from translate.io import check_writable, write_atomically

    check_writable(args.output)
    looked = look(args, "cross")

    from translate.insight.attention import attention_maps
    from translate.insight.page import attention_page
    from translate.insight.plots import attention_heatmap, rendered

    translator = looked.translator
    maps = attention_maps(
        translator.model,
        translator.tokenizer,
        looked.source,
        looked.target,
        kind=looked.kind,
        layer=looked.layer,
        head=looked.head,
        by_word=args.words,
    )
    ending = args.output.suffix.lower()
    if ending == ".html":
        content = attention_page(maps, args.sentence).encode()
    else:
        content = rendered(attention_heatmap(maps, args.sentence), ending[1:])
    write_atomically(args.output, content)
    print(looked.text)
    return 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="translate attend",
        description="Draw what each word looks at while a sentence is read and translated: a "
        "heatmap (.png, .svg), or a page on which hovering a word shows it (.html).",
    )
    parser.add_argument("sentence", metavar="SENTENCE", type=utf8)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        type=path,
        help="the picture or page to write: its name ends in .png, .svg or .html",
    )
    parser.add_argument(
        "--words",
        action="store_true",
        help="join the pieces of a word: what they receive is added, what they spend averaged",
    )
    add_attention(parser, kind="cross", otherwise="the mean of all, or a panel for each")
    add_model(parser)
    args = parser.parse_mixed(argv)
    if args.output.suffix.lower() not in _ENDINGS:
        parser.error(f"--output {args.output}: its name must end in {', '.join(_ENDINGS)}")
    if not args.sentence.strip():
        parser.error("the sentence is blank")
    check_prefix(parser, args, "cross")
    return args


def add_attention(parser: Parser, *, kind: Kind, otherwise: str) -> None:
    """Which attention of the model, and on which translation; None where nothing is said.

    For help: the `kind` that is looked at then, and which layer and head `otherwise`.
    """
    parser.add_argument(
        "--prefix",
        metavar="TEXT",
        type=utf8,
        help="begin the translation with exactly this text (not for --kind encoder)",
    )
    parser.add_argument(
        "--kind",
        choices=_KINDS,
        help="cross: the translation looks at the source; encoder: the source at itself; decoder: "
        f"the translation at itself ({kind})",
    )
    for name in ("layer", "head"):
        parser.add_argument(
            f"--{name}",
            metavar=name[0].upper(),
            type=positive,
            help=f"this {name}, counted from 1 ({otherwise})",
        )


def check_prefix(parser: Parser, args: argparse.Namespace, kind: Kind) -> None:
    """Refuse a prefix where it changes nothing; `kind` is what is looked at without `--kind`."""
    if args.prefix is not None and (args.kind or kind) == "encoder":
        parser.error("--prefix begins the translation, which --kind encoder does not look at")


class Looked(NamedTuple):
    """A sentence, its translation, and where to look."""

    translator: Translator
    source: list[int]  # pieces without eos
    target: list[int]  # pieces without bos and eos
    text: str
    kind: Kind
    layer: int | None  # from 0
    head: int | None  # from 0


def look(args: argparse.Namespace, kind: Kind) -> Looked:
    """Load the model that the options of `add_attention` and `add_model` name, and translate.

    `kind` is what is looked at without `--kind`.

    Raises:
        UsageError: a layer or a head that the model does not have.
        UserError: no such model.
    """
    from translate.decoding.checkpoint import find_model
    from translate.decoding.translator import Translator

    place = find_model(args.model)
    print(f"translate: model {place}", file=sys.stderr, flush=True)
    translator = Translator.load(place)
    kind = args.kind or kind
    config = translator.model.config
    layers = config.encoder_layers if kind == "encoder" else config.decoder_layers
    for name, given, most in (("layer", args.layer, layers), ("head", args.head, config.n_heads)):
        if given is not None and given > most:
            what = f"{kind} " if name == "layer" and kind == "encoder" else ""
            raise UsageError(f"--{name} {given}: this model has only {most} {what}{name}s")
    (translation,) = translator.translate_detailed([args.sentence], [args.prefix or ""])
    for note in translation.notes():
        print(f"translate: {note}", file=sys.stderr, flush=True)
    return Looked(
        translator,
        translator.tokenizer.encode(args.sentence)[: config.max_length - 1],  # what was read
        translation.ids,
        translation.text,
        kind,
        None if args.layer is None else args.layer - 1,
        None if args.head is None else args.head - 1,
    )
