"""How beam search scores hypotheses, and the limits of its settings. Does not import torch."""

from __future__ import annotations

LENGTH_PENALTY = 1.0  # the default: log probability per piece

# Wider beams take hours or all RAM and find nothing better. With a higher length penalty, only the
# length decides, not the probability. The limits hold for `translate decode` and `translate test`.
MAX_BEAM = 1000
MAX_LENGTH_PENALTY = 10


def normalised_score(log_probability: float, pieces: int, length_penalty: float) -> float:
    """Return log probability / pieces ** length_penalty.

    The first rule of Wu et al. 2016, section 7; the second rule of that paper adds 5 to the length.
    A `length_penalty` of 0 compares sums, which favours short outputs; 1 compares the mean log
    probability per piece.

    Args:
        log_probability: sum over all chosen pieces, eos included; natural logarithm, at most 0.
        pieces: number of chosen pieces, eos included.
        length_penalty: from 0 to `MAX_LENGTH_PENALTY`.
    """
    return log_probability / pieces**length_penalty
