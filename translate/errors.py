"""Errors for the user: the command line prints their message without a traceback."""

from __future__ import annotations


class UserError(Exception):
    """Bad data or a bad model. The message says what is wrong, where, and what to do."""

    exit_code = 1


class WriteError(UserError):
    """A file that cannot be written: a full disk, a quota, missing permission."""


class UsageError(UserError):
    """An invalid option or setting."""

    exit_code = 2
