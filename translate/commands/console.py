"""Messages, progress bars, colours and questions: the only place that deals with terminals.

Commands print results on standard output. Everything else goes through `logging` to standard
error, where `show_messages` makes it visible.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper

from translate.text.printable import printable

GREEN, YELLOW, RED, DIM, BOLD = "32", "33", "31", "2", "1"  # ANSI codes

_PREFIXES = {logging.WARNING: "warning: ", logging.ERROR: "translate: "}


class _MessageHandler(logging.Handler):
    """Write each log record as one message to standard error, above a progress bar if one is shown.

    INFO is the plain message, WARNING "warning: message", ERROR "translate: message".
    """

    def emit(self, record: logging.LogRecord) -> None:
        message = printable(_PREFIXES.get(record.levelno, "") + record.getMessage())
        # sys.stderr is looked up for every message, because tests and programs replace it.
        with suppress(OSError):  # a full disk under the messages must not cost the results
            if tqdm := sys.modules.get("tqdm"):  # otherwise there is no progress bar
                tqdm.tqdm.write(message, file=sys.stderr)
            else:
                print(message, file=sys.stderr, flush=True)


_HANDLER = _MessageHandler()


def show_messages() -> None:
    """Show the log messages of this package on standard error; a second call has no effect."""
    logger = logging.getLogger("translate")
    logger.setLevel(logging.INFO)
    logger.addHandler(_HANDLER)


class TerminalOutput(TextIOWrapper):
    """Standard output on a terminal: text is written with its control characters escaped.

    Files and pipes get the text as it is. Only `print_painted` writes control characters.
    """

    def write(self, text: str) -> int:
        return super().write(printable(text))

    def write_painted(self, text: str) -> int:
        return super().write(text)


def standard_output() -> TextIOWrapper:
    """Open standard output again: as UTF-8, with a large buffer, and safe on a terminal.

    argparse ignores errors while it writes a help text: with a buffer that holds the whole text,
    they occur in the `flush` at the end of the process.
    """
    kind = TerminalOutput if os.isatty(1) else TextIOWrapper
    return kind(open(1, "wb", 1 << 16, closefd=False), "utf-8", "backslashreplace")


@contextmanager
def progress_bar(total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Show a progress bar if standard error is a terminal and `total` is not 0.

    Yields:
        A function that takes the number of items just finished. Any thread may call it.
    """
    from tqdm import tqdm  # takes 30 ms

    # disable=None: no bar unless standard error is a terminal.
    with tqdm(total=total, unit=f" {unit}", disable=None if total else True) as bar:

        def advance(finished: int) -> None:
            with bar.get_lock():
                bar.update(finished)

        yield advance


def has_colours() -> bool:
    """Return whether standard output is a terminal that shows colours.

    The user switches colours off with NO_COLOR (https://no-color.org); TERM=dumb has none.
    """
    dumb = os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not dumb and not os.environ.get("NO_COLOR")


def paint(text: str, colour: str) -> str:
    """Return `text` in one of this module's colours, if standard output shows colours.

    The result is for `print_painted`.
    """
    text = printable(text) if sys.stdout.isatty() else text
    return f"\x1b[{colour}m{text}\x1b[0m" if colour and has_colours() else text


def print_painted(line: str) -> None:
    """Print a line of texts from `paint`, with its colours, and flush."""
    write = getattr(sys.stdout, "write_painted", sys.stdout.write)
    write(f"{line}\n")
    sys.stdout.flush()


def ask(question: str) -> str:
    """Print a question and return the line that answers it, "" at the end of the input."""
    print(question, end="", flush=True)
    answer = sys.stdin.readline() if sys.stdin else ""
    if not (sys.stdin and sys.stdin.isatty()):
        print(answer.strip())  # a terminal shows the typed answer; other outputs need this
    return answer
