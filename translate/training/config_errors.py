"""Say in one line why the parser refuses a value."""

from __future__ import annotations

import re

from translate.training.config_types import ALLOWED_PACKAGES, PACKAGES_VARIABLE


def reason(message: str, value: str) -> str:
    """Return what a parser's `message` says about `value`, as it is written in the config."""
    if found := re.search(r"Importing '(\S+)' is not allowed", message):
        return (
            f"class {found[1]} is not allowed: a config may name classes of "
            f"{', '.join(ALLOWED_PACKAGES)}; {PACKAGES_VARIABLE}=PACKAGE allows another package"
        )
    if found := re.search(r"Problem with given class_path '(\S+)':\n(.*)", message, re.DOTALL):
        fault = _class_fault(found[2])
        if found[1].endswith(".ParallelFiles"):  # its only setting is already named
            return fault.partition(": ")[2]
        return f"{found[1]}: {fault}"
    if found := re.search(r"Import path (\S+) does not correspond to a subclass of (\w+)", message):
        return f"{found[1]} is not a class of the kind {found[2]}"
    if found := re.search(r"Group '(\S+)' does not accept option '(\S+)'", message):
        return f"no setting {found[1]}.{found[2]}"
    if "Unable to load config" in message:
        return f"expected a section of settings, got {value}"
    return _expected(message, value)


def _class_fault(text: str) -> str:
    """Return what is wrong with the parameters of a class."""
    if found := re.match(r"\s*Option '(\S+)' is not accepted", text):
        return f"no parameter {found[1]}"
    if found := re.match(r"\s*the following arguments are required: (.*)", text):
        return f"missing in init_args: {found[1]}"
    if found := re.match(r'(\s*)Parser key "(\S+)":\s*\n((?:\1\s.*\n?)*)', text):
        value = re.search(r"(?:Got value|Given value): (.*)", found[3])
        return f"{found[2]}: {_expected(found[3], value[1] if value else 'another value')}"
    return text.strip().splitlines()[0]


def _expected(message: str, value: str) -> str:
    kinds = re.findall(r"Expected an? (.+?)(?:\. Got value.*)?\n|Not of type (\w+)", message + "\n")
    names = [_plain(kind or "path") for kind, _ in kinds]
    names = [name for name in dict.fromkeys(names) if name != "NoneType"]
    if not names:
        return f"{' '.join(message.split())[:200]}; got {value}"
    hint = "; put text in quotes" if names == ["str"] else ""
    return f"expected {' or '.join(names)}, got {value}{hint}"


def _plain(kind: str) -> str:
    """Return a short, readable form of Python's name of a type."""
    kind = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", kind)
    kind = re.sub(r"(?:typing\.)?Literal\[(.*)\]", r"\1", kind)
    return re.sub(
        r"(path but \S+ either not accessible or invalid|dot import path string).*",
        "class path",
        kind,
    )
