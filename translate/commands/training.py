"""`translate fit`, `validate` and `test`: results on standard output."""

from __future__ import annotations

from collections.abc import Iterator

from translate.training.cli import TranslationCLI
from translate.training.silence import silence_lightning


def main(argv: list[str]) -> int:
    """Run a command with its arguments, all settings of LightningCLI; return the exit code.

    Raises:
        UserError: with what is wrong and what to do.
    """
    silence_lightning()
    command, *args = argv
    try:
        for line in _lines(TranslationCLI(command, args)):
            print(line, flush=True)
    except KeyboardInterrupt:
        return 130
    return 0


def _lines(cli: TranslationCLI) -> Iterator[str]:
    """Run the command; yield what it prints as soon as it is there."""
    if cli.command == "test":
        yield from cli.test()
    elif cli.command == "validate":
        for name, value in cli.validate().items():
            yield f"{name:<16} {value:.4f}"
    else:
        result = cli.fit()
        if result.best_bleu is not None:
            yield f"best validation BLEU {result.best_bleu:.2f}: {result.best_checkpoint}"
        yield from result.commands
