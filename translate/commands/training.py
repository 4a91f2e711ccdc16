"""`translate fit`, `validate` and `test`: run them and print their results."""

from __future__ import annotations

from translate.training.cli import TranslationCLI


def main(argv: list[str]) -> int:
    """Run a command, whose arguments are all settings; return the exit code.

    Raises:
        UserError: bad data, a bad model or an invalid setting.
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
