"""Imports go downward only, heavy libraries stay in their package, and private names stay private.

The rules are functions of a folder, so that they are tested on small made-up trees, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import translate

PACKAGE = Path(translate.__file__).parent
SCRIPTS = Path(__file__).parents[1] / "scripts"

# From the lowest level to the highest. A module may import from lower levels and from its own
# package; packages of one level are independent of each other.
ORDER = [
    {"errors", "version"},
    {"io"},
    {"text", "model"},
    {"decoding"},
    {"evaluation", "insight"},
    {"training"},
    {"commands"},
    {"__init__", "cli"},
    {"__main__"},
]
LEVELS = {unit: level for level, units in enumerate(ORDER) for unit in units}
# Libraries that only these packages may import.
RESERVED = {
    "lightning": {"training"},
    "jsonargparse": {"training"},
    "tensorboard": {"training"},
    "sacrebleu": {"evaluation"},
    "torch": {"model", "decoding", "insight", "evaluation", "training", "commands"},
}
# The fields of named tuples, and os._exit, are documented.
PUBLIC = {"_asdict", "_fields", "_replace", "_make", "_field_defaults", "_exit"}


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield every import of a file, in functions and for type checkers, too, as (module, name).

    ("translate.io", "") is `import translate.io`; ("translate.io", "x") imports x from it.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((module, alias.name) for alias in node.names)


def modules(root: Path, prefix: str = "") -> dict[str, ast.AST]:
    """Parse every file under `root`; "translate.text" is the name of translate/text/__init__.py."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = (prefix, *parts) if prefix else parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    assert found, f"no files in {root}"
    return found


def imported_modules(tree: ast.AST, known: set[str]) -> set[str]:
    """Return those of the `known` modules that a file imports."""
    found = set()
    for module, name in imports(tree):
        submodule = f"{module}.{name}"  # `from translate.text import doctor`
        found.add(submodule if submodule in known else module)
    return found & known


def cycles(trees: dict[str, ast.AST]) -> list[list[str]]:
    """Return one import cycle for each module that is part of one."""
    graph = {name: imported_modules(tree, set(trees)) for name, tree in trees.items()}

    def path_back(start: str) -> list[str] | None:
        paths, seen = [[start]], set()
        while paths:
            path = paths.pop(0)
            for name in sorted(graph[path[-1]]):
                if name == start:
                    return [*path, start]
                if name not in seen:
                    seen.add(name)
                    paths.append([*path, name])
        return None

    return [cycle for name in graph if (cycle := path_back(name))]


def unit(module: str) -> str:
    """Return the key of LEVELS that a module of the package belongs to."""
    return module.split(".")[1] if "." in module else "__init__"


def wrong_directions(trees: dict[str, ast.AST]) -> list[str]:
    """Describe each import that does not go downward, and each module missing in ORDER."""
    found = []
    for module, tree in trees.items():
        if unit(module) not in LEVELS:
            found.append(f"{module} is not in ORDER")
            continue
        for other in sorted(imported_modules(tree, set(trees))):
            own, level = LEVELS[unit(module)], LEVELS.get(unit(other), -1)
            if unit(module) != unit(other) and level >= own:
                found.append(f"{module} imports {other}")
    return found


def reserved_libraries(trees: dict[str, ast.AST]) -> list[str]:
    """Describe each import of a library outside the packages that may import it."""
    return [
        f"{module} imports {name}"
        for module, tree in trees.items()
        for name in sorted({other.partition(".")[0] for other, _ in imports(tree)})
        if unit(module) not in RESERVED.get(name, {unit(module)})
    ]


def private_names(trees: dict[str, ast.AST]) -> list[str]:
    """Describe each private name that is imported, and each private attribute but those of self."""
    found = []
    for module, tree in trees.items():
        for other, name in imports(tree):
            if any(map(is_private, [*other.split("."), name])):
                found.append(f"{module}: {other}.{name}".removesuffix("."))
        found += [
            f"{module}: {ast.unparse(node)}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and is_private(node.attr)
            and ast.unparse(node.value) not in ("self", "cls")
        ]
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in PUBLIC


@pytest.fixture(scope="module")
def package() -> dict[str, ast.AST]:
    return modules(PACKAGE, "translate")


@pytest.fixture(scope="module")
def scripts() -> dict[str, ast.AST]:
    return modules(SCRIPTS)


def test_imports_go_downward_only(package):
    assert wrong_directions(package) == []


def test_no_import_cycles(package, scripts):
    assert cycles(package) == []
    assert cycles(scripts) == []


def test_libraries_are_imported_only_where_they_belong(package):
    assert reserved_libraries(package) == []


def test_model_reads_no_files(package):
    for module, tree in package.items():
        if unit(module) == "model":
            used = {other.partition(".")[0] for other, _ in imports(tree)}
            assert not {"sentencepiece", "pathlib", "os", "io"} & used, module


def test_no_private_names_of_other_modules(package, scripts):
    assert private_names(package) == []
    assert private_names(scripts) == []


def test_no_relative_imports(package, scripts):
    """The rules above cannot check relative imports."""
    for module, tree in {**package, **scripts}.items():
        assert not [other for other, _ in imports(tree) if other.startswith(".")], module


# The rules on made-up trees


@pytest.fixture
def tree(tmp_path):
    """Write files, given by path and text, and parse them as a package "translate"."""

    def build(files: dict[str, str]) -> dict[str, ast.AST]:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return modules(tmp_path, "translate")

    return build


@pytest.mark.parametrize(
    ("importer", "statement", "imported"),
    [
        ("text/a.py", "from translate.model import b", "translate.model.b"),
        ("io.py", "import translate.text", "translate.text"),
        ("errors.py", "def f():\n    import translate.io", "translate.io"),
        ("model/a.py", "from translate import Translator", "translate"),
        ("commands/a.py", "from translate.cli import main", "translate.cli"),
        ("insight/a.py", "if TYPE_CHECKING:\n    from translate.commands.b import x",
         "translate.commands.b"),
    ],
)  # fmt: skip
def test_an_upward_import_is_found(tree, importer, statement, imported):
    names = ["__init__", "cli", "io", "errors", "text/__init__", "model/b", "commands/b"]
    trees = tree({**{f"{name}.py": "" for name in names}, importer: statement})
    module = importer.removesuffix(".py").replace("/", ".")
    assert wrong_directions(trees) == [f"translate.{module} imports {imported}"]


def test_every_module_must_have_a_level(tree):
    assert wrong_directions(tree({"other.py": ""})) == ["translate.other is not in ORDER"]


def test_a_downward_import_is_allowed(tree):
    trees = tree(
        {
            "text/a.py": "import re",
            "decoding/a.py": "from translate.text import a\nfrom translate.decoding.b import c",
            "decoding/b.py": "import translate.text.a",
        }
    )
    assert wrong_directions(trees) == cycles(trees) == private_names(trees) == []


@pytest.mark.parametrize("way_back", ["import {0}", "def f():\n    from {0} import x"])
def test_a_cycle_is_found(tree, way_back):
    trees = tree(
        {
            "text/a.py": "from translate.text import b",
            "text/b.py": "from translate.text.c import x",
            "text/c.py": way_back.format("translate.text.a"),
            "text/d.py": "import translate.text.a",  # leads to a cycle, but is not part of it
        }
    )
    names = [f"translate.text.{letter}" for letter in "abca"]
    assert names in cycles(trees)
    assert len(cycles(trees)) == 3


def test_a_library_in_the_wrong_package_is_found(tree):
    trees = tree(
        {
            "text/a.py": "def f():\n    import torch.nn",
            "commands/a.py": "from lightning.pytorch import Trainer",
            "training/a.py": "import lightning, torch, sacrebleu.metrics",
            "evaluation/a.py": "import sacrebleu, torch",
        }
    )
    assert sorted(reserved_libraries(trees)) == [
        "translate.commands.a imports lightning",
        "translate.text.a imports torch",
        "translate.training.a imports sacrebleu",
    ]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("from lxml.etree import _Element", ["lxml.etree._Element"]),
        ("from torch.utils import _pytree as pytree", ["torch.utils._pytree"]),
        ("import torch.utils._python_dispatch", ["torch.utils._python_dispatch"]),
        ("import torch\ntorch._foreach_mul_([])", ["torch._foreach_mul_"]),
        ("import torch.nn as nn\nnn.Module._call(1)", ["nn.Module._call"]),
        ("from a import B\ndef f():\n    return B._hidden", ["B._hidden"]),
        ("class A(B):\n    def f(self):\n        super()._f()", ["super()._f"]),
        ("def f(trainer):\n    return trainer.loops[0]._x", ["trainer.loops[0]._x"]),
        ("from a import B\nB._fields\nB.__name__\nB()._replace(x=1)", []),
        ("class A:\n    def f(self):\n        return self._x", []),
        ("from __future__ import annotations", []),
    ],
)
def test_private_names_are_found(tree, text, faults):
    found = private_names(tree({"text/a.py": text}))
    assert found == [f"translate.text.a: {fault}" for fault in faults]
