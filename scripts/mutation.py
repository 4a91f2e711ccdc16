"""Test the tests: change the program in many small ways and count the changes that tests notice.

    pip install mutmut==3.8.1
    python scripts/mutation.py                     600 random mutants, about 15 minutes on two cores
    python scripts/mutation.py --sample 50         fewer of them
    python scripts/mutation.py --seed 2            other ones

A mutant is the program with one small change, such as "<" for "<=". A test that fails "kills" it. A
mutant that survives shows code that no test checks, or a change that makes no difference. Each
mutant runs only the tests that reach its function. mutmut makes and runs the mutants in a copy of
this repository; changes of messages (text with spaces, and f-strings) are left out.

The table counts the mutants per package; the names of survivors follow. To see a survivor, run
`mutmut show NAME` in the work folder.
"""

from __future__ import annotations

import argparse
import ast
import collections
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MUTATED = ["model", "decoding", "text", "training/objective.py"]
KILLED = {"killed", "timeout"}
CONFIG = f"""
[tool.mutmut]
source_paths = ["translate"]
only_mutate = {[f"translate/{part}{'' if '.' in part else '/*'}" for part in MUTATED]}
pytest_add_cli_args = ["-q", "-x", "-m", "not slow"]
pytest_add_cli_args_test_selection =
    ["tests/model", "tests/decoding", "tests/text", "tests/training/test_objective.py"]
also_copy = ["configs", "data", "docs", "scripts", "README.md"]
process_isolation = "forkserver"
track_dependencies = false
""".replace("selection =\n   ", "selection =")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=600, metavar="N", help="default: 600")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: all cores")
    parser.add_argument("--work", type=Path, default=ROOT / ".mutation", help="a folder to replace")
    args = parser.parse_args()

    shutil.rmtree(args.work, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", ROOT, args.work], check=True)
    with (args.work / "pyproject.toml").open("a") as config:
        config.write(CONFIG)
    run = ("run", "--max-children", str(args.processes))
    mutmut(args.work, *run, "translate.model.masks.x_padding_mask__mutmut_1")  # writes all mutants
    files: dict[str, list[str]] = collections.defaultdict(list)
    for name in statuses(args.work):
        files[name.rpartition(".")[0]].append(name)
    names = [name for module in files for name in changing_code(args.work, module, files[module])]
    print(f"{len(names):,} mutants that change no message", file=sys.stderr)
    chosen = random.Random(args.seed).sample(sorted(names), min(args.sample, len(names)))
    mutmut(args.work, *run, *chosen)
    found = statuses(args.work)
    report({name: found[name] for name in chosen})


def mutmut(work: Path, *args: str) -> str:
    """Run mutmut; its progress goes to stderr, its results are returned."""
    output = subprocess.PIPE if args[0] == "results" else sys.stderr
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *args],
        cwd=work,
        check=True,
        stdout=output,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        text=True,
    )
    return done.stdout or ""


def statuses(work: Path) -> dict[str, str]:
    """Return the status of each mutant by name, such as "killed", "survived", "not checked"."""
    lines = mutmut(work, "results", "--all", "true").splitlines()
    pairs = (line.strip().split(": ") for line in lines if ": " in line)
    return {name: status for name, status in pairs if status != "skipped"}


def changing_code(work: Path, module: str, names: list[str]) -> list[str]:
    """Return the mutants of a module that change more than a message."""
    path = work / "mutants" / f"{module.replace('.', '/')}.py"
    code = {
        node.name: code_without_messages(node)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "__mutmut_" in node.name
    }
    functions = {name: name.rpartition(".")[2] for name in names}
    originals = {name: f"{functions[name].rpartition('_')[0]}_orig" for name in names}
    return [name for name in names if code[functions[name]] != code[originals[name]]]


def code_without_messages(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    function.name = ""
    for node in ast.walk(function):
        if isinstance(node, ast.JoinedStr):
            node.values = []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            node.value = ""
    return ast.dump(function)


def report(statuses: dict[str, str]) -> None:
    """Print a table of the results per package, and the names of the survivors."""
    counts: dict[str, collections.Counter[bool]] = collections.defaultdict(collections.Counter)
    for name, status in statuses.items():
        for package in (name.split(".")[1], "all"):
            counts[package][status in KILLED] += 1
    print("| package | mutants | killed | share |\n|---|---:|---:|---:|")
    for package, count in sorted(counts.items(), key=lambda item: (item[0] == "all", item[0])):
        total, killed = count.total(), count[True]
        print(f"| {package} | {total} | {killed} | {killed / total:.1%} |")
    print("\nSurvivors:")
    for name, status in sorted(statuses.items()):
        if status not in KILLED:
            print(f"{name}: {status}")


if __name__ == "__main__":
    main()
