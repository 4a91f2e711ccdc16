"""Remove one part of the model at a time, and check what textbooks claim about that part.

    python scripts/ablations.py [--output FOLDER] [--model runs/tiny]
    python scripts/ablations.py --from docs/ablations/results.json --output docs/ablations

Trains variants of one small model, one per core (configs/ablation/*.yaml and
scripts/ablation/variants.py), measures how far gradients reach and what attention costs, and
writes a page with figures and a table: FOLDER/README.md. This takes five minutes on two cores. The
variants train for about a minute, which is too short to learn pronouns: --model adds a fully
trained run to the last figure. --from writes the page from stored results, without training.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from ablation.claims import CLAIMS, VARIANTS
from ablation.measures import attention_cost, gradient_by_distance
from ablation.page import write_page
from ablation.train import train_variant
from pronouns import correct_by_distance
from tqdm import tqdm

from translate.decoding.translator import Translator
from translate.errors import UserError


def train_all(names: list[str]) -> dict[str, dict[str, Any]]:
    """Train each variant in a separate process, one per core; return the results by name."""
    found = {}
    workers = min(len(names), os.cpu_count() or 2)
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as runs, ProcessPoolExecutor(workers, context) as pool:
        running = {pool.submit(train_variant, name, Path(runs)): name for name in names}
        for future in tqdm(as_completed(running), total=len(names), unit="variant"):
            found[running[future]] = future.result()
    return {name: found[name] for name in names}


def measure_all(names: list[str], full: Translator | None) -> dict[str, Any]:
    """Return everything that the page shows."""
    variants = train_all(names)
    if reason := variants["baseline"]["diverged"]:
        sys.exit(f"ablations: the baseline diverged ({reason}), so there is nothing to compare")
    pronouns = {"baseline": variants["baseline"]["correct_pronouns"]}
    if full:
        pronouns["fully trained"] = correct_by_distance(full)
    return {
        "variants": variants,
        "gradient_by_distance": gradient_by_distance(),
        "attention_cost": attention_cost(),  # measures time, so no other process may run
        "pronouns": pronouns,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    output, stored = Path("runs/ablations"), "write the page from this results.json, do not train"
    add("--output", type=Path, default=output, metavar="FOLDER", help="default: runs/ablations")
    add("--only", nargs="+", choices=VARIANTS, help="train these variants and their references")
    add("--model", type=Path, metavar="RUN", help="a fully trained run, for the last figure")
    add("--from", type=Path, metavar="FILE", dest="stored", help=stored)
    args = parser.parse_args()
    if args.stored:
        results = json.loads(args.stored.read_text(encoding="utf-8"))
    else:
        try:
            full = Translator.load(args.model) if args.model else None
        except UserError as error:
            sys.exit(f"ablations: {error}")
        wanted = {"baseline", *(args.only or VARIANTS)}
        wanted |= {CLAIMS[name].reference for name in wanted & CLAIMS.keys()}
        results = measure_all([name for name in VARIANTS if name in wanted], full)
    print(write_page(args.output, results))


if __name__ == "__main__":
    main()
