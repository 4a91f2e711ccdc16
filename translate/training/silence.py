"""Which messages of Lightning are shown, and which are not, each with its reason."""

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


# What the user asks for with trainer.enable_model_summary and trainer.profiler.
_REPORTS = ("lightning.pytorch.callbacks.model_summary", "lightning.pytorch.profilers.profiler")

logger = logging.getLogger(__name__)


class _Forward(logging.Handler):
    """Handler that logs a message of Lightning as a message of this program."""

    def emit(self, record: logging.LogRecord) -> None:
        logger.info(record.getMessage().strip("\n"))


def _show_warning(message: Warning | str, *place: object, **more: object) -> None:
    """Log a warning of a library without the place in its source, in one line."""
    logger.warning(" ".join(str(message).split()))


def silence_lightning() -> None:
    """Hide Lightning's greetings, and warnings that do not apply here; show its reports."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in _IGNORED:
        warnings.filterwarnings("ignore", message)
    warnings.showwarning = _show_warning
    for name in _REPORTS:
        report = logging.getLogger(name)
        report.setLevel(logging.INFO)
        report.propagate = False
        if not report.handlers:
            report.addHandler(_Forward())
