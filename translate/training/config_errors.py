"""Explain errors of the parser in one line: what is wrong, where, and what to do."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Sequence

from translate.text.corpus import ParallelFiles

# Sections that name files, or lists of such sections; the parser does not list their settings.
_FILES = ("data.train", "data.valid", "data.test")
_IN_FILES = [f"{key}.{field.name}" for key in _FILES for field in dataclasses.fields(ParallelFiles)]


def explain(message: str, args: Sequence[str], known: Iterable[str]) -> str:
    """Return a parser's `message` about `args` in one line; `known` are the keys that exist."""
    place = _place(args)
    if found := re.search(r"Group '([^']+)' does not accept option '([^']+)'", message):
        key = f"{found[1]}.{found[2]}"
        return f"{place}: no setting {key}{_nearest(key, known)}"
    if found := re.match(r"Option '([^']+)' is not accepted", message):
        return f"{place}: no setting {found[1]}{_nearest(found[1], known)}"
    if found := re.search(r"unrecognized arguments: --([^\s=]+)", message):
        return f"no setting --{found[1]}{_nearest(found[1], known)}"
    if found := re.match(r'Parser key "([^"]+)":\s*(.*)', message, re.DOTALL):
        if found[1] == "config":
            return _wrong_value(found[2])
        key, text = found[1], found[2]
        given = "NestedArg(" in text
        given |= any(re.match(rf"--{re.escape(key)}\+?(=|$)", arg) for arg in args)
        place = "command line" if given else place
        if option := re.search(r"Option '([^']+)' is not accepted", text):
            key = f"{key}.{option[1]}"
            return f"{place}: no setting {key}{_nearest(key, [*known, *_IN_FILES])}"
        if inner := re.search(r'Parser key "([^"]+)":\s*(Expected .*)', text):
            key, text = f"{key}.{inner[1]}", inner[2]
        fault = _no_section(key, text, given=given) or _wrong_value(text)
        return f"{place}: {key}: {fault}"
    if found := re.match(r'Key "(\w+)\.\w+" not found in namespace', message):
        return f"{place}: {found[1]}: expected a section of settings"
    if "codec can't decode" in message:
        return f"{place}: not UTF-8 text"
    if message.startswith("Unexpected config"):
        return f"{place}: no settings in this file; see configs/tiny.yaml for an example"
    if message.startswith("Problems parsing config"):
        numbers = re.findall(r", line (\d+)", message)  # the last one is where parsing stopped
        reasons = re.sub(r"\s+in \"<.*", "", message).removeprefix("Problems parsing config: ")
        place += f":{numbers[-1]}" if numbers else ""
        return f"{place}: not YAML: {reasons.splitlines()[-1]}"
    return " ".join(message.split())


def _place(args: Sequence[str]) -> str:
    """Return the config files among the arguments, or "command line"."""
    pairs = zip(args, [*args[1:], ""], strict=True)
    files = [value for option, value in pairs if option in ("-c", "--config")]
    files += [arg.split("=", 1)[1] for arg in args if arg.startswith("--config=")]
    return ", ".join(files) or "command line"


def _nearest(key: str, known: Iterable[str]) -> str:
    known = sorted({*known, *section_names(known)})
    last = {name.rpartition(".")[2]: name for name in known}
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    if not close:  # the right name in the wrong section
        words = difflib.get_close_matches(key.rpartition(".")[2], last, n=1, cutoff=0.6)
        close = [last[word] for word in words]
    return f"; did you mean {close[0]}?" if close else "; `translate fit --help` lists all settings"


def section_names(known: Iterable[str]) -> list[str]:
    """Return the sections of the settings `known`: data, data.train for data.train.tsv."""
    dots = [(key, index) for key in known for index, sign in enumerate(key) if sign == "."]
    return sorted({key[:index] for key, index in dots})


def _no_section(key: str, text: str, *, given: bool) -> str:
    """Return the right form if a section was given as one value, such as a file name; else ""."""
    text_given = re.search(r"Unable to load config '(.+)'\n", text)
    if key not in _FILES:
        return f"expected a section of settings, got {text_given[1]}" if text_given else ""
    path_given = re.search(r"Expected a path but (.+) either not accessible", text)
    if not (text_given or path_given or "Given value type: <class 'str'>" in text):
        value = re.search(r"Given value: (.*)", text)
        if value and value[1].startswith("['"):
            return f"expected a list of sections: write [{{tsv: {value[1].split(chr(39))[1]}}}]"
        return f"expected a section of settings, got {value[1]}" if value else ""
    file = (text_given or path_given or {1: "FILE"})[1]
    example = f"--{key}.tsv {file}" if given else f"{{tsv: {file}}}"
    return f"expected a section: write {example}"


def _wrong_value(text: str) -> str:
    value = re.search(r"(?:Got value|Given value): (.*)", text)
    kinds = [
        _plain(kind) for kind in re.findall(r"Expected an? (.+?)(?:\. Got value.*)?\n", text + "\n")
    ]
    if not value or not kinds:
        return " ".join(text.split())[:300]
    kinds = [kind for kind in dict.fromkeys(kinds) if kind != "NoneType"]
    hint = "; put text in quotes" if kinds == ["str"] else ""
    return f"expected {' or '.join(kinds) or 'a section of settings'}, got {value[1]}{hint}"


def _plain(kind: str) -> str:
    """Return a short, readable form of Python's name of a type."""
    kind = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", kind)
    kind = re.sub(r"(?:typing\.)?Literal\[(.*)\]", r"\1", kind)
    return re.sub(
        r"(path but \S+ either not accessible or invalid|dot import path string).*",
        "class path",
        kind,
    )
