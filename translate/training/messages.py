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
        return f"{place}: {found[1]}: {_wrong_value(found[2])}"
    if message.startswith("Problems parsing config"):
        line = re.search(r"line (\d+)", message)
        return f"{place}{f':{line[1]}' if line else ''}: not YAML: {message.splitlines()[-2]}"
    return " ".join(message.split())


def _place(args: Sequence[str]) -> str:
    """The config files among the arguments, or the command line."""
    files = [
        value
        for option, value in zip(args, [*args[1:], ""], strict=True)
        if option in ("-c", "--config")
    ]
    files += [arg.split("=", 1)[1] for arg in args if arg.startswith("--config=")]
    return ", ".join(files) or "command line"


def _nearest(key: str, known: Iterable[str]) -> str:
    known = list(known)
    last = {name.rpartition(".")[2]: name for name in known}
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    if not close:  # the right word in the wrong section
        words = difflib.get_close_matches(key.rpartition(".")[2], last, n=1, cutoff=0.6)
        close = [last[word] for word in words]
    return f"; did you mean {close[0]}?" if close else "; `translate fit --help` lists them all"


def _wrong_value(text: str) -> str:
    expected = re.match(r"Expected an? (.+?)\. Got value: (.*)", text, re.DOTALL)
    if not expected:
        return " ".join(text.split())[:300]
    kind = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", expected[1]).replace("typing.", "")
    hint = "; put text in quotes" if kind == "str" else ""
    return f"expected {kind}, got {expected[2]}{hint}"
