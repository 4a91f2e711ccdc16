"""How fast this program is, beside others that do the same: one command, one run.

    python scripts/benchmark.py --quick                      two minutes, once the peers are there
    python scripts/benchmark.py --multi30k FOLDER            the real thing, on Multi30k
    python scripts/benchmark.py --only decoding,process      parts of it

Run it with the Python of this program's environment. The peers (JoeyNMT, Hugging Face's
MarianMTModel, CTranslate2) are installed from pinned packages into an environment of their own,
.benchmark/env; everything else is written into .benchmark/ too. A Markdown table goes to stdout,
every single repeat to a JSON file. All have the same shape, data, token budget and threads.
They take turns, and ratios are medians of the ratios of the rounds.
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

sys.path.insert(0, str(Path(__file__).resolve().parent))
from benchmark_parts.common import SCRIPTS, Bench, BenchmarkError, Options, Progress
from benchmark_parts.data import MULTI30K
from benchmark_parts.peers import machine, our_versions, usable_cores
from benchmark_parts.report import describe, table

ROOT = SCRIPTS.parent


class Part(NamedTuple):
    """A module with `units(rounds) -> int`, the steps of the progress bar, and
    `compete(bench, rounds) -> dict`, whose result goes into the JSON file. Rows made by
    `rounds.figure` under its key "figures" go into the table. What fails is a
    BenchmarkError."""

    module: str
    rounds: int  # without --rounds
    quick_rounds: int
    peers: bool = True  # whether it needs their environment
    long: bool = False  # left out of --quick unless --only names it


# In this order. A part needs a line here and nothing else.
PARTS = {
    "training": Part("benchmark_parts.training", rounds=5, quick_rounds=1),
    "decoding": Part("benchmark_parts.decoding", rounds=7, quick_rounds=2),
    "process": Part("benchmark_parts.process", rounds=7, quick_rounds=2, peers=False),
    "costs": Part("benchmark_parts.costs", rounds=1, quick_rounds=1, peers=False, long=True),
}


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few steps and repeats, no curves")
    parser.add_argument("--only", metavar="PARTS", help=f"of {','.join(PARTS)}; default: all")
    parser.add_argument("--threads", type=_positive, default=usable_cores(), metavar="N")
    parser.add_argument(
        "--rounds", type=_positive, metavar="N", help="repeats of everything (default: a part's)"
    )
    parser.add_argument(
        "--multi30k",
        type=_folder,
        metavar="FOLDER",
        help="with train, val and test_2016_flickr, each .en.gz and .de.gz; default: data/tiny",
    )
    parser.add_argument(
        "--checkpoint",
        type=_file,
        metavar="FILE",
        help="a model to decode with, trained with --model.norm post; default: trains one",
    )
    parser.add_argument("--work", type=Path, default=ROOT / ".benchmark", metavar="FOLDER")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="default: benchmark.json in the work folder"
    )
    args = parser.parse_args(argv)
    if args.only is None:
        args.parts = [name for name in PARTS if not (args.quick and PARTS[name].long)]
    else:
        args.parts = args.only.split(",")
    if unknown := [name for name in args.parts if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return args


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def _folder(text: str) -> Path:
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts; 0 if everything was measured, 1 if something failed."""
    args = parse(argv)
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    output = args.output or work / "benchmark.json"
    modules = {name: importlib.import_module(PARTS[name].module) for name in args.parts}
    rounds = {
        name: args.rounds or (PARTS[name].quick_rounds if args.quick else PARTS[name].rounds)
        for name in args.parts
    }
    common = {"quick": args.quick, "threads": args.threads, "work": work}
    common |= {"multi30k": args.multi30k, "checkpoint": args.checkpoint}
    progress = Progress(1 + sum(modules[name].units(rounds[name]) for name in args.parts))
    bench = Bench(Options(**common), progress)
    results: dict[str, Any] = {
        "machine": machine(bench.options),
        "options": {
            "quick": args.quick,
            "threads": args.threads,
            "multi30k": args.multi30k is not None,
            "checkpoint": args.checkpoint and args.checkpoint.name,
            "parts": args.parts,
            "rounds": rounds,
        },
        "parts": {},
    }
    started = time.monotonic()
    try:
        results["versions"] = {"ours": our_versions(), "peers": {}}
        if any(PARTS[name].peers for name in args.parts):
            results["versions"] |= {"peers": bench.peers.versions}
            results["versions"] |= {"peers_error": bench.peers.error or None}
            ours, theirs = results["machine"]["torch"], bench.peers.versions.get("torch", "")
            if theirs and theirs != ours:
                progress.say(f"not the same torch: {ours} here, {theirs} for the peers")
        progress.done()
        for name in args.parts:
            begun = time.monotonic()
            try:
                part = modules[name].compete(bench, rounds[name])
            except BenchmarkError as error:
                progress.say(f"{name}: {error}")
                part = {"error": str(error)}
            part["seconds"] = round(time.monotonic() - begun, 1)
            results["parts"][name] = part
            results["seconds"] = round(time.monotonic() - started, 1)
            # After every part: what has been measured survives whatever comes next.
            output.write_text(json.dumps(results, indent=1, default=str) + "\n", "utf-8")
    except KeyboardInterrupt:
        progress.say("interrupted")
        return 130
    finally:
        progress.close()
    print(describe(results))
    print()
    print(table(results))
    print(f"benchmark: every repeat is in {output}", file=sys.stderr)
    rows = [row for part in results["parts"].values() for row in part.get("figures", [])]
    failed = [part for part in results["parts"].values() if part.get("error")]
    return int(bool(failed) or any(row["error"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
