"""What all measurements share: the options, the shape of the models, the error."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent
ROOT = SCRIPTS.parent
OURS = "this program"

# The shape of every model and the settings of its training, named as in `translate fit`.
SHAPE = {
    "encoder_layers": 4, "decoder_layers": 4, "d_model": 128, "d_ff": 256, "n_heads": 4,
    "dropout": 0.1,
}  # fmt: skip
LEARNING_RATE, SMOOTHING = 1e-3, 0.1
TRAINING = {"peak_learning_rate": LEARNING_RATE, "label_smoothing": SMOOTHING}
SEED = 1
TOKENS_PER_SIDE = 4096  # padded tokens of a batch, source and target each


class BenchmarkError(Exception):
    """A measurement failed; the message is one line. The other measurements continue."""


@dataclass(frozen=True)
class Options:
    """The command line."""

    quick: bool
    threads: int
    multi30k: Path | None
    checkpoint: Path | None  # a trained model for decoding; None: train a new model
    against: Path | None  # another checkout of this project
    parts: tuple[str, ...]  # what to measure
    work: Path  # the folder for all files


def say(line: str) -> None:
    """Print a message to stderr."""
    print(f"benchmark: {line}", file=sys.stderr, flush=True)
