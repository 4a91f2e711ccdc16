"""Measure how fast this program is, beside other programs that do the same.

    python scripts/benchmark.py --quick                      two minutes, with installed peers
    python scripts/benchmark.py --multi30k FOLDER            everything, on Multi30k
    python scripts/benchmark.py --only decoding,process      two of the measurements
    python scripts/benchmark.py --against ../before          this checkout and another one

Run it with the Python of this program's environment. It installs the peers (JoeyNMT, Hugging
Face's MarianMTModel, CTranslate2), in pinned versions, into an environment of their own,
.benchmark/env, and writes everything else into .benchmark/ too. A Markdown table goes to stdout,
the value of every round to a JSON file. All contestants have the same shape, data, batch size and
number of threads, and take turns; a ratio is the median of the rounds' ratios.

--against measures this checkout and another checkout of this project in turns, without the peers:
`translate fit` with AdamW and with Muon (training), 128 sentences at a time and one at a time
(decoding), a whole `translate decode` and `translate --help` (process). In this case the other
checkout trains the model for decoding, because new versions read the checkpoints of older ones.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.bench import Bench, Progress
from benchmarks.corpus import MULTI30K
from benchmarks.machine import describe_machine, usable_cores
from benchmarks.options import ROOT, BenchmarkError, Options
from benchmarks.report import describe, table


class Part(NamedTuple):
    """A module with `units(rounds) -> int`, the steps of the progress bar, and
    `measure(bench, rounds) -> dict`, whose result goes into the JSON file. Its key "figures"
    holds the rows of the table, made by `rounds.figure`."""

    module: str
    rounds: int  # without --rounds
    quick_rounds: int
    slow: bool = False  # left out of --quick, unless --only names it


PARTS = {
    "training": Part("training", rounds=5, quick_rounds=1),
    "decoding": Part("decoding", rounds=7, quick_rounds=2),
    "process": Part("startup", rounds=7, quick_rounds=2),
}
AGAINST = ("training", "decoding", "process")  # what --against can measure
CHECKOUTS = Part("checkouts", rounds=7, quick_rounds=1)


def parse(argv: Sequence[str] | None = None) -> tuple[argparse.Namespace, dict[str, Part]]:
    """Read the command line; return the options and the parts to run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="few steps and rounds, without the slow parts"
    )
    parser.add_argument(
        "--only",
        metavar="PARTS",
        help=f"parts to run, separated by commas, of {', '.join(PARTS)}; default: all",
    )
    parser.add_argument(
        "--threads", type=_positive, default=usable_cores(), metavar="N",
        help="threads of each contestant; default: all cores",
    )  # fmt: skip
    parser.add_argument(
        "--rounds", type=_positive, metavar="N",
        help="how often everything is measured; default: depends on the part",
    )  # fmt: skip
    parser.add_argument(
        "--multi30k", type=_multi30k, metavar="FOLDER",
        help="a folder with train, val and test_2016_flickr, each .en.gz and .de.gz; "
        "default: use data/tiny",
    )  # fmt: skip
    parser.add_argument(
        "--checkpoint", type=_file, metavar="FILE",
        help="a model to decode with, trained with --model.norm post; default: train one",
    )  # fmt: skip
    parser.add_argument(
        "--against", type=_checkout, metavar="FOLDER",
        help="another checkout of this project to compare this one with, instead of the peers",
    )  # fmt: skip
    parser.add_argument(
        "--work", type=Path, default=ROOT / ".benchmark", metavar="FOLDER",
        help="where everything is written; default: .benchmark in this checkout",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, metavar="FILE",
        help="the JSON file; default: benchmark.json in the work folder",
    )  # fmt: skip
    args = parser.parse_args(argv)
    known = AGAINST if args.against else tuple(PARTS)
    if args.only is None:
        args.only = [name for name in known if not (args.quick and PARTS[name].slow)]
    else:
        args.only = args.only.split(",")
    if unknown := [name for name in args.only if name not in known]:
        parser.error(f"no such part: {', '.join(unknown)}; expected {', '.join(known)}")
    if args.against:
        return args, {"checkouts": CHECKOUTS}
    return args, {name: PARTS[name] for name in args.only}


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def _multi30k(text: str) -> Path:
    folder = Path(text).resolve()
    for name in MULTI30K.values():
        for language in ("en", "de"):
            if not (folder / f"{name}.{language}.gz").is_file():
                raise argparse.ArgumentTypeError(f"no {name}.{language}.gz in {text!r}")
    return folder


def _file(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"no file {text!r}")
    return Path(text).resolve()


def _checkout(text: str) -> Path:
    if not Path(text, "translate", "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"no package translate/ in {text!r}")
    return Path(text).resolve()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts; return 0 if everything was measured and 1 if something failed."""
    args, parts = parse(argv)
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    output = args.output or work / "benchmark.json"
    options = Options(
        quick=args.quick, threads=args.threads, multi30k=args.multi30k, checkpoint=args.checkpoint,
        against=args.against, only=tuple(args.only), work=work,
    )  # fmt: skip
    modules = {
        name: importlib.import_module(f"benchmarks.{part.module}") for name, part in parts.items()
    }
    rounds = {
        name: args.rounds or (part.quick_rounds if args.quick else part.rounds)
        for name, part in parts.items()
    }
    progress = Progress(sum(modules[name].units(rounds[name]) for name in parts))
    bench = Bench(options, progress)
    checkouts = [ROOT, *([args.against] if args.against else [])]
    results: dict[str, Any] = {
        "machine": describe_machine(args.threads, checkouts),
        "options": {**vars(options), "rounds": rounds},
        "parts": {},
    }
    started = time.monotonic()
    try:
        for name in parts:
            try:
                part = modules[name].measure(bench, rounds[name])
            except BenchmarkError as error:
                progress.say(f"{name}: {error}")
                part = {"error": str(error)}
            results["parts"][name] = part
            results["seconds"] = round(time.monotonic() - started, 1)
            # Written after every part, so that an interrupted benchmark loses only the last one.
            output.write_text(json.dumps(results, indent=1, default=str) + "\n", "utf-8")
    except KeyboardInterrupt:
        progress.say("interrupted")
        return 130
    finally:
        progress.close()
    print(describe(results))
    print()
    print(table(results))
    print(f"benchmark: the value of every round is in {output}", file=sys.stderr)
    rows = [row for part in results["parts"].values() for row in part.get("figures", [])]
    failed = [part for part in results["parts"].values() if part.get("error")]
    return int(bool(failed) or any(row["error"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
