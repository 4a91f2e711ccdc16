"""The exceptions that are meant for the person at the keyboard."""

from __future__ import annotations


class UserError(Exception):
    """Bad data or a bad model: one line that says what, where and what to do.

    The command line prints the message without a trace and exits with `exit_code`.
    """

    exit_code = 1


class UsageError(UserError):
    """A setting or an option that cannot be meant."""

    exit_code = 2
