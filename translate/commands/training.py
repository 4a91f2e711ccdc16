"""`translate fit`, `validate` and `test`: results on standard output."""

from __future__ import annotations

from translate.training.cli import TranslationCLI


def main(argv: list[str]) -> int:
    """Run a command with its arguments, all of them settings; return the exit code.

    Raises:
        UserError: with what is wrong and what to do.
    """
    command, *args = argv
    cli = TranslationCLI(command, args)
    run = {"fit": cli.fit, "validate": cli.validate, "test": cli.test}[command]
    try:
        for line in run():
            print(line, flush=True)
    except KeyboardInterrupt:
        return 130
    return 0
