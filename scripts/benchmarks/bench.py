"""The progress bar, and what several measurements need and is made once."""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path

from tqdm import tqdm

from benchmarks.corpus import Corpus, prepare, train_checkpoint
from benchmarks.options import ROOT, Options
from benchmarks.peers import Peers, install


class Progress:
    """One progress bar for the whole benchmark, with messages above it; all on stderr."""

    def __init__(self, total: int) -> None:
        self._bar = tqdm(total=total, unit="step", smoothing=0.05, dynamic_ncols=True)

    def now(self, label: str) -> None:
        """Show what is being done."""
        self._bar.set_description(label)

    def done(self, steps: int = 1) -> None:
        """Advance the bar."""
        self._bar.update(steps)

    def say(self, line: str) -> None:
        """Print a message."""
        tqdm.write(f"benchmark: {line}", file=sys.stderr)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()


class Bench:
    """What each measurement receives."""

    def __init__(self, options: Options, progress: Progress) -> None:
        self.options = options
        self.progress = progress

    @cached_property
    def corpus(self) -> Corpus:
        """The text that all contestants train on and translate."""
        return prepare(self.options)

    @cached_property
    def checkpoint(self) -> Path:
        """A trained model; with --against, the other checkout trains it, because a new version
        reads the checkpoints of an older one."""
        checkout = self.options.against or ROOT
        return self.options.checkpoint or train_checkpoint(self.options, self.corpus, checkout)

    @cached_property
    def peers(self) -> Peers:
        """The environment of the peers."""
        return install(self.options, self.progress.say)
