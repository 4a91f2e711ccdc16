"""Two checkouts of this project side by side, for example before and after a change.

The measurement uses only what every version has: `translate fit`, `translate decode` and
`Translator.load(...).translate_detailed(...)`, in child processes whose PYTHONPATH names the
checkout. Both use the same Python and the same checkpoint; the other checkout trains it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.child_processes import run
from benchmarks.decoding import UNITS, identical, load, settings_of, speeds
from benchmarks.options import OURS, ROOT
from benchmarks.rounds import Measure, figures, interleave
from benchmarks.startup import SENTENCE, UNIT, translate_seconds
from benchmarks.training import fit_speed

OTHER = "the other checkout"
OPTIMIZERS = ("adamw", "muon")


def units(rounds: int) -> int:
    """Return the steps of the progress bar, for everything."""
    return 1 + 2 * rounds * (len(OPTIMIZERS) + 1 + 2)


def measure(bench: Bench, rounds: int) -> dict[str, Any]:
    """Measure both checkouts in turns."""
    checkouts = {OURS: ROOT, OTHER: bench.options.against}
    for checkout in checkouts.values():
        _check_import(bench, checkout)
    parts: dict[str, Callable[..., dict[str, Any]]] = {
        "training": _training, "decoding": _decoding, "process": _process,
    }  # fmt: skip
    result: dict[str, Any] = {"settings": bench.corpus.describe(), "figures": []}
    for name in bench.options.only:
        part = parts[name](bench, checkouts, rounds)
        result["figures"] += part.pop("figures")
        result[name] = part
    return result


def _check_import(bench: Bench, checkout: Path) -> None:
    """Raise an error unless `import translate` finds the checkout's own package."""
    code = (
        "import sys, pathlib, translate\n"
        "found = pathlib.Path(translate.__file__).resolve().parent.parent\n"
        "if found != pathlib.Path(sys.argv[1]):\n"
        "    sys.exit(f'error: expected {sys.argv[1]}, imported {found}')\n"
    )
    log = bench.options.work / "logs" / "import.log"
    run([sys.executable, "-c", code, checkout], bench.options, log, checkout)


def _training(bench: Bench, checkouts: dict[str, Path], rounds: int) -> dict[str, Any]:
    rows, raw = [], {}
    for optimizer in OPTIMIZERS:
        contestants: dict[str, Measure] = {
            name: lambda _, path=path, model={"optimizer": optimizer}: fit_speed(bench, path, model)
            for name, path in checkouts.items()
        }
        results, errors = interleave(bench.progress, contestants, rounds)
        raw[optimizer] = results
        rows += figures(f"fit, {optimizer}", "target tokens/s", "speed", results, errors)
    return {"figures": rows, "raw": raw}


def _decoding(bench: Bench, checkouts: dict[str, Path], rounds: int) -> dict[str, Any]:
    settings = settings_of(bench.options)
    bench.progress.now("decoding: training a model")
    files = {"checkpoint": bench.checkpoint, "sentences": bench.corpus.test}
    bench.progress.done()
    with ExitStack() as stack:
        engines = {
            name: load(
                stack, sys.executable, {**settings, **files, "contestant": name},
                bench.options, path,
            )
            for name, path in checkouts.items()
        }  # fmt: skip
        contestants: dict[str, Measure] = {
            name: partial(speeds, engine.worker) for name, engine in engines.items()
        }
        results, errors = interleave(bench.progress, contestants, rounds)
    share = identical(engines, settings["max_new"])[OTHER]
    bench.progress.say(f"decoding: {share:.1%} of the outputs are identical")
    rows = [
        row
        for key, unit in UNITS.items()
        for row in figures("decoding", unit, key, results, errors)
    ]
    return {"figures": rows, "raw": results, "identical_outputs": share, "settings": settings}


def _process(bench: Bench, checkouts: dict[str, Path], rounds: int) -> dict[str, Any]:
    commands = {
        "translate decode, one sentence": ["decode", SENTENCE, "--model", bench.checkpoint],
        "translate --help": ["--help"],
    }
    rows, raw = [], {}
    for contest, arguments in commands.items():
        contestants: dict[str, Measure] = {
            name: partial(translate_seconds, bench, arguments, path)
            for name, path in checkouts.items()
        }
        for warm_up in contestants.values():
            warm_up(0)  # writes the compiled modules
        results, errors = interleave(bench.progress, contestants, rounds)
        raw[contest] = results
        rows += figures(contest, UNIT, "seconds", results, errors)
    return {"figures": rows, "raw": raw}
