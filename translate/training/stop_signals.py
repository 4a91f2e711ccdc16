"""Ctrl-C and SIGTERM: finish the update, save a checkpoint, then stop."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from types import FrameType

from lightning.pytorch.callbacks import Callback

from translate.training.callbacks import SaveCheckpoints

logger = logging.getLogger(__name__)


class StoppedBySignal(Exception):  # noqa: N818 (not an error)
    """Training has stopped as the user asked."""


class StopSignals(Callback):
    """Callback that stops training after the update during which a signal arrived.

    The signal sets a flag. The flag is read when the next update begins: then everything that
    follows from the update before is done, such as a validation or the end of an epoch, and a
    checkpoint continues exactly. A second Ctrl-C stops at once.

    Args:
        checkpoints: saves the checkpoint if it is among the callbacks of the trainer.

    Raises:
        StoppedBySignal: when the checkpoint is saved.
        KeyboardInterrupt: at a second Ctrl-C.
    """

    def __init__(self, checkpoints: SaveCheckpoints) -> None:
        self._checkpoints = checkpoints
        self._requested = False

    def on_train_start(self, trainer, pl_module) -> None:
        """Replace Lightning's handler, which stops between the batches of one update.

        Lightning restores the handlers from before the training when it ends.
        """
        if threading.current_thread() is threading.main_thread():  # only it may set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self._request)

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx) -> None:
        if self._requested and not pl_module.tokens_in_update:
            if self._checkpoints in trainer.checkpoint_callbacks:
                self._checkpoints.save_last(trainer)
            raise StoppedBySignal

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self._requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self._requested:
            self._requested = True
            with contextlib.suppress(RuntimeError):  # the signal came while a message was written
                logger.info("stopping after this update; Ctrl-C again stops at once")
