"""Imports go downward only, and heavy libraries stay in the rooms that need them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import translate

PACKAGE = Path(translate.__file__).parent

# What each package may import from. Text and model do not know each other.
BELOW = {
    "text": set(),
    "model": set(),
    "decoding": {"text", "model"},
    "insight": {"text", "model", "decoding"},
    "evaluation": {"text", "model", "decoding"},
    "training": {"text", "model", "decoding", "insight", "evaluation"},
    "commands": {"text", "model", "decoding", "insight", "evaluation", "training"},
}
HEAVY = {"lightning", "jsonargparse", "sacrebleu", "tensorboard"}


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, within functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files(room: str) -> list[Path]:
    found = sorted((PACKAGE / room).glob("**/*.py"))
    assert found, f"no room {room}"
    return found


@pytest.mark.parametrize("room", BELOW)
def test_a_room_imports_only_from_the_rooms_below(room):
    for path in files(room):
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "translate" and len(parts) > 1 and parts[1] in BELOW:
                assert parts[1] in BELOW[room] | {room}, f"{path.name} imports {name}"
            assert parts[:2] != ["translate", "cli"], f"{path.name} imports the front door"


@pytest.mark.parametrize("room", BELOW.keys() - {"training"})
def test_only_training_imports_what_training_needs(room):
    for path in files(room):
        assert not HEAVY & {name.split(".")[0] for name in imports(path)}, path.name


def test_text_knows_torch_only_in_batching_and_the_model_knows_no_text():
    for path in files("text"):
        uses = {name.split(".")[0] for name in imports(path)}
        assert "torch" not in uses or path.name == "batching.py", path.name
    for path in files("model"):
        uses = {name.split(".")[0] for name in imports(path)}
        assert not {"sentencepiece", "pathlib", "os", "io"} & uses, path.name


def test_every_room_is_on_this_map():
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == BELOW.keys()
