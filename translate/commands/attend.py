"""`translate attend`: draw attention weights as a picture or an HTML page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from translate.commands import options
from translate.io import check_writable, write_atomically

_SUFFIXES = (".png", ".svg", ".html")


def main(argv: Sequence[str]) -> int:
    """Write the picture or page, and print the translation."""
    args = _parse(argv[1:])
    check_writable(args.output)
    selection = options.select_attention(args)
    suffix = args.output.suffix.lower()
    write_atomically(args.output, _draw(selection, args.sentence, suffix, by_word=args.words))
    print(selection.text)
    return 0


def _draw(selection: options.Selection, title: str, suffix: str, *, by_word: bool) -> bytes:
    """Return the content of a file with this suffix."""
    from translate.insight.attention import attention_maps
    from translate.insight.page import attention_page
    from translate.insight.plots import attention_heatmap, rendered

    maps = attention_maps(
        selection.translator.model,
        selection.translator.tokenizer,
        selection.source,
        selection.target,
        kind=selection.kind,
        layer=selection.layer,
        head=selection.head,
        by_word=by_word,
    )
    if suffix == ".html":
        return attention_page(maps, title).encode()
    return rendered(attention_heatmap(maps, title), "svg" if suffix == ".svg" else "png")


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = options.Parser(
        prog="translate attend",
        description="Draw how much each word attends to each other word: as a heatmap (.png, "
        ".svg), or as a page that shows the weights of the word under the pointer (.html).",
    )
    parser.add_argument("sentence", metavar="SENTENCE", type=options.utf8_text)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        type=options.file_path,
        help="the file to write; its name must end in .png, .svg or .html",
    )
    parser.add_argument(
        "--words",
        action="store_true",
        help="join the pieces of each word: add the weights that they receive, and average the "
        "weights that they give",
    )
    options.add_attention(parser, kind="cross", default="the mean of all, or a panel for each")
    options.add_model(parser)
    args = parser.parse_mixed(argv)
    if args.output.suffix.lower() not in _SUFFIXES:
        parser.error(f"--output {args.output}: the name must end in {', '.join(_SUFFIXES)}")
    options.check_attention(parser, args, "cross")
    return args
