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

    from translate.commands.loading import translate_sentence
    from translate.insight.attention import attention_maps
    from translate.insight.page import attention_page
    from translate.insight.plots import attention_heatmap, rendered

    translator, source, translation = translate_sentence(args)
    maps = attention_maps(
        translator.model,
        translator.tokenizer,
        source,
        translation.ids,
        kind=args.kind,
        layer=args.layer,
        head=args.head,
        by_word=args.words,
    )
    suffix = args.output.suffix.lower()
    if suffix == ".html":
        content = attention_page(maps, args.sentence).encode()
    else:
        heatmap = attention_heatmap(maps, args.sentence)
        content = rendered(heatmap, "svg" if suffix == ".svg" else "png")
    write_atomically(args.output, content)
    print(translation.text)
    return 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = options.Parser(
        prog="translate attend",
        description="Draw how much each word attends to each other word: as a heatmap (.png, "
        ".svg), or as a page that shows the weights of the word under the pointer (.html).",
    )
    parser.add_argument("sentence", metavar="SENTENCE", type=options.utf8_text)
    output = "the file to write; its name must end in .png, .svg or .html"
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", type=options.file_path, help=output
    )
    words = (
        "join the pieces of each word: add the weights that they receive, and average the weights "
        "that they give"
    )
    parser.add_argument("--words", action="store_true", help=words)
    default = "one panel for each; without --layer and --head, the mean of all"
    args = options.parse_attention(parser, argv, kind="cross", default=default)
    if args.output.suffix.lower() not in _SUFFIXES:
        parser.error(f"--output {args.output}: the name must end in {', '.join(_SUFFIXES)}")
    return args
