"""`translate check`: its options, and the report as a table or as JSON."""

from __future__ import annotations

import dataclasses
import json
import os
from argparse import ArgumentError
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from translate.commands.options import Parser
from translate.errors import UsageError
from translate.text.check_report import SAMPLE, Lengths, Report, Split, check_files
from translate.text.corpus import ParallelFiles
from translate.text.filters import Filters
from translate.text.problems import NOTE, SEVERITIES, UNSAFE, WARNING, DataError, Problem
from translate.text.text_files import read_bytes

_SPLITS = ("train", "valid", "test")
_SETTINGS = {
    **dict.fromkeys(_SPLITS, ParallelFiles | list[ParallelFiles]),
    "filters": Filters,
    "tokenizer": Path,
    "vocab_size": int,
    "held_out": int,
}
_LEAST = {"held_out": 1, "vocab_size": 5, "max_length": 2}  # as `fit` has it
_FORMS = {"tmx": "tmx", "jsonl": "jsonl", "json": "jsonl", "ndjson": "jsonl", "parquet": "parquet"}
_PACKED = (".gz", ".xz", ".zst")
_OPTIONS = {"columns": ("tsv",), "languages": ("tmx",), "fields": ("jsonl", "parquet")}


def main(argv: Sequence[str]) -> int:
    """Print the report on what the command line names; 0 safe to train on, 1 unsafe.

    Raises:
        UsageError: a command line or a config file that cannot be meant.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    if args.config:
        if args.files or args.valid or args.test:
            parser.error("give files or --config, not both")
        if idle := [f"--{name}" for name in _OPTIONS if getattr(args, name)]:
            parser.error(f"{' and '.join(idle)}: the config file says that under data.train")
        settings = _read_config(args.config) | {"section": "data."}
    else:
        named = {"train": args.files, "valid": args.valid, "test": args.test}
        if not args.files:
            parser.error("nothing to check: give one file with both languages, two, or --config")
        options = {name: getattr(args, name) for name in _OPTIONS}
        files = {name: _files(paths, options) for name, paths in named.items() if paths}
        for option, forms in _OPTIONS.items():
            if options[option] and not any(
                getattr(part, form) for part in files.values() for form in forms
            ):
                parser.error(f"--{option}: no file is a .{' or a .'.join(forms)}")
        settings = {"files": files}
    given = {name: getattr(args, name) for name in ("tokenizer", "vocab_size", "max_length")}
    for name, least in _LEAST.items():
        if (value := given.get(name)) is not None and value < least:
            parser.error(f"--{name.replace('_', '-')} must be {least} or more, not {value}")
    settings |= {name: value for name, value in given.items() if value is not None}
    report = check_files(**settings)
    if args.json:
        print(json.dumps(_as_json(report), ensure_ascii=False, indent=1))
    else:
        print("\n".join(_as_text(report)))
    return 0 if report.safe else 1


def _files(paths: Sequence[Path], options: Mapping[str, tuple | None]) -> ParallelFiles:
    """One file, whose name tells its form, with the options that belong to it; or two files."""
    if len(paths) > 2:
        raise UsageError(f"{len(paths)} files: give one with both languages, or source and target")
    if len(paths) == 2:
        return ParallelFiles(source=paths[0], target=paths[1])
    name = paths[0].name.lower()
    for ending in _PACKED:
        name = name.removesuffix(ending)
    form = _FORMS.get(name.rpartition(".")[2], "tsv")
    fitting = {
        option: tuple(value)
        for option, value in options.items()
        if value is not None and form in _OPTIONS[option]
    }
    return ParallelFiles(**{form: paths[0]}, **fitting)


def _read_config(path: Path) -> dict[str, Any]:
    """The settings of `examine` that a config file for `fit` holds, read as `fit` reads them."""
    from jsonargparse import ArgumentParser

    from translate.training import config_types  # noqa: F401 (registers the type of a path)
    from translate.training.config_errors import explain

    try:
        config = yaml.safe_load(read_bytes(path, "--config").decode("utf-8-sig"))
    except DataError as error:
        raise UsageError(str(error)) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text") from None
    except yaml.YAMLError as error:
        problem, mark = getattr(error, "problem", error), getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else path
        raise UsageError(f"{place}: not YAML: {' '.join(str(problem).split())}") from None
    if not isinstance(config, dict) or not isinstance(config.get("data"), dict):
        raise UsageError(f"{path}: no data section: name the files under data.train")
    data = {name: value for name, value in config["data"].items() if name in _SETTINGS}
    given = {"model": config.get("model") or {}, "data.filters": data.get("filters", {})}
    for section, value in given.items():
        if not isinstance(value, dict):
            raise UsageError(f"{path}: {section}: a section of settings is expected, not {value}")
    for section, values in (("data", data), ("model", given["model"])):
        for name in _LEAST:
            if values.get(name, 0) is None:
                raise UsageError(f"{path}: {section}.{name}: expected int, got None")
    model = {"max_length": given["model"].get("max_length")}
    parser = ArgumentParser(exit_on_error=False)
    for name, kind in _SETTINGS.items():
        parser.add_argument(f"--data.{name}", type=kind)
    parser.add_argument("--model.max_length", type=int)
    here = Path.cwd()
    try:
        os.chdir(path.expanduser().absolute().parent)  # paths are meant from the file
        parsed = parser.instantiate(parser.parse_object({"data": data, "model": model}))
    except (ArgumentError, ValueError) as error:
        known = parser.get_defaults().keys()
        raise UsageError(explain(str(error), ["--config", str(path)], known)) from None
    finally:
        os.chdir(here)
    given = {**vars(parsed.data), **vars(parsed.model)}
    settings = {name: value for name, value in given.items() if value is not None}
    faults = settings.get("filters", Filters()).errors()
    for name, least in _LEAST.items():
        if settings.get(name, least) < least:
            faults.append(f"{name} must be {least} or more, not {settings[name]}")
    if faults:
        raise UsageError("; ".join(f"{path}: {fault}" for fault in faults))
    files = {name: settings.pop(name) for name in _SPLITS if name in settings}
    if "train" not in files:
        raise UsageError(f"{path}: data.train is not set: name the files to train on")
    seed = config.get("seed_everything")
    if isinstance(seed, int) and not isinstance(seed, bool):
        settings["seed"] = seed
    return {"files": files, **settings}


def _parser() -> Parser:
    parser = Parser(
        prog="translate check",
        description="Say what is wrong with text before training on it. FILE is one file with both "
        "languages (.tsv, .tmx, .jsonl or .parquet), or two line-aligned files, source and target; "
        "plain or compressed. Exit code 1: training would stop, or learn from misaligned or "
        "garbled text.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", type=Path)
    parser.add_argument("--valid", nargs="+", metavar="FILE", type=Path, help="to validate on")
    parser.add_argument("--test", nargs="+", metavar="FILE", type=Path, help="to test on")
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="check what the data section of it names"
    )
    parser.add_argument("--json", action="store_true", help="the report for programs")
    for option, kind, what in (
        ("columns", int, "columns of source and target in a .tsv, counted from 1 (1 2)"),
        ("languages", str, "codes of source and target in a .tmx (en de)"),
        ("fields", str, "names of source and target in .jsonl and .parquet (en de)"),
    ):
        parser.add_argument(
            f"--{option}", nargs=2, type=kind, metavar=("SOURCE", "TARGET"), help=what
        )
    parser.add_argument(
        "--tokenizer",
        metavar="MODEL",
        type=Path,
        help="count pieces of this SentencePiece model",
    )
    parser.add_argument("--vocab-size", metavar="N", type=int, help="pieces to train (8000)")
    parser.add_argument(
        "--max-length", metavar="N", type=int, help="pieces a sentence may have (256)"
    )
    return parser


def _as_text(report: Report) -> Iterator[str]:
    """A table of the splits, then the faults, worst first, then the verdict."""
    kinds = list(dict.fromkeys(kind for part in report.splits.values() for kind in part.left_out))
    rows = [
        ["", *report.splits],
        *(
            [label, *(show(split) for split in report.splits.values())]
            for label, show in _rows(kinds, report.max_length)
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for label, *cells in rows:
        columns = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
        yield "   ".join([f"{label:<{widths[0]}}", *columns])
    yield ""
    if report.pieces:
        sample = f" of {SAMPLE:,} pairs" if report.sampled else ""
        yield f"Lengths{sample} in pieces of a vocabulary of {report.pieces:,}."
    if report.largest:
        least, most = report.smallest, report.largest
        yield f"The text to train on supports vocabularies of {least:,} to {most:,} pieces."
    for problem in report.problems:
        yield ""
        yield from _problem_lines(problem)
    yield ""
    yield _verdict(report)


def _rows(kinds: Sequence[str], max_length: int) -> Iterator[tuple[str, Callable[[Split], str]]]:
    def lengths(side: Lengths | None) -> str:
        return f"{side.median} / {side.percentile_99} / {side.longest}" if side else "-"

    yield "pairs", lambda split: f"{split.pairs:,}"
    for kind in kinds:
        yield f"left out: {kind}", lambda split, kind=kind: f"{split.left_out.get(kind, 0):,}"
    yield f"longer than {max_length:,}", lambda split: f"{split.too_long:,}"
    yield "characters not in train", lambda split: f"{split.unknown:.2%}"
    yield "source: median / 99 % / longest", lambda split: lengths(split.source)
    yield "target: median / 99 % / longest", lambda split: lengths(split.target)


def _problem_lines(problem: Problem) -> Iterator[str]:
    often = f"   {problem.count:,} lines" if problem.count > 1 else ""
    yield f"{problem.severity:<8} {problem.kind:<22} {problem.place}{often}"
    yield f"         {problem.what}" + (f": {problem.example}" if problem.example else "")
    if problem.todo:
        yield f"         {problem.todo}"


def _verdict(report: Report) -> str:
    counts = Counter(problem.severity for problem in report.problems)
    many = {UNSAFE: "unsafe", WARNING: "warnings", NOTE: "notes"}
    found = ", ".join(
        f"{count} {severity if count == 1 else many[severity]}"
        for severity in SEVERITIES
        if (count := counts[severity])
    )
    return f"{'safe' if report.safe else 'NOT SAFE'} to train on: {found or 'no problem found'}"


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "safe": report.safe,
        "pairs": report.splits["train"].pairs,
        "faults": [
            {**dataclasses.asdict(problem), "unsafe": problem.unsafe, "message": str(problem)}
            for problem in report.problems
        ],
        "splits": {name: dataclasses.asdict(split) for name, split in report.splits.items()},
        "vocabulary": {
            "smallest": report.smallest,
            "largest": report.largest,
            "pieces": report.pieces,
        },
        "sampled": report.sampled,
    }
