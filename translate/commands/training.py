"""`translate fit`, `validate` and `test`: results on standard output."""

from __future__ import annotations

from translate.training.cli import TranslationCLI
from translate.training.silence import silence_lightning


def main(argv: list[str]) -> int:
    """Run a command with its arguments, all settings of LightningCLI; return the exit code.

    Raises:
        UserError: with what is wrong and what to do.
    """
    silence_lightning()
    command, *args = argv
    cli = TranslationCLI(command, args)
    run = {"fit": cli.fit, "validate": cli.validate, "test": cli.test}[command]
    try:
        for line in run():
            print(line, flush=True)
    except KeyboardInterrupt:
        return 130
    return 0
