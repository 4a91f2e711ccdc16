"""Messages and progress bars on standard error."""

from __future__ import annotations

import contextlib
import io
import logging

from translate.commands import console

logger = logging.getLogger("translate.test")


def test_each_level_has_its_format_and_messages_appear_once(capsys):
    console.show_messages()
    console.show_messages()
    logger.debug("hidden")
    logger.info("model %s", "a.ckpt")
    logger.warning("100% sure")
    logger.error("no such file")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "model a.ckpt\nwarning: 100% sure\ntranslate: no such file\n"


def test_other_libraries_are_not_shown(capsys):
    console.show_messages()
    logging.getLogger("somebody").info("hello")
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_message_appears_above_the_progress_bar():
    console.show_messages()
    terminal = Terminal()
    with contextlib.redirect_stderr(terminal), console.progress_bar(4, "lines") as advance:
        advance(2)
        logger.warning("look")
        advance(2)
    shown = terminal.getvalue()
    assert "4/4" in shown
    before, after = shown.split("warning: look\n")
    assert before.endswith("\r")  # the bar is erased, and drawn again below
    assert "lines" in after


def test_nothing_to_count_shows_no_bar():
    terminal = Terminal()
    with contextlib.redirect_stderr(terminal), console.progress_bar(0, "lines") as advance:
        advance(1)
    assert terminal.getvalue() == ""


def test_without_a_terminal_there_is_no_progress_bar(capsys):
    with console.progress_bar(4, "lines") as advance:
        advance(4)
    assert capsys.readouterr().err == ""


HOSTILE = "a\x1b[2J\x07b\x9b\u202ec\r\ud800\n\tä 犬"
SAFE = "a\\x1b[2J\\x07b\\x9b\\u202ec\\r\\ud800\n\tä 犬"


def test_messages_have_their_control_characters_escaped(capsys):  # F09
    console.show_messages()
    # Without the lone surrogate, which pytest-xdist cannot pass on in captured messages.
    logger.warning("file %s", HOSTILE.replace("\ud800", ""))
    assert capsys.readouterr().err == f"warning: file {SAFE}\n".replace("\\ud800", "")


def test_results_on_a_terminal_are_escaped_except_for_own_colours(
    monkeypatch,
):  # F09
    written = io.BytesIO()
    output = console.TerminalOutput(written, "utf-8", "backslashreplace")
    monkeypatch.setattr(output, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with contextlib.redirect_stdout(output):
        print(HOSTILE)
        console.print_painted(console.paint(HOSTILE, console.RED))
    assert written.getvalue().decode() == f"{SAFE}\n\x1b[31m{SAFE}\x1b[0m\n"
