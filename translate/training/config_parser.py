"""Parse config files and a command line; collect all faults, each with its file and line."""

from __future__ import annotations

import math
import re
from argparse import ArgumentError
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentParser, Namespace

from translate.errors import UsageError
from translate.text.printable import printable
from translate.training.config_errors import reason
from translate.training.config_reader import (
    FILE_SECTIONS,
    FILE_SETTINGS,
    MAPPING,
    NULL,
    TEXT,
    ConfigReader,
    Fault,
    Leaf,
    Place,
    shown,
)

MAX_FAULTS = 20  # messages that are shown
COMMAND_LINE = Place("command line")
_CONFIG = ("-c", "--config")


class ConfigParser:
    """Parses the settings of one command.

    If something is wrong, each setting is parsed alone, so that one message can name all faults.

    Args:
        parser: knows all settings, their types and defaults.
        args: the command line, with --config FILE for each config file.

    Attributes:
        config: the parsed settings, with the default in place of each wrong one.
    """

    def __init__(self, parser: ArgumentParser, args: Sequence[str]) -> None:
        for arg in args:
            if re.search("[\ud800-\udfff]", arg):  # stands for a byte that is not UTF-8
                raise UsageError(f"{arg!r} is not UTF-8: rename the file or folder")
        self._parser = parser
        self._defaults = parser.get_defaults()
        self._known = list(self._defaults.keys())
        self._reader = reader = ConfigReader(self._known)
        self._faults = reader.faults
        self._wrong: set[str] = set()  # keys
        self._options = list(_options(args))
        self._files = [value for option, value in self._options if option in _CONFIG and value]
        for file in self._files:
            reader.read(Path(file).expanduser())
        for option, value in self._options:  # such as --model FILE
            key = _key(option)
            if key in reader.sections and key not in FILE_SECTIONS and Path(value).is_file():
                reader.read(Path(value), key)
        self._places = {leaf.key: leaf.place for leaf in reader.leaves}
        for option, value in self._options:
            if fault := self._option_fault(option, _key(option), value):
                self._faults.append(Fault(COMMAND_LINE, fault))
            self._places |= dict.fromkeys((_key(option), reader.root(_key(option))), COMMAND_LINE)
        for leaf in reader.leaves:
            if leaf.node.tag == NULL and (fault := self._null_fault(leaf)):
                self._refuse(leaf.key, leaf.place, fault)
        self.config = self._parse(args)
        for key, number in _numbers(self.config):
            root = reader.root(key)
            if not math.isfinite(number):
                self._refuse(root, self._places[root], f"expected a finite number, got {number}")
        for root in set(map(reader.root, self._wrong)):
            self.config[root] = self._defaults[root]

    def refuse(self, what: str) -> None:
        """Add a fault, whose place is that of the first setting that it names.

        It is ignored if it names a setting that is wrong anyway.
        """
        words = re.findall(r"[\w.]+", what)
        section = words[0].rpartition(".")[0]
        keys = [key for word in words for key in (word, f"{section}.{word}")]
        if not self._wrong.intersection(keys):
            place = next((self._places[key] for key in keys if key in self._places), Place(""))
            self._faults.append(Fault(place, what))

    @property
    def faulty(self) -> bool:
        return bool(self._faults)

    def check(self) -> None:
        """Raise a UsageError with one line for each fault."""
        order = {file: index for index, file in enumerate(self._files)}
        faults = sorted(
            self._faults, key=lambda fault: (order.get(fault.place.file, len(order)), fault.place)
        )
        lines = [printable(str(fault)).replace("\n", "\\n") for fault in faults]
        lines = list(dict.fromkeys(lines))
        if len(lines) > MAX_FAULTS:
            lines = [*lines[:MAX_FAULTS], f"and {len(lines) - MAX_FAULTS:,} more"]
        if lines:
            raise UsageError("\n".join(lines))

    def _refuse(self, key: str, place: Place, what: str) -> None:
        self._wrong.add(key)
        self._faults.append(Fault(place, f"{key}: {what}"))

    def _parse(self, args: Sequence[str]) -> Namespace:
        if self._faults:
            return self._parse_each()
        try:
            return self._parser.parse_args(args)
        except Exception as error:  # what libraries raise for odd values is not documented
            config = self._parse_each()
            if not self._faults:
                place = Place(", ".join(self._files)) if self._files else COMMAND_LINE
                self._faults.append(Fault(place, reason(str(error), "these settings")))
            return config

    def _parse_each(self) -> Namespace:
        """Parse each setting alone; return the defaults, changed by the valid settings."""
        config = self._defaults.clone()
        for key, place, node in self._reader.leaves:
            covered = key in FILE_SECTIONS and any(
                name.startswith(f"{key}.") for name in self._wrong
            )
            if node.tag != NULL and not covered:
                parse = partial(self._parser.parse_string, _nested(key, node))
                self._try(config, key, place, parse, shown(node))
        by_root: dict[str, list[tuple[str, str]]] = {}  # a callback and its options belong together
        for option, value in self._options:
            key = _key(option)
            if not _is_no_setting(option) and not self._option_fault(option, key, value):
                by_root.setdefault(self._reader.root(key), []).append((option, value))
        for root, options in by_root.items():
            arguments = [f"{option}={value}" for option, value in options]
            parse = partial(self._parser.parse_args, arguments)
            key = _key(options[0][0]) if len(options) == 1 else root
            self._try(config, key, COMMAND_LINE, parse, options[-1][1])
        return config

    def _try(
        self, config: Namespace, key: str, place: Place, parse: Callable[[], Namespace], value: str
    ) -> None:
        """Parse one setting and add it to `config`, or report its fault."""
        try:
            parsed = parse()
        except Exception as error:  # what libraries raise for odd values is not documented
            self._refuse(key, place, reason(str(error), value))
            return
        root = self._reader.root(key)
        for name in self._known:
            inside = name.startswith(f"{root}.") and parsed[name] != self._defaults[name]
            if name == root or inside:
                config[name] = parsed[name]

    def _option_fault(self, option: str, key: str, value: str) -> str:
        """Return what is wrong with an option of the command line, apart from its value."""
        if not option.startswith("-"):
            if option.endswith((".yaml", ".yml", ".json")):
                return f"unexpected argument {option}; did you mean --config {option}?"
            return f"unexpected argument {option}; settings are written as --SETTING VALUE"
        root = self._reader.root(key)
        if _is_no_setting(option):
            return ""
        unknown = root not in self._known and key not in self._reader.sections
        if unknown or (root in FILE_SECTIONS and key not in (root, *FILE_SETTINGS)):
            return self._reader.unknown(option)
        if value == _MISSING:
            return f"{key}: expected a value after {option}"
        if key in FILE_SECTIONS and not re.match(r"\s*[\[{]|null$", value):
            return f"{key}: expected a section: write --{key}.tsv {value}"
        if value == "null" and (default := FILE_SETTINGS.get(key)) is not None:
            return f"{key}: expected a value such as {default}, got null"
        return ""

    def _null_fault(self, leaf: Leaf) -> str:
        """Return what is wrong with an empty value, "" if the setting may be empty."""
        key = leaf.key
        default = FILE_SETTINGS[key] if key in FILE_SETTINGS else self._defaults.get(key)
        if default is None:
            return ""
        expected = "a value"
        if key not in FILE_SETTINGS:
            try:  # the parser checks null only on the command line
                if self._parser.parse_args([f"--{key}=null"]).get(key) is None:
                    return ""
            except ArgumentError as error:
                expected = reason(str(error), "").removeprefix("expected ").partition(", got")[0]
        return f"expected {expected}, but it is empty; without this line it is {default}"


_MISSING = "\0"  # in place of a value that is not given


def _options(args: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Split a command line into (option, value); an argument that is no option has no value."""
    rest = list(args)
    while rest:
        option = rest.pop(0)
        if short := re.match("(-c)=?(.+)", option):
            yield short[1], short[2]
        elif option.startswith("--") and "=" in option:
            name, _, value = option.partition("=")
            yield name, value
        elif option.startswith("-") and rest and not re.match("--|-[a-zA-Z]", rest[0]):
            yield option, rest.pop(0)
        else:
            yield option, _MISSING


def _is_no_setting(option: str) -> bool:
    """Return whether an option names a file of settings, or prints a text, and is no setting."""
    return option in (*_CONFIG, "-h", "--help", "--print_config") or option.endswith(".help")


def _key(option: str) -> str:
    return option.removeprefix("--").removesuffix("+")


def _nested(key: str, node: yaml.Node) -> str:
    """Return the YAML text that sets `key` to the value `node`."""
    for name in reversed(key.split(".")):
        node = yaml.MappingNode(MAPPING, [(yaml.ScalarNode(TEXT, name), node)])
    return yaml.serialize(node, Dumper=yaml.SafeDumper)


def _numbers(config: Namespace) -> Iterator[tuple[str, float]]:
    """Return the key and value of each number that is no integer, also in lists."""

    def inside(key: str, value: Any) -> Iterator[tuple[str, float]]:
        if isinstance(value, float):
            yield key, value
        elif isinstance(value, Namespace):
            for name, part in value.items():
                yield from inside(f"{key}.{name}", part)
        elif isinstance(value, dict):
            for part in value.values():
                yield from inside(key, part)
        elif isinstance(value, (list, tuple)):
            for part in value:
                yield from inside(key, part)

    for key, value in config.items():
        yield from inside(key, value)
