"""Messages of libraries that are not shown, each with its reason."""

from __future__ import annotations

import logging
import warnings

_IGNORED = (
    ".*does not have many workers.*",  # building small batches in processes takes longer
    ".*smaller than the logging interval.*",  # `TranslationModule.on_train_start` lowers it
    ".*dataloader is not resumable.*",  # `TranslationData.train_dataloader` skips batches
    ".*exists and is not empty.*",  # a resumed run continues in its own folder
    ".*LeafSpec.*is deprecated.*",
)


def silence_lightning() -> None:
    """Hide Lightning's greetings, and warnings that do not apply here."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in _IGNORED:
        warnings.filterwarnings("ignore", message)
