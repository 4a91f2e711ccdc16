"""What every part of the benchmark shares: the options, the progress bar, the common shape."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

if TYPE_CHECKING:
    from benchmark_parts.data import Corpus
    from benchmark_parts.peers import Peers

SCRIPTS = Path(__file__).resolve().parent.parent
OURS = "this program"

# The shape of every contestant.
SHAPE = {
    "encoder_layers": 4,
    "decoder_layers": 4,
    "d_model": 128,
    "d_ff": 256,
    "n_heads": 4,
    "dropout": 0.1,
}


class BenchmarkError(Exception):
    """One line: what failed. The contestant drops out, the rest goes on."""


@dataclass(frozen=True)
class Options:
    """The command line."""

    quick: bool
    threads: int
    multi30k: Path | None
    checkpoint: Path | None  # a trained model for decoding; None trains one
    work: Path  # the folder that everything is written into

    def environment(self) -> dict[str, str]:
        """Of every child: the same threads, nothing downloaded, UTF-8."""
        threads = str(self.threads)
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SCRIPTS), os.environ.get("PYTHONPATH", "")]),
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "PYTHONUTF8": "1",
        }


class Progress:
    """One bar for everything, with lines above it; all on stderr."""

    def __init__(self, total: int) -> None:
        self._bar = tqdm(total=total, unit="step", smoothing=0.05, dynamic_ncols=True)

    def now(self, label: str) -> None:
        """Say what is being done."""
        self._bar.set_description(label)

    def done(self, steps: int = 1) -> None:
        self._bar.update(steps)

    def say(self, line: str) -> None:
        tqdm.write(f"benchmark: {line}", file=sys.stderr)

    def close(self) -> None:
        self._bar.close()


class Bench:
    """What a part gets: the options, the bar, and what several parts need, made once."""

    def __init__(self, options: Options, progress: Progress) -> None:
        self.options = options
        self.progress = progress
        self.our_python = Path(sys.executable)

    @cached_property
    def corpus(self) -> Corpus:
        from benchmark_parts.data import prepare

        return prepare(self.options)

    @cached_property
    def checkpoint(self) -> Path:
        """A trained model of the shape; raises BenchmarkError if training it fails."""
        from benchmark_parts.data import train_checkpoint

        return self.options.checkpoint or train_checkpoint(self.options, self.corpus)

    @cached_property
    def peers(self) -> Peers:
        from benchmark_parts.peers import install

        return install(self.options, self.progress)
