"""`translate fit`, `validate` and `test`: run them and print their results."""

from __future__ import annotations

from translate.training.cli import TranslationCLI
from translate.training.run_split import run_config


def main(argv: list[str]) -> int:
    """Run a command, whose arguments are all settings; return the exit code.

    Without a config, `validate` and `test` use that of the run in `--ckpt_path`.

    Raises:
        UserError: bad data, a bad model or an invalid setting.
    """
    command, *args = argv
    if command != "fit":
        args = [*run_config(args), *args]
    cli = TranslationCLI(command, args)
    run = {"fit": cli.fit, "validate": cli.validate, "test": cli.test}[command]
    try:
        for line in run():
            print(line, flush=True)
    except KeyboardInterrupt:
        return 130
    return 0
