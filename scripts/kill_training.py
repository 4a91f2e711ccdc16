"""Kill trainings at random moments, resume them, and compare them with quiet ones.

    python scripts/kill_training.py --kills 200 --folders /tmp /dev/shm

Every setting trains a small model in every folder, which may be on different file systems. A run
is killed (SIGKILL) and resumed again and again, and at the end left alone. A table says whether it
ended with the weights of the run that was never killed, and how many looks at its checkpoints,
taken all the time, found a file that could not be read. The exit code is 0 if all runs were equal
and all files readable.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from functools import partial
from multiprocessing import get_context
from multiprocessing.context import ForkProcess as Process
from pathlib import Path
from typing import NamedTuple

import torch
from tqdm import tqdm

from translate.cli import main as translate
from translate.decoding.checkpoint import load_checkpoint
from translate.errors import UserError
from translate.training import cli  # noqa: F401 (imported once, for all children)

WORDS = [("cat", "Katze"), ("house", "Haus"), ("tree", "Baum"), ("day", "Tag"), ("man", "Mann")]
BASE = "--data.vocab_size 120 --data.batch_tokens 160 --model.d_model 16 --model.n_heads 2"
BASE += " --model.d_ff 32 --model.encoder_layers 1 --model.decoder_layers 1 --model.dropout 0.1"
BASE += " --trainer.max_epochs 12 --trainer.accelerator cpu --trainer.enable_progress_bar false"
BASE += " --trainer.log_every_n_steps 1 --translations.heatmaps []"

CHECKPOINTS = ("last.ckpt", "best.ckpt")
SETTINGS = {
    "dropout": "--trainer.val_check_interval 2",
    "accumulation": "--trainer.val_check_interval 1 --trainer.accumulate_grad_batches 3",
    "muon, without events": "--model.optimizer muon --trainer.logger false",
}


class Row(NamedTuple):
    """What happened to one killed run."""

    kills: int
    looks: int  # at checkpoints, while the run was going on
    unreadable: int
    equal: bool  # same weights, scores and state as the quiet run


def start(folder: Path, args: list[str]) -> Process:
    """Start `translate fit` in a child process in `folder`, without importing everything again."""
    child = get_context("fork").Process(target=fit, args=(folder, args))
    child.start()
    return child


def fit(folder: Path, args: list[str]) -> None:
    os.chdir(folder)
    messages = os.open("messages.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(messages, 1)
    os.dup2(messages, 2)
    sys.exit(translate(["fit", *args]))


def checkpoint_in(folder: Path, name: str = "last.ckpt") -> Path | None:
    """Return the newest checkpoint `name` of the runs in `folder`."""
    found = folder.glob(f"runs/run/*/checkpoints/{name}")
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


def final_state(folder: Path) -> dict[str, object]:
    """Return weights, scores and patience at the end of a finished run."""
    last = checkpoint_in(folder)
    if last is None or not (last.parents[1] / "result.json").is_file():
        return {}
    checkpoint = torch.load(last, weights_only=True)
    return {"callbacks": checkpoint["callbacks"], **checkpoint["state_dict"]}


def equal(first: dict[str, object], second: dict[str, object]) -> bool:
    def same(a: object, b: object) -> bool:
        return torch.equal(a, b) if isinstance(a, torch.Tensor) else str(a) == str(b)

    return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)


def kill_and_resume(folder: Path, options: str, kills: int, seed: int) -> Row:
    """Train once quietly, then with `kills` kills; compare the results."""
    draw = random.Random(seed)
    lines = [f"The {a} sees the {b}.\tDas {x} und {y}.\n" for a, x in WORDS for b, y in WORDS]
    corpus = folder / "corpus.tsv"
    corpus.write_text("".join(lines), encoding="utf-8")
    args = [*BASE.split(), *options.split(), "--data.train.tsv", str(corpus)]
    args += ["--data.valid.tsv", str(corpus)]
    quiet = folder / "quiet"
    quiet.mkdir()
    began = time.monotonic()
    child = start(quiet, args)
    while checkpoint_in(quiet) is None and child.is_alive():
        time.sleep(0.005)
    starting = time.monotonic() - began
    child.join()
    training = time.monotonic() - began - starting
    expected = final_state(quiet)
    killed, looks, unreadable, same = 0, 0, 0, bool(expected)
    with tqdm(total=kills, desc=options, disable=None) as bar:
        while killed < kills:  # a run that ends before the last kill is followed by another one
            run = Path(tempfile.mkdtemp(prefix="killed", dir=folder))
            alive = True
            while alive:
                last = checkpoint_in(run)
                child = start(run, [*args, "--ckpt_path", str(last)] if last else args)
                wait = draw.uniform(0.5 * starting, starting + training / 4)
                end = time.monotonic() + (wait if killed < kills else float("inf"))
                while (alive := child.is_alive()) and time.monotonic() < end:
                    time.sleep(0.01)
                    for path in filter(None, map(partial(checkpoint_in, run), CHECKPOINTS)):
                        looks += 1
                        unreadable += not is_readable(path)
                if alive:
                    child.kill()
                    child.join()
                    killed += 1
                    bar.update()
            same = same and equal(final_state(run), expected)
    return Row(killed, looks, unreadable, same)


def is_readable(path: Path) -> bool:
    try:
        load_checkpoint(path)
    except UserError:
        return False
    return True


def main() -> int:
    """Try every setting in every folder and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="in all settings together")
    parser.add_argument("--folders", type=Path, nargs="+", default=[Path(tempfile.gettempdir())])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    trials = [(folder, name) for folder in given.folders for name in SETTINGS]
    print(f"{'folder':12}  {'setting':22}  kills  looks  unreadable  equal")
    for number, (parent, name) in enumerate(trials):
        kills = given.kills // len(trials) + (number < given.kills % len(trials))
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            row = kill_and_resume(Path(folder), SETTINGS[name], kills, given.seed + number)
        rows.append(row)
        counts = f"{row.kills:5}  {row.looks:5}  {row.unreadable:10}  {row.equal}"
        print(f"{parent!s:12}  {name:22}  {counts}", flush=True)
    return 0 if all(row.equal and not row.unreadable for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
