"""Check docs/cases.md against the tests.

    python scripts/check_cases.py                 compare the table with the tests
    python scripts/check_cases.py --against FILE  compare it also with a list of all cases

Each row of the table names its tests as `file::function`, relative to tests/. These tests must
exist and must mention the code of the case in their source or in a comment above the function. A
row without a test gives the reason after "no test:". Every code in a comment of a test file must
have a row. Faults go to stderr, one per line.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "cases.md"

CODE = r"[A-Z]\d\d"
ROW = re.compile(rf"^\| ({CODE}) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_files(folder: Path) -> dict[str, str]:
    """Return the text of every test file by its name relative to `folder`."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("test_*.py"))
    }


def test_functions(files: dict[str, str]) -> dict[str, str]:
    """Return the source of every test with the comments above it, by `file::function`."""
    found = {}
    for name, text in files.items():
        lines = text.split("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                first = min(item.lineno for item in [node, *node.decorator_list]) - 1
                while lines[first - 1].startswith("#"):
                    first -= 1
                found[f"{name}::{node.name}"] = "\n".join(lines[first : node.end_lineno])
    return found


def mentioned_codes(text: str) -> set[str]:
    """Return the codes in the comments of one file. Strings and names do not count."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = (token.string for token in tokens if token.type == tokenize.COMMENT)
    return {code for comment in comments for code in re.findall(rf"\b{CODE}\b", comment)}


def faults(table: str, files: dict[str, str], cases: set[str] | None = None) -> list[str]:
    """Return what is wrong with the text of a table, one fault per line.

    Args:
        table: the text of docs/cases.md.
        files: the text of each test file.
        cases: all codes that exist. Codes whose letter has no row in the table are ignored.
    """
    tests, rows = test_functions(files), ROW.findall(table)
    count = Counter(code for code, *_ in rows)
    found = [f"{code}: {times} rows" for code, times in sorted(count.items()) if times > 1]
    for code, _, _, answer in rows:
        named = ["::".join(match) for match in TEST.findall(answer)]
        if not named and not answer.startswith("no test: "):
            found.append(f'{code}: names no test and gives no reason ("no test: ...")')
        for test in named:
            if test not in tests:
                found.append(f"{code}: the test {test} does not exist")
            elif not re.search(rf"\b{code}\b", tests[test]):
                found.append(f"{code}: {test} does not mention it")
    for name, text in files.items():
        unlisted = sorted(mentioned_codes(text) - count.keys())
        found += [f"{code}: mentioned in {name}, but not in the table" for code in unlisted]
    if cases is not None:
        kinds = {code[0] for code in count}
        missing = sorted(code for code in cases - count.keys() if code[0] in kinds)
        found += [f"{code}: not in the table" for code in missing]
        found += [f"{code}: no such case" for code in sorted(count.keys() - cases)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--against", type=Path, metavar="FILE", help="a table of all cases")
    args = parser.parse_args()
    cases = None
    if args.against:
        text = args.against.read_text(encoding="utf-8")
        cases = set(re.findall(rf"^\| ({CODE}) \|", text, re.MULTILINE))
    table = TABLE.read_text(encoding="utf-8")
    found = faults(table, test_files(ROOT / "tests"), cases)
    for fault in found:
        print(f"{TABLE.relative_to(ROOT)}: {fault}", file=sys.stderr)
    if not found:
        print(f"all {len(ROW.findall(table))} cases have a test or a reason")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
