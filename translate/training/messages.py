"""What jsonargparse complains about, in one line that says what, where and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence


def explain(message: str, args: Sequence[str], known: Iterable[str]) -> str:
    """Retell a parser's `message` about `args`; `known` are the keys that exist."""
    place = _place(args)
    if found := re.search(r"does not accept option '([^']+)'", message):
        return f"{place}: no setting {found[1]}{_nearest(found[1], known)}"
    if found := re.search(r"unrecognized arguments: --([^\s=]+)", message):
        return f"no setting --{found[1]}{_nearest(found[1], known)}"
    if found := re.search(r"not accepted before subcommand '(\w+)'", message):
        return f"put --config after {found[1]}: translate {found[1]} --config FILE"
    if found := re.match(r'Parser key "([^"]+)":\s*(.*)', message, re.DOTALL):
        if found[1] == "config":
            return _wrong_value(found[2])
        given = any(re.match(rf"--{re.escape(found[1])}\+?(=|$)", arg) for arg in args)
        return f"{'command line' if given else place}: {found[1]}: {_wrong_value(found[2])}"
    if message.startswith("Unexpected config"):
        return f"{place}: no settings in it; it should read like configs/tiny.yaml"
    if message.startswith("Problems parsing config"):
        line = re.search(r"line (\d+)", message)
        return f"{place}{f':{line[1]}' if line else ''}: not YAML: {message.splitlines()[-2]}"
    return " ".join(message.split())


def _place(args: Sequence[str]) -> str:
    """The config files among the arguments, or the command line."""
    pairs = zip(args, [*args[1:], ""], strict=True)
    files = [value for option, value in pairs if option in ("-c", "--config")]
    files += [arg.split("=", 1)[1] for arg in args if arg.startswith("--config=")]
    return ", ".join(files) or "command line"


def _nearest(key: str, known: Iterable[str]) -> str:
    known = {key[:end] for key in known for end in (*_dots(key), len(key))}  # sections too
    known = sorted(known)
    last = {name.rpartition(".")[2]: name for name in known}
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    if not close:  # the right word in the wrong section
        words = difflib.get_close_matches(key.rpartition(".")[2], last, n=1, cutoff=0.6)
        close = [last[word] for word in words]
    return f"; did you mean {close[0]}?" if close else "; `translate fit --help` lists them all"


def _dots(key: str) -> list[int]:
    return [index for index, character in enumerate(key) if character == "."]


def _wrong_value(text: str) -> str:
    value = re.search(r"(?:Got value|Given value): (.*)", text)
    kinds = [
        _plain(kind) for kind in re.findall(r"Expected an? (.+?)(?:\. Got value.*)?\n", text + "\n")
    ]
    if not value or not kinds:
        return " ".join(text.split())[:300]
    kinds = [kind for kind in dict.fromkeys(kinds) if kind != "NoneType"]
    hint = "; put text in quotes" if kinds == ["str"] else ""
    return f"expected {' or '.join(kinds)}, got {value[1]}{hint}"


def _plain(kind: str) -> str:
    """Python's name of a type as a person would write it."""
    kind = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", kind)
    kind = re.sub(r"(?:typing\.)?Literal\[(.*)\]", r"\1", kind)
    return re.sub(
        r"(path but \S+ either not accessible or invalid|dot import path string).*",
        "class path",
        kind,
    )
