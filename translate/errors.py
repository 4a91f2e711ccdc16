"""The one exception that is meant for the person at the keyboard."""

from __future__ import annotations


class UserError(Exception):
    """Bad data, a bad model or a bad setting: one line that says what, where and what to do.

    The command line prints the message without a trace and exits with status 1.
    """
