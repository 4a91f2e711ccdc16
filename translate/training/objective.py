"""What training minimises: label-smoothed cross entropy, as sums with their count.

N real target positions (padding is left out before the logits are made), V vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Loss(NamedTuple):
    """Sums over N target tokens, so that batches of any size add up exactly."""

    loss: Tensor  # label-smoothed cross entropy, nats; what the gradient comes from
    nll: Tensor  # negative log-likelihood of the right pieces, nats; what perplexity comes from
    count: int  # N


def label_smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Loss:
    """Logits (N, V) against the right pieces (N,).

    The target distribution puts 1 - smoothing on the right piece and spreads the rest evenly
    over all V pieces (Szegedy et al. 2016, section 7), which keeps the model from chasing
    probability 1. The same as ``F.cross_entropy(..., label_smoothing=smoothing)``, from one
    log-softmax. Without any target all three are zero.
    """
    log_probabilities = logits.log_softmax(dim=-1)  # (N, V); never log(softmax), which is -inf
    nll = -log_probabilities.gather(-1, targets[:, None]).sum()
    evenly = -log_probabilities.mean(dim=-1).sum()
    return Loss((1 - smoothing) * nll + smoothing * evenly, nll, len(targets))
