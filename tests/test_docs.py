"""README.md and docs/: every link has a target; the code map lists every file of the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def without_code_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes from the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", without_code_blocks(read(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_its_heading(page):
    text = re.sub(r"`[^`\n]*`", "", without_code_blocks(read(page)))
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", link):  # another site
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_code_map_of_the_readme_shows_every_file_of_the_package():
    tree = re.search(r"^translate/\n(.*?)^```", read(ROOT / "README.md"), re.DOTALL | re.MULTILINE)
    on_the_map, folder = set(), ROOT / "translate"
    for line in tree[1].splitlines():
        if re.match(r"  \S", line):  # a package, or files beside the packages
            package = re.match(r"  (\w+)/", line)
            folder = ROOT / "translate" / (package[1] if package else "")
        on_the_map |= {folder / name for name in re.findall(r"\b\w+\.(?:py|html|yaml)\b", line)}
    files = {path for path in (ROOT / "translate").rglob("*.*") if path.suffix != ".pyc"}
    assert on_the_map == {path for path in files if path.name not in ("__init__.py", "py.typed")}
