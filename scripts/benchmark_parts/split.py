"""One training step split up: what the model costs, and what everything around it costs.

Around the model: `translate fit` runs as it is, with a stopwatch around a few methods. Every
moment of the measured steps counts for the innermost method that has one, so the parts add up
to the whole, and what has none is Lightning's own. The sums of all measured steps count.

As a check the same batches go through a bare loop, same module, same optimiser, in turns with
the other: how much longer `fit` takes a step. That is a difference of two runs and as noisy as
the machine; unlike the stopwatch it sees what a part costs others, such as cold caches.

Inside the model: torch's profiler over steps of the bare loop. Forward, an operation belongs to
the block whose method called it; backward, to that of the operation it differentiates. Python
between the operations counts where it stands. The profiler makes steps longer; its shares are
applied to the time of steps without it. What it cannot tell apart: how fast a block would be
alone, with warm caches.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmark_parts.children import run
from benchmark_parts.common import SHAPE, Bench
from benchmark_parts.data import fit_config
from benchmark_parts.rounds import figure, interleave

BATCH_TOKENS = 8192
LOG_EVERY = 10  # steps, the default of `translate fit`
CONTEST = "one training step"
FIT, BARE = "translate fit", "bare loop"


def units(rounds: int) -> int:
    """Steps of the progress bar."""
    return 2 * rounds


def measure(bench: Bench, rounds: int) -> dict[str, Any]:
    """Both ways in turns; JSON-able."""
    # A whole number of logging intervals, so that each step bears its share of them.
    warmup, steps = (2, LOG_EVERY) if bench.options.quick else (10, 6 * LOG_EVERY)
    folder = bench.options.work / "split"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "runs", ignore_errors=True)
    config = fit_config(
        bench.corpus,
        train=bench.corpus.train,
        batch_tokens=BATCH_TOKENS,
        # One step more than are measured: each ends where the next begins.
        trainer={"max_steps": warmup + steps + 1, "max_epochs": -1, "log_every_n_steps": LOG_EVERY},
    )
    file = folder / "split.yaml"
    file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    settings = {
        "config": str(file), "runs": str(folder / "runs"), "answer": str(folder / "answer.json"),
        "warmup": warmup, "steps": steps, "profiled": 3 if bench.options.quick else 10,
        "threads": bench.options.threads,
    }  # fmt: skip
    ways: dict[str, Callable[[int], dict[str, Any]]] = {
        name: partial(_child, bench, {**settings, "way": name}) for name in (FIT, BARE)
    }
    results, errors = interleave(bench, ways, rounds)
    rows = [*_around(results[FIT], errors), *_inside(results[BARE], errors)]
    both = list(zip(results[FIT], results[BARE], strict=False))
    longer = [100 * (fit["seconds"] / bare["seconds"] - 1) for fit, bare in both]
    name = f"{FIT}, longer than a {BARE}"
    rows.append(figure(CONTEST, name, "%", longer, error=errors.get(FIT) or errors.get(BARE)))
    about = {"shape": SHAPE, "batch_tokens": BATCH_TOKENS, "steps": steps}
    return {"settings": about, "figures": rows, "raw": results}


def _child(bench: Bench, settings: dict[str, Any], _: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmark_parts.split_worker", json.dumps(settings)]
    log = bench.options.work / "logs" / f"split_{settings['way'].replace(' ', '_')}.log"
    run(command, bench.options, log)
    return json.loads(Path(settings["answer"]).read_text("utf-8"))


def _around(results: list[dict[str, Any]], errors: dict[str, str]) -> list[dict[str, Any]]:
    """Shares of a step of `translate fit`, and the sum of what is not model or optimiser."""
    error = errors.get(FIT)
    if not results:
        return [figure(CONTEST, FIT, "% of a step", [], error=error)]
    rows = [figure(CONTEST, FIT, "ms", [1000 * each["seconds"] for each in results], error=error)]
    for part in results[0]["parts"]:
        shares = [100 * each["parts"][part] / each["seconds"] for each in results]
        rows.append(figure(CONTEST, f"{FIT}: {part}", "% of a step", shares))
    overhead = ("data", "Lightning", "logging")
    sums = [
        100 * sum(each["parts"][part] for part in overhead) / each["seconds"] for each in results
    ]
    rows.append(figure(CONTEST, f"{FIT}: data, Lightning, logging", "% of a step", sums))
    return rows


def _inside(results: list[dict[str, Any]], errors: dict[str, str]) -> list[dict[str, Any]]:
    """Shares of a step of the bare loop by block, forward and backward together."""
    error = errors.get(BARE)
    if not results:
        return [figure(CONTEST, BARE, "% of a step", [], error=error)]
    rows = [figure(CONTEST, BARE, "ms", [1000 * each["seconds"] for each in results], error=error)]
    parts = sorted(
        results[0]["shares"],
        key=lambda part: -statistics.median(each["shares"][part] for each in results),
    )
    for part in parts:
        shares = [100 * each["shares"][part] for each in results]
        rows.append(figure(CONTEST, f"{BARE}: {part}", "% of a step", shares))
    return rows
