"""Compare the speed of this program with that of similar programs (the peers).

    python scripts/benchmark.py --quick                    rough figures in two minutes
    python scripts/benchmark.py --multi30k FOLDER          all measurements, on Multi30k
    python scripts/benchmark.py --only decoding,process    two of the measurements
    python scripts/benchmark.py --against ../before        compare with another checkout

Run the script with the Python of this program's environment. It installs the peers (JoeyNMT,
Hugging Face's MarianMTModel, CTranslate2), in pinned versions, into a separate environment,
.benchmark/env; this takes some minutes the first time. All other files also go into .benchmark/. A
Markdown table goes to stdout, the value of every round to a JSON file. All programs have the same
model shape, data, batch size and number of threads, and take turns. A ratio is the median of the
ratios of the rounds.

  training   target tokens per second of `translate fit` and of the peers
  decoding   1,000 sentences, 128 at a time, and some sentences one at a time
  process    `translate decode` and `translate fit` from start to first result; a million pairs
  costs      speed and RAM of training against the sentence length, also drawn as costs.png
  profile    the operations that take most time in a training step, measured by torch.profiler

--against compares this checkout with another checkout of this project, without the peers:
`translate fit` with AdamW and with Muon (training), decoding, a whole `translate decode` and
`translate --help` (process). The other checkout trains the model for decoding, because new
versions of the program read the checkpoints of older versions.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import checkouts, cost_curves, decoding, startup, training
from benchmarks.corpus import MULTI30K, prepare
from benchmarks.options import ROOT, BenchmarkError, Options, say
from benchmarks.report import machine, table, usable_cores

# Part -> (function, rounds, rounds with --quick). The result of the function goes into the JSON
# file; its "figures" are rows of the table, its "text" is printed after the table.
PARTS = {
    "training": (training.measure, 5, 1),
    "decoding": (decoding.measure, 7, 1),
    "process": (startup.measure, 7, 2),
    "costs": (cost_curves.measure, 1, 1),
    "profile": (cost_curves.profile, 1, 1),
}
AGAINST = (checkouts.measure, 7, 1)


def parse(argv: Sequence[str] | None = None) -> tuple[Options, int | None, Path]:
    """Read the command line; return the options, the number of rounds and the JSON file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    work, cores = ROOT / ".benchmark", usable_cores()
    multi30k = "contains train, val, test_2016_flickr, each .en.gz and .de.gz; default: data/tiny"
    model = "decode with this model (trained with --model.norm post); default: train a new model"
    archives = (f"{name}.{side}.gz" for name in MULTI30K.values() for side in ("en", "de"))
    checkout = _folder_with("translate/__init__.py")
    add = parser.add_argument
    add("--quick", action="store_true", help="few steps and rounds, without the costs")
    add("--only", metavar="PARTS", help="parts to run, separated by commas; default: all")
    add("--threads", type=_positive, default=cores, metavar="N", help="default: all cores")
    add("--rounds", type=_positive, metavar="N", help="rounds per part; default: 1 to 7")
    add("--multi30k", type=_folder_with(*archives), metavar="FOLDER", help=multi30k)
    add("--checkpoint", type=_file, metavar="FILE", help=model)
    add("--against", type=checkout, metavar="FOLDER", help="another checkout of this project")
    add("--work", type=Path, default=work, metavar="FOLDER", help="default: .benchmark")
    add("--output", type=Path, metavar="FILE", help="JSON; default: benchmark.json in --work")
    args = parser.parse_args(argv)
    known = checkouts.PARTS if args.against else tuple(PARTS)
    parts = tuple(name for name in known if not (args.quick and name == "costs"))
    if args.only is not None:
        parts = tuple(args.only.split(","))
    if unknown := [name for name in parts if name not in known]:
        parser.error(f"no such part: {', '.join(unknown)}; expected {', '.join(known)}")
    names = ("quick", "threads", "multi30k", "checkpoint", "against")
    given = {name: getattr(args, name) for name in names}
    options = Options(**given, parts=parts, work=args.work.resolve())
    return options, args.rounds, args.output or options.work / "benchmark.json"


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def _file(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"no file {text!r}")
    return Path(text).resolve()


def _folder_with(*names: str) -> Callable[[str], Path]:
    def check(text: str) -> Path:
        for name in names:
            _file(f"{text}/{name}")
        return Path(text).resolve()

    return check


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all parts; return 0 if all measurements succeed and 1 if one fails."""
    options, rounds, output = parse(argv)
    options.work.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(ROOT))  # the package of this checkout, not an installed one
    from translate.errors import UserError

    started = time.monotonic()
    chosen = {"against": AGAINST} if options.against else {p: PARTS[p] for p in options.parts}
    parts: dict[str, dict[str, Any]] = {}
    results = {"machine": machine(options), "options": asdict(options), "parts": parts}
    try:
        results["corpus"] = prepare(options).description
        for name, (measure, full, quick) in chosen.items():
            say(f"starting {name} after {(time.monotonic() - started) / 60:.0f} minutes")
            try:
                default = quick if options.quick else full
                parts[name] = measure(options, rounds or default)
            except BenchmarkError as error:
                parts[name] = {"error": str(error)}
                say(f"{name}: {error}")
            # Written after every part, so that an interrupted benchmark loses only the last one.
            output.write_text(json.dumps(results, indent=1, default=str) + "\n", "utf-8")
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except UserError as error:  # the corpus, the checkpoint
        say(str(error))
        return 1
    texts = [part["text"] for part in parts.values() if "text" in part]
    print(results["machine"], results["corpus"], "", table(parts), "", *texts, sep="\n")
    say(f"the values of all rounds are in {output}")
    rows = [row for part in parts.values() for row in part.get("figures", [])]
    return int(any("error" in part for part in parts.values()) or any(row["error"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
