"""Read config files: YAML with the line of each setting, refused if it is unsafe or ambiguous."""

from __future__ import annotations

import dataclasses
import difflib
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from translate.errors import UsageError
from translate.text.corpus import ParallelFiles

MAX_BYTES = 1 << 20
MAX_VALUES = 10_000  # after each alias (*name) is replaced by what it stands for
MAX_DEPTH = 32  # levels of nesting
NULL, TEXT, MAPPING = (f"tag:yaml.org,2002:{kind}" for kind in ("null", "str", "map"))

# Sections that name files, or lists of such sections; the parser does not list their settings.
FILE_SECTIONS = ("data.train", "data.valid", "data.test")
_FILE_DEFAULTS = {field.name: field.default for field in dataclasses.fields(ParallelFiles)}
FILE_SETTINGS = {
    f"{section}.{name}": default
    for section in FILE_SECTIONS
    for name, default in _FILE_DEFAULTS.items()
}

# The parser of libyaml, which jsonargparse uses too, if it is available.
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Place(NamedTuple):
    """Where a setting is written: in a line of a file, or on the command line (line 0)."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Fault(NamedTuple):
    """One thing that is wrong, and where."""

    place: Place
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" if self.place.file else self.what


class Leaf(NamedTuple):
    """One setting of a config file: its key, such as "model.d_model", and its value."""

    key: str
    place: Place
    node: yaml.Node


class ConfigReader:
    """Reads config files into `leaves`, and collects everything that is wrong in `faults`.

    Only keys and sections are checked here; the values of leaves are left to a parser.

    Args:
        known: the keys of all settings.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self.known = {*known, *FILE_SETTINGS}
        self.sections = section_names(self.known)
        self.leaves: list[Leaf] = []
        self.faults: list[Fault] = []

    def read(self, path: Path, section: str = "") -> None:
        """Read a file of all settings, or of the settings of one section."""
        file = str(path)
        try:
            loader = _Loader(_text(path))
            root = loader.get_single_node()
            if not isinstance(root, yaml.MappingNode):
                raise UsageError("no settings in this file; see configs/tiny.yaml for an example")
            tree = _Tree(file)
            tree.measure(root, section)
            self.faults += tree.duplicates
            self._read_section(loader, path, section, root)
        except UsageError as error:
            self.faults.append(Fault(Place(file), str(error)))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Place(file, mark.line + 1 if mark else 0)
            self.faults.append(Fault(place, f"not YAML: {error.problem or error.context}"))
        except yaml.YAMLError as error:  # such as a control character
            self.faults.append(Fault(Place(file), f"not YAML: {str(error).splitlines()[0]}"))
        except _UnsafeError as error:
            self.faults.append(error.fault)

    def unknown(self, key: str) -> str:
        """Return a message for a key that is no setting, with the nearest one that is."""
        names = sorted({*self.known, *self.sections})
        close = difflib.get_close_matches(key, names, n=1, cutoff=0.6)
        if not close:  # the right name in the wrong section
            last = {name.rpartition(".")[2]: name for name in names}
            words = difflib.get_close_matches(key.rpartition(".")[2], last, n=1, cutoff=0.6)
            close = [last[word] for word in words]
        hint = f"did you mean {close[0]}?" if close else "`translate fit --help all` lists all"
        return f"no setting {key}; {hint}"

    def root(self, key: str) -> str:
        """Return the setting that `key` belongs to, such as data.train for data.train.tsv."""
        parts = key.split(".")
        names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        return next((name for name in names if name in self.known), key)

    def _read_section(
        self, loader: yaml.SafeLoader, path: Path, section: str, node: yaml.MappingNode
    ) -> None:
        loader.flatten_mapping(node)  # "<<" adds the settings of another section
        for name, value in {name.value: (name, value) for name, value in node.value}.values():
            key = f"{section}.{name.value}" if section else name.value
            place = Place(str(path), name.start_mark.line + 1)
            if key in self.sections:
                self._read_value(loader, path, Leaf(key, place, value))
            elif key in self.known:
                self.leaves.append(Leaf(key, place, value))
            else:
                self.faults.append(Fault(place, self.unknown(key)))

    def _read_value(self, loader: yaml.SafeLoader, path: Path, leaf: Leaf) -> None:
        """Read the value of a section: settings, a file of settings, or a list of data sources."""
        key, place, node = leaf
        values, faults = [node], len(self.faults)
        if key in FILE_SECTIONS:
            if isinstance(node, yaml.SequenceNode):
                values = node.value
            if node.tag == NULL:
                values = []
        elif isinstance(node, yaml.ScalarNode) and node.tag != NULL:
            file = path.parent / node.value
            if file.is_file():
                return self.read(file, key)
        for value in values:
            if isinstance(value, yaml.MappingNode):
                self._read_section(loader, path, key, value)
            else:
                self.faults.append(Fault(place, f"{key}: {section_expected(key, value, node)}"))
                return None
        if key in FILE_SECTIONS and len(self.faults) == faults:
            self.leaves.append(leaf)  # as a whole; its settings are leaves, too
        return None


class _UnsafeError(Exception):
    """A tree that has no end or that is too large."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class _Tree:
    """Measures a YAML tree without expanding its aliases, and finds keys that occur twice."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.duplicates: list[Fault] = []
        self._measured: dict[int, tuple[int, int]] = {}  # values and depth, by the id of a node
        self._open: set[int] = set()  # nodes that contain the current one

    def measure(self, node: yaml.Node, key: str = "") -> tuple[int, int]:
        """Return the number of values and the depth of `node`; raise _UnsafeError at a limit."""
        if id(node) in self._measured:
            return self._measured[id(node)]
        if id(node) in self._open:
            raise self._unsafe(node, "this value contains itself (an alias)")
        if len(self._open) > MAX_DEPTH:
            raise self._unsafe(node, f"nested deeper than {MAX_DEPTH} levels")
        self._open.add(id(node))
        values, depth = 1, 0
        for name, child in self._children(node, key):
            child_values, child_depth = self.measure(child, name)
            values, depth = values + child_values, max(depth, child_depth + 1)
        if values > MAX_VALUES:
            raise self._unsafe(node, f"more than {MAX_VALUES:,} values (aliases count each time)")
        if depth > MAX_DEPTH:
            raise self._unsafe(node, f"nested deeper than {MAX_DEPTH} levels")
        self._open.remove(id(node))
        self._measured[id(node)] = values, depth
        return values, depth

    def _children(self, node: yaml.Node, key: str) -> Iterator[tuple[str, yaml.Node]]:
        if isinstance(node, yaml.SequenceNode):
            yield from ((key, child) for child in node.value)
        elif isinstance(node, yaml.MappingNode):
            lines: dict[str, int] = {}
            for name, child in node.value:
                if not isinstance(name, yaml.ScalarNode):
                    raise self._unsafe(name, "a key must be text")
                line, path = name.start_mark.line + 1, f"{key}.{name.value}" if key else name.value
                if name.value in lines:
                    what = f"{path} is set twice, in lines {lines[name.value]} and {line}"
                    self.duplicates.append(
                        Fault(Place(self.file, line), f"{what}: remove one of them")
                    )
                lines.setdefault(name.value, line)
                yield path, child

    def _unsafe(self, node: yaml.Node, what: str) -> _UnsafeError:
        return _UnsafeError(Fault(Place(self.file, node.start_mark.line + 1), what))


def section_names(known: Iterable[str]) -> list[str]:
    """Return the sections of the settings `known`: data, data.train for data.train.tsv."""
    dots = [(key, index) for key in known for index, sign in enumerate(key) if sign == "."]
    return sorted({key[:index] for key, index in dots})


def section_expected(key: str, value: yaml.Node, whole: yaml.Node) -> str:
    """Return what to write instead of `value`, which is the `whole` section or an item of it."""
    if key in FILE_SECTIONS and value.tag == TEXT:
        example = f"{{tsv: {value.value}}}"
        if value is whole:
            return f"expected a section: write {example}"
        return f"expected a list of sections: write [{example}]"
    if value.tag == NULL:
        return "expected a section of settings, but it is empty: remove it, or set something in it"
    return f"expected a section of settings, got {shown(value)}"


def shown(node: yaml.Node) -> str:
    """Return a value as it is written, on one line of at most 60 characters."""
    text = node.value
    if not isinstance(node, yaml.ScalarNode):
        text = yaml.serialize(node, Dumper=yaml.SafeDumper)
        text = " ".join(text.split())
    text = repr(text) if not text.isprintable() or not text else text
    return text if len(text) <= 60 else f"{text[:59]}…"


def _text(path: Path) -> str:
    """Return the text of a config file.

    Raises:
        UsageError: the file cannot be read, is too large or not UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError("not a file" if path.is_dir() else "not a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read the file: {error.strerror}") from None
    except ValueError as error:  # a null character in the path
        raise UsageError(f"cannot read the file: {error}") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"larger than {MAX_BYTES:,} bytes: this is no config file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("not UTF-8 text") from None
