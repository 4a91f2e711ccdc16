"""The text of `translate fit --help`: this program's settings, and the most used of Lightning."""

from __future__ import annotations

import re

from lightning.pytorch.cli import LightningArgumentParser

# The sections in the order in which they are shown.
_ORDER = ("--config", "--data", "--data.filters", "--model", "--name", "--early_stopping",
          "--translations", "--monitor", "--trainer")  # fmt: skip
# The shown settings of sections that are only shown in part.
_SHOWN = {
    "--trainer": (
        "max_epochs", "max_steps", "max_time", "accelerator", "devices", "precision",
        "accumulate_grad_batches", "gradient_clip_val", "val_check_interval",
        "check_val_every_n_epoch", "limit_train_batches", "fast_dev_run", "log_every_n_steps",
        "enable_progress_bar", "logger", "callbacks",
    ),
    "--early_stopping": ("monitor", "mode", "patience", "min_delta"),
}  # fmt: skip


class HelpfulParser(LightningArgumentParser):
    """A parser whose help is short; `show_all` is for `--help all`."""

    show_all = False

    def format_help(self) -> str:  # type: ignore[override] # the same as in every Python so far
        """Return the short help, or the help of all settings."""
        full = super().format_help()
        return full if self.show_all else short_help(full)


def short_help(full: str) -> str:
    """Return the settings that most users need, from the `full` help text of the parser."""
    head, *groups = re.split(r"\n\n(?=\S.*:\n  )", full)
    name = " ".join(head.split()[1:3])
    sections = {_first_option(group): group for group in groups}
    if not set(_ORDER) <= set(sections):  # another parser, such as that of one class
        return full
    texts = [_shortened(section, sections[section]) for section in _ORDER]
    return "\n\n".join(
        [
            f"usage: {name} --config FILE [--SETTING VALUE ...]",
            "All settings can stand in a config file. These are the settings of this program and "
            f"the\nmost used ones of Lightning's Trainer; `{name} --help all` shows all.",
            *texts,
            "",
        ]
    )


def _first_option(group: str) -> str:
    """Return the first long option of a group, "" if it has none."""
    found = re.search(r"^  (?:-c CONFIG, )?(--(?!help)[\w.]+)", group, re.MULTILINE)
    return found[1] if found else ""


def _shortened(section: str, group: str) -> str:
    """Leave out files of a section, classes' help texts, and settings that are not in _SHOWN."""
    heading, *options = re.split(r"\n(?=  -)", group)
    shown = [option for option in options if not re.match(r"  --\S+\.help |  --\S+ CONFIG", option)]
    if names := _SHOWN.get(section):
        by_name = {option.split()[0].rpartition(".")[2]: option for option in shown}
        shown = [by_name[name] for name in names]
    return re.sub(r",\s+known\s+subclasses:[^)]*\)", ")", "\n".join([heading, *shown]))
