"""`translate decode`: translate sentences from the command line, a file or standard input."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from translate.commands import console, options
from translate.decoding.scoring import LENGTH_PENALTY, MAX_BEAM, MAX_LENGTH_PENALTY
from translate.errors import UsageError
from translate.io import available_lines, check_writable, write_atomically

if TYPE_CHECKING:
    from translate.decoding.translation import Translation
    from translate.decoding.translator import Translator

logger = logging.getLogger(__name__)


def main(argv: Sequence[str]) -> int:
    """Print the translation of each sentence, or write all of them to a file."""
    args = _parse(argv[1:])
    if args.output:
        check_writable(args.output)
    groups = _sentence_groups(args)

    from translate.decoding.translator import Translator

    translator = Translator.load(args.model)
    unit = "sentence" if args.sentences else "line"
    number = 0  # of the sentence, counted from 1
    results: list[str] = []
    for sentences in groups:
        for translations in _translations(translator, sentences, args):
            number += 1
            for note in translations[0].notes():
                logger.warning("%s %d: %s", unit, number, note)
            if args.n_best:
                results += [f"{number}\t{each.score:.4f}\t{each.text}\n" for each in translations]
            elif not args.steps:  # --steps prints the translation itself
                results.append(f"{translations[0].text}\n")
        if not args.output:
            print("".join(results), end="", flush=True)
            results = []
    if args.output:
        write_atomically(args.output, "".join(results).encode())
    return 0


def _sentence_groups(args: argparse.Namespace) -> Iterable[list[str]]:
    """Return the sentences in groups; each group can be translated in batches."""
    if args.sentences:
        return [args.sentences]
    if args.input:
        from translate.text.text_files import read_lines

        return [read_lines(args.input)]
    if sys.stdin is None:
        raise UsageError("standard input is closed: give sentences, or a file with --input")
    if sys.stdin.isatty():
        logger.info("Type one sentence per line; Ctrl-D ends the input.")
    return available_lines(sys.stdin.buffer)  # type: ignore[arg-type] # it has read1


def _translations(
    translator: Translator, sentences: Sequence[str], args: argparse.Namespace
) -> Iterable[list[Translation]]:
    """Return a list for each sentence: its best translation, or with --n-best its K best."""
    prefixes = args.prefix if len(args.prefix) > 1 else (args.prefix or [""]) * len(sentences)
    if args.steps:
        from translate.commands.display_steps import display_steps
        from translate.insight.steps import Steps

        return (
            [display_steps(Steps(translator, *texts, max_new=args.max_new), as_json=args.json)]
            for texts in zip(sentences, prefixes, strict=True)
        )
    settings: dict[str, Any] = {"batch_size": args.batch_size, "max_new": args.max_new}
    settings |= {"beam": args.beam, "length_penalty": args.length_penalty}
    with console.progress_bar(len(sentences) if args.input else 0, "lines") as progress:
        if args.n_best:
            found = translator.n_best(sentences, prefixes, **settings, progress=progress)
            return [translations[: args.n_best] for translations in found]
        best = translator.translate_detailed(sentences, prefixes, **settings, progress=progress)
        return [[translation] for translation in best]


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    args = parser.parse_mixed(argv)
    if args.sentences and args.input:
        parser.error("give sentences or --input, not both")
    if args.steps and (args.input or args.output):
        parser.error("--steps shows single sentences: use it without --input and --output")
    if args.steps and (args.beam > 1 or args.n_best):
        parser.error("--steps shows greedy search: use it without --beam and --n-best")
    if args.json and not args.steps:
        parser.error("--json needs --steps")
    if args.length_penalty is None:
        args.length_penalty = LENGTH_PENALTY
    elif args.beam == 1:
        parser.error("--length-penalty needs --beam 2 or more: greedy search compares no scores")
    if args.n_best and args.n_best > args.beam:
        parser.error(f"--n-best {args.n_best} needs --beam {args.n_best} or more")
    with contextlib.suppress(OSError):  # one of them does not exist or cannot be reached
        if args.input and args.output and args.input.samefile(args.output):
            parser.error("--input and --output are the same file; it would be overwritten")
    if any("\n" in prefix for prefix in args.prefix):
        parser.error("a prefix must be one line, but this one contains a line break")
    if len(args.prefix) > 1 and len(args.prefix) != len(args.sentences):
        parser.error(
            f"{len(args.prefix)} prefixes, but {len(args.sentences)} sentences on the command "
            "line: give --prefix once for all sentences, or once for each"
        )
    return args


def _parser() -> options.Parser:
    parser = options.Parser(
        prog="translate decode",
        description="Translate sentences. Without sentences, read standard input and answer each "
        "line as it arrives.",
    )
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE", type=options.utf8_text)
    prefix = "begin the translation with exactly this text; give it once for all, or once for each"
    parser.add_argument(
        "--prefix", action="append", default=[], metavar="TEXT", type=options.utf8_text, help=prefix
    )
    width = options.whole_number(1, MAX_BEAM)
    exponent = options.number(float, 0, MAX_LENGTH_PENALTY)
    parser.add_options(
        {
            ("--steps",): (
                "show each word as it is chosen: its probability, the next best words, and the "
                "source words attended most; the last line is the translation"
            ),
            ("--json",): (
                "with --steps: print one JSON object per word, then one with the translation"
            ),
            ("--beam", "N", width): "keep the N best hypotheses (default: 1, greedy search)",
            ("--length-penalty", "A", exponent): (
                "beam search compares log probability / pieces ** A; A is from 0 to "
                f"{MAX_LENGTH_PENALTY} (default: {LENGTH_PENALTY:g})"
            ),
            ("--n-best", "K", options.positive_int): (
                "print up to K translations of each sentence, best first (K <= N); each line "
                "has the number of the sentence, the score and the text, separated by tabs"
            ),
            ("--input", "FILE", options.file_path): "translate the lines of this file",
            ("--output", "FILE", options.file_path): "write the translations to this file",
            ("--batch-size", "N", options.positive_int): (
                "sentences per batch on each thread (default: 64)"
            ),
            ("--max-new", "N", options.positive_int): (
                "maximum number of pieces after the prefix (default: twice the pieces of the "
                "source, plus 16)"
            ),
        }
    )
    parser.set_defaults(beam=1, batch_size=64)
    options.add_model(parser)
    return parser
