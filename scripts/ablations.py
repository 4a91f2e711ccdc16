"""The lesson's claims, each against what happens when a part is taken away.

    python scripts/ablations.py [--output FOLDER] [--model runs/tiny]

Trains small variants of one model side by side, one on each core (configs/ablation/*.yaml),
measures how far gradients reach and what attention costs, and writes one page with figures and a
table: FOLDER/README.md. Five minutes on two cores. Each variant trains for a minute only, too short
for pronouns: --model names a fully trained run, which then stands beside the baseline.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from ablation_parts.claims import CLAIMS, VARIANTS
from ablation_parts.measures import attention_cost, gradient_by_distance
from ablation_parts.page import write_page
from pronouns import by_distance
from tqdm import tqdm

from translate.decoding.translator import Translator
from translate.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
CHILD = ROOT / "scripts/ablation_parts/child.py"


def train_all(names: list[str], runs: Path, at_once: int) -> dict[str, dict]:
    """Results by name; each variant in a process of its own, on one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

    def train(name: str) -> dict:
        result = runs / f"{name}.json"
        command = [sys.executable, str(CHILD), name, str(runs), str(result)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            *_, why = ["", *done.stderr.strip().splitlines()]
            sys.exit(f"ablations: {name} failed: {why or f'exit code {done.returncode}'}")
        return json.loads(result.read_text())

    found = {}
    with ThreadPoolExecutor(at_once) as pool, tqdm(total=len(names), unit="variant") as bar:
        waiting = {pool.submit(train, name): name for name in names}
        for future in as_completed(waiting):
            found[waiting[future]] = future.result()
            bar.set_postfix_str(waiting[future])
            bar.update()
    return {name: found[name] for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--only", nargs="+", choices=VARIANTS, help="train only these")
    parser.add_argument("--model", type=Path, help="a fully trained run, for the pronouns")
    args = parser.parse_args()
    try:
        full = Translator.load(args.model) if args.model else None
    except UserError as error:
        sys.exit(f"ablations: {error}")
    wanted = {"baseline", *(args.only or VARIANTS)}
    wanted |= {CLAIMS[name].than for name in wanted & CLAIMS.keys()}
    names = [name for name in VARIANTS if name in wanted]
    with tempfile.TemporaryDirectory() as runs:
        results = train_all(names, Path(runs), at_once=os.cpu_count() or 2)
    if stopped := results["baseline"]["stopped"]:
        sys.exit(f"ablations: nothing to compare with, {stopped}")
    # These two are timed or small: nothing runs beside them.
    results["gradient paths"] = gradient_by_distance()
    results["cost"] = attention_cost()
    results["pronouns"] = {"baseline": results["baseline"].pop("pronouns")}
    if full:
        results["pronouns"]["fully trained"] = by_distance(full)
    page = write_page(args.output, results)
    print(page)


if __name__ == "__main__":
    main()
