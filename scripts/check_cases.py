"""Is every case of docs/cases.md answered by a test that exists and says so?

    python scripts/check_cases.py                 the table against the tests
    python scripts/check_cases.py --against FILE  and against a list of cases with their numbers

A row names its tests as `file::function`, relative to tests/; each must mention the case's id. A
case that needs no test says why, behind "no test:". Faults go to stderr, a line each.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "cases.md"
# Files, the tokenizer, decoding, scores, TensorBoard: the kinds that the table covers.
KINDS = "SDGMB"

_ROW = re.compile(r"^\| ([A-Z]\d\d) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def tests(folder: Path) -> dict[str, str]:
    """Every test function's source, with the comments above it, by `file::function`."""
    found = {}
    for path in sorted(folder.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                first = min(item.lineno for item in [node, *node.decorator_list]) - 1
                while lines[first - 1].startswith("#"):
                    first -= 1
                source = "\n".join(lines[first : node.end_lineno])
                found[f"{path.relative_to(folder).as_posix()}::{node.name}"] = source
    return found


def faults(table: str, known: dict[str, str], ids: set[str] | None = None) -> list[str]:
    """What is wrong with the text of a table, a line each; `ids` are all cases there are."""
    rows = _ROW.findall(table)
    found = []
    answered = [case for case, *_ in rows]
    found += [f"{case}: {answered.count(case)} rows" for case in sorted(set(answered))
              if answered.count(case) > 1]  # fmt: skip
    for case, _, _, answer in rows:
        named = ["::".join(test) for test in _TEST.findall(answer)]
        if not named and not answer.startswith("no test: "):
            found.append(f"{case}: neither a test nor a reason for none")
        for test in named:
            if test not in known:
                found.append(f"{case}: there is no test {test}")
            elif not re.search(rf"\b{case}\b", known[test]):
                found.append(f"{case}: {test} does not mention it")
    if ids is not None:
        found += [f"{case}: not in the table" for case in sorted(ids - set(answered))]
        found += [f"{case}: no such case" for case in sorted(set(answered) - ids)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--against", type=Path, metavar="FILE", help="the cases, one a table row")
    args = parser.parse_args()
    ids = None
    if args.against:
        text = args.against.read_text(encoding="utf-8")
        ids = set(re.findall(rf"^\| ([{KINDS}]\d\d) \|", text, re.MULTILINE))
    table = TABLE.read_text(encoding="utf-8")
    found = faults(table, tests(ROOT / "tests"), ids)
    for fault in found:
        print(f"{TABLE.relative_to(ROOT)}: {fault}", file=sys.stderr)
    if not found:
        print(f"{len(_ROW.findall(table))} cases answered")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
