"""`translate fit`, `translate validate` and `translate test`."""

from __future__ import annotations


def main(argv: list[str]) -> int:
    """Run the command that `argv` starts with; return its exit code."""
    from translate.training.cli import main as run

    return run(argv)
