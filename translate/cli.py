"""The entry point: find the module of a command and run it.

Results go to standard output, messages to standard error. Exit codes: 0 success, 1 bad data or a
bad model, 2 an invalid command line or setting, 130 interrupted.
"""

from __future__ import annotations

import difflib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

from translate.commands import console
from translate.commands.options import Parser
from translate.errors import UserError
from translate.text.printable import printable
from translate.version import __version__

logger = logging.getLogger(__name__)

DEBUG = "TRANSLATE_DEBUG"  # environment variable: show the traceback of an unexpected error

# Each command: what it does, and the module in translate/commands/ whose `main(argv)` runs it. The
# module is imported only when its command runs, so that `--help` needs no torch.
COMMANDS = {
    "fit": ("train a model from a config file", "training"),
    "validate": ("score a model on the validation data", "training"),
    "test": ("score a model on the test data and the challenge files", "training"),
    "decode": ("translate sentences or complete translations", "decode"),
    "attend": ("draw attention weights between words", "attend"),
    "trace": ("compute attention stage by stage, with all shapes", "trace"),
    "check": ("report errors in training data", "check"),
    "template": ("write a commented config for your own sentence pairs", "template"),
}
# What these commands of other programs are called here.
_MEANT = {
    **dict.fromkeys(("train", "training", "resume"), "fit"),
    **dict.fromkeys(("evaluate", "eval", "score"), "test"),
    **dict.fromkeys(("translate", "predict", "generate", "infer"), "decode"),
    **dict.fromkeys(("init", "config", "new"), "template"),
}


def main(argv: Sequence[str]) -> int:
    """Run one command and return its exit code.

    Args:
        argv: the command line without the program; it starts with the name of the command.
    """
    parser = _parser()
    first = argv[0] if argv else ""
    if first.startswith("-") and (name := next((arg for arg in argv if arg in COMMANDS), None)):
        parser.error(f"put {first} after the command: translate {name} {first}")
    if first and first not in COMMANDS and not first.startswith("-"):
        close = [_MEANT[first]] if first in _MEANT else difflib.get_close_matches(first, COMMANDS)
        hint = f"did you mean `translate {close[0]}`, to {COMMANDS[close[0]][0]}?" if close else ""
        parser.error(f"no command {first!r}; {hint or 'the commands are ' + ', '.join(COMMANDS)}")
    _, module = COMMANDS[parser.parse_args(argv[:1]).command]
    console.show_messages()
    try:
        return import_module(f"translate.commands.{module}").main(list(argv))
    except UserError as error:
        logger.error(error)
        return error.exit_code


def entry_point() -> NoReturn:
    """Run `main` as a process, with its streams and signals."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        # In a locale such as C, file names and config files would be garbled: start again in
        # UTF-8 mode.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    if sys.stderr is None:  # closed; discard messages, they must not end up among the results
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (never closed)
    if sys.stdout is None:
        sys.exit("translate: standard output is closed: cannot print results")
    # A file name may contain bytes that are not UTF-8: print the byte F6 as "\udcf6".
    if isinstance(sys.stderr, TextIOWrapper):
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stdout = console.standard_output()
    try:
        try:
            code = main(sys.argv[1:])
        finally:  # also after `--help`, which raises SystemExit
            sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during exit prints no traceback
    except KeyboardInterrupt:
        code = 130
    except OSError as error:
        # A broken pipe is not an error: the reader has stopped, as in `translate decode | head`.
        if not isinstance(error, BrokenPipeError):
            incomplete = f"cannot write the results: {error.strerror}; the output is incomplete"
            message = _unexpected(error) if error.filename else f"translate: {incomplete}"
            print(message, file=sys.stderr)
        # At exit Python flushes standard output again, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 1
    except Exception as error:
        print(_unexpected(error), file=sys.stderr)
        code = 1
    sys.exit(code)


def _unexpected(error: Exception) -> str:
    """Return one line about an error that nothing has explained, or its traceback for DEBUG."""
    if os.environ.get(DEBUG):
        return printable("".join(traceback.format_exception(error)))
    first = str(error).strip().partition("\n")[0][:300]
    reason = printable(f"{type(error).__name__}: {first}" if first else type(error).__name__)
    return f"translate: unexpected {reason} (set {DEBUG}=1 for the full traceback)"


def _parser() -> Parser:
    parser = Parser(
        prog="translate",
        description="Train a small transformer from English to German and watch it translate.",
        epilog="`translate COMMAND --help` describes a command.",
    )
    parser.add_argument("--version", action="version", version=f"translate {__version__}")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    for name, (summary, _) in COMMANDS.items():
        commands.add_parser(name, help=summary)
    return parser
