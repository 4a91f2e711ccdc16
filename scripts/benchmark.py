"""Measure how fast this program is, beside other programs that do the same.

    python scripts/benchmark.py --quick                    two minutes, once the peers are installed
    python scripts/benchmark.py --multi30k FOLDER          everything, on Multi30k
    python scripts/benchmark.py --only decoding,process    two of the measurements
    python scripts/benchmark.py --against ../before        this checkout and another one

Run it with the Python of this program's environment. It installs the peers (JoeyNMT, Hugging
Face's MarianMTModel, CTranslate2), in pinned versions, into an environment of their own,
.benchmark/env, and writes everything else into .benchmark/ too. A Markdown table goes to stdout,
the value of every round to a JSON file. All contestants have the same shape, data, batch size and
number of threads, and take turns; a ratio is the median of the rounds' ratios.

--against measures this checkout and another checkout of this project in turns, without the peers:
`translate fit` with AdamW and with Muon (training), 128 sentences at a time and one at a time
(decoding), a whole `translate decode` and `translate --help` (process). The other checkout trains
the model for decoding, because new versions read the checkpoints of older ones.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import checkouts, cost_curves, decoding, startup, step_profile, training
from benchmarks.corpus import MULTI30K, prepare
from benchmarks.options import ROOT, BenchmarkError, Options, say
from benchmarks.report import machine, table, usable_cores

# Modules with `ROUNDS`, `QUICK_ROUNDS` and `measure(options, rounds)`, which returns "figures",
# rows of the table, or "text"; everything goes into the JSON file.
PARTS = {
    "training": training,
    "decoding": decoding,
    "process": startup,
    "costs": cost_curves,
    "profile": step_profile,
}
SLOW = ("costs",)  # not with --quick, unless --only names it


def parse(argv: Sequence[str] | None = None) -> tuple[Options, int | None, Path]:
    """Read the command line; return the options, the number of rounds and the JSON file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cores = usable_cores()
    add = parser.add_argument
    add("--quick", action="store_true", help=f"few steps and rounds; without {', '.join(SLOW)}")
    add("--only", metavar="PARTS",
        help=f"what to measure, separated by commas: {', '.join(PARTS)}; default: everything; "
        f"with --against: {', '.join(checkouts.PARTS)}")  # fmt: skip
    add("--threads", type=_positive, default=cores, metavar="N",
        help=f"threads of each contestant; default: the cores of this machine ({cores})")  # fmt: skip
    add("--rounds", type=_positive, metavar="N",
        help="how often everything is measured; default: 1 to 7, depending on the part")  # fmt: skip
    add("--multi30k", type=_multi30k, metavar="FOLDER",
        help="a folder with train, val and test_2016_flickr, each .en.gz and .de.gz; "
        "default: the corpus data/tiny")  # fmt: skip
    add("--checkpoint", type=_file, metavar="FILE",
        help="a model to decode with, trained with --model.norm post; default: train one")  # fmt: skip
    add("--against", type=_checkout, metavar="FOLDER",
        help="another checkout of this project to compare with, instead of the peers")  # fmt: skip
    add("--work", type=Path, default=ROOT / ".benchmark", metavar="FOLDER",
        help="the folder that everything is written into; default: .benchmark")  # fmt: skip
    add("--output", type=Path, metavar="FILE",
        help="the JSON file; default: benchmark.json in the --work folder")  # fmt: skip
    args = parser.parse_args(argv)
    known = checkouts.PARTS if args.against else tuple(PARTS)
    parts = tuple(name for name in known if not (args.quick and name in SLOW))
    if args.only is not None:
        parts = tuple(args.only.split(","))
    if unknown := [name for name in parts if name not in known]:
        parser.error(f"no such part: {', '.join(unknown)}; expected {', '.join(known)}")
    work = args.work.resolve()
    options = Options(
        quick=args.quick, threads=args.threads, multi30k=args.multi30k,
        checkpoint=args.checkpoint, against=args.against, parts=parts, work=work,
    )  # fmt: skip
    return options, args.rounds, args.output or work / "benchmark.json"


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def _existing(text: str, *names: str) -> Path:
    for name in names:
        if not Path(text, name).is_file():
            raise argparse.ArgumentTypeError(f"no file {name} in {text!r}")
    return Path(text).resolve()


def _multi30k(text: str) -> Path:
    return _existing(
        text, *(f"{name}.{side}.gz" for name in MULTI30K.values() for side in ("en", "de"))
    )


def _checkout(text: str) -> Path:
    return _existing(text, "translate/__init__.py")


def _file(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"no file {text!r}")
    return Path(text).resolve()


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all parts; return 0 if everything was measured and 1 if something failed."""
    options, rounds, output = parse(argv)
    options.work.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    modules = (
        {"checkouts": checkouts}
        if options.against
        else {name: PARTS[name] for name in options.parts}
    )
    parts: dict[str, dict[str, Any]] = {}
    results = {"machine": machine(options), "options": asdict(options), "parts": parts}
    try:
        results["corpus"] = prepare(options).description
        for name, module in modules.items():
            say(f"{name}, after {(time.monotonic() - started) / 60:.0f} minutes")
            try:
                default = module.QUICK_ROUNDS if options.quick else module.ROUNDS
                parts[name] = module.measure(options, rounds or default)
            except BenchmarkError as error:
                parts[name] = {"error": str(error)}
                say(f"{name}: {error}")
            # Written after every part, so that an interrupted benchmark loses only the last one.
            output.write_text(json.dumps(results, indent=1, default=str) + "\n", "utf-8")
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    print(results["machine"], results["corpus"], "", table(parts), sep="\n")
    for part in parts.values():
        if "text" in part:
            print("", part["text"], sep="\n")
    say(f"the values of all rounds are in {output}")
    rows = [row for part in parts.values() for row in part.get("figures", [])]
    return int(any("error" in part for part in parts.values()) or any(row["error"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
