"""`translate check`: report errors in training data before training on it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from translate.commands.display_check import as_json, as_text
from translate.commands.options import Parser, file_path, whole_number
from translate.errors import UsageError
from translate.text.check_report import check_files
from translate.text.corpus import ParallelFiles

# The suffixes of each format; a file with any other suffix is read as "tsv".
_SUFFIXES = {"tmx": (".tmx",), "parquet": (".parquet",), "jsonl": (".jsonl", ".json", ".ndjson")}
_COMPRESSED = (".gz", ".xz", ".zst")
_OPTIONS = {"columns": ("tsv",), "languages": ("tmx",), "fields": ("jsonl", "parquet")}


def main(argv: Sequence[str]) -> int:
    """Print the report. Return 0 if the data is safe to train on, 1 if not.

    Raises:
        UsageError: an invalid command line or config file.
    """
    parser = _parser()
    args = parser.parse_args(argv[1:])
    settings = _config_settings(parser, args) if args.config else _file_settings(parser, args)
    for name in ("tokenizer", "vocab_size", "max_length"):
        if (value := getattr(args, name)) is not None:
            settings[name] = value
    report = check_files(**settings)
    if args.json:
        print(json.dumps(as_json(report), ensure_ascii=False, indent=1))
    else:
        print("\n\n".join(as_text(report)))
    return 0 if report.safe else 1


def _config_settings(parser: Parser, args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `check_files` from a config file for `fit`."""
    if args.files or args.valid or args.test:
        parser.error("give files or --config, not both")
    if given := [f"--{name}" for name in _OPTIONS if getattr(args, name)]:
        parser.error(f"{' and '.join(given)}: with --config, set this in the config file")

    from translate.training.cli import TranslationCLI  # imports torch and lightning

    cli = TranslationCLI("fit", ["--config", str(args.config)])
    data, seed = cli.datamodule, cli.config.seed_everything
    if data.train is None:
        raise UsageError(f"{args.config}: data.train is not set: name the files to train on")
    return {
        "files": {name: sources for name, sources in data.files.items() if sources is not None},
        "filters": data.filters,
        "tokenizer": data.tokenizer,
        "vocab_size": data.vocab_size,
        "held_out": data.held_out,
        "max_length": data.max_length,
        "section": "data.",
        "seed": seed if type(seed) is int else 1,  # not true or false
    }


def _file_settings(parser: Parser, args: argparse.Namespace) -> dict[str, Any]:
    """Return the argument `files` of `check_files` for the files on the command line."""
    if not args.files:
        parser.error("nothing to check: give one file with both languages, two files, or --config")
    named = {"train": args.files, "valid": args.valid, "test": args.test}
    files = {name: _parallel_files(paths) for name, paths in named.items() if paths}
    for option, formats in _OPTIONS.items():
        if value := getattr(args, option):
            matching = [part for part in files.values() if part.given[0] in formats]
            if not matching:
                parser.error(f"--{option}: no file is a .{' or a .'.join(formats)}")
            for part in matching:
                setattr(part, option, tuple(value))
    return {"files": files}


def _parallel_files(paths: Sequence[Path]) -> ParallelFiles:
    """Describe two aligned files, or one file in the format that its name tells."""
    if len(paths) > 2:
        raise UsageError(f"{len(paths)} files: give one with both languages, or source and target")
    if len(paths) == 2:
        return ParallelFiles(source=paths[0], target=paths[1])
    suffixes = [suffix.lower() for suffix in paths[0].suffixes]
    suffix = next((suffix for suffix in reversed(suffixes) if suffix not in _COMPRESSED), "")
    name = next((name for name, known in _SUFFIXES.items() if suffix in known), "tsv")
    settings: dict[str, Any] = {name: paths[0]}
    return ParallelFiles(**settings)


def _column(argument: str) -> int | str:
    return int(argument) if argument.isdecimal() else argument


def _parser() -> Parser:
    parser = Parser(
        prog="translate check",
        description="Report errors in text before training on it. FILE is one file with both "
        "languages (.tsv, .csv, .tmx, .jsonl or .parquet), or two files, source and target, "
        "aligned line by line; plain or compressed. Exit code 1 means that training would stop, "
        "or would learn from misaligned or garbled text.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", type=file_path)
    for option, what in (("valid", "validation data"), ("test", "test data")):
        parser.add_argument(f"--{option}", nargs="+", metavar="FILE", type=file_path, help=what)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    names = ("SOURCE", "TARGET")
    for option, kind, what in (
        ("columns", _column, "columns of a .tsv or .csv file, by number or name (default: 1 2)"),
        ("languages", str, "language codes of a .tmx file (default: en de)"),
        ("fields", str, "field names of a .jsonl or .parquet file (default: en de)"),
    ):
        parser.add_argument(f"--{option}", nargs=2, type=kind, metavar=names, help=what)
    parser.add_options(
        {
            ("--config", "FILE", file_path): "check the data of this config file",
            ("--tokenizer", "MODEL", file_path): (
                "SentencePiece model that counts the pieces (default: train one on the data)"
            ),
            ("--vocab-size", "N", whole_number(5)): "pieces of the vocabulary (default: 8000)",
            ("--max-length", "N", whole_number(2)): "maximum pieces of a sentence (default: 256)",
        }
    )
    return parser
