"""The training objective: label-smoothed cross entropy, summed over target tokens.

Shapes: N real target tokens (padding is removed before), n of them in one chunk, D d_model,
V vocabulary
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

# Rows whose logits are computed at the same time: 1,024 x 8,000 float32 numbers take 33 MB. The
# logits of a whole batch would be by far the largest tensor, and writing them to RAM and reading
# them back several times would take long.
CHUNK = 1024


class Loss(NamedTuple):
    """Sums over N target tokens, so that batches of any size add up exactly."""

    loss: Tensor  # label-smoothed cross entropy in nats, to be differentiated
    nll: Tensor  # negative log-likelihood of the target pieces in nats; for the perplexity
    count: int  # type: ignore[assignment]  # N; a tuple has a method with this name


def label_smoothed_cross_entropy(
    hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float
) -> Loss:
    """Compare logits `hidden` (N, D) @ `weight`ᵀ (D, V) with the target pieces (N,).

    The target distribution has probability 1 - smoothing at the target piece and the rest spread
    evenly over all V pieces (Szegedy et al. 2016, section 7), so the model need not reach
    probability 1. Equals ``F.cross_entropy(hidden @ weight.T, targets,
    label_smoothing=smoothing, reduction="sum")``. Without any target all three sums are zero.
    """
    nll = _ChunkedCrossEntropy.apply(hidden, weight, targets)
    # The smoothing term is linear in the logits, so it needs only sums over the hidden vectors.
    target_logits = (hidden * F.embedding(targets, weight)).sum()
    mean_logits = hidden.sum(dim=0) @ weight.mean(dim=0)
    loss = nll + smoothing * (target_logits - mean_logits)
    return Loss(loss, nll.detach(), len(targets))


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Output layer, loss and gradients in chunks, without ever storing all (N, V) logits.

    The loss of a row is log Σ exp(logits) - the target's logit. Its gradient with respect to the
    logits is softmax(logits), minus 1 at the target. Loss and gradient are computed together, from
    the same logits. ``F.linear_cross_entropy`` in chunks is 10 % faster in float32, but under
    autocast it still multiplies in float32, and then takes 60 % longer.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        device = weight.device.type
        exact = torch.promote_types(weight.dtype, torch.float32)  # dtype of the sums
        autocast = torch.is_autocast_enabled(device)
        low = torch.get_autocast_dtype(device) if autocast else weight.dtype  # of products
        table = weight.to(low)
        loss = hidden.new_zeros((), dtype=exact)
        if differentiate := any(ctx.needs_input_grad):
            grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        for start in range(0, len(hidden), CHUNK):
            rows = hidden[start : start + CHUNK]  # (n, D)
            pieces = targets[start : start + CHUNK, None]  # (n, 1)
            logits = (rows.to(low) @ table.t()).to(exact)  # (n, D) @ (D, V) -> (n, V)
            highest = logits.amax(dim=1, keepdim=True)  # (n, 1)
            target_logits = logits.gather(1, pieces)  # (n, 1)
            exponentials = logits.sub_(highest).exp_()  # at most 1: no overflow
            total = exponentials.sum(dim=1, keepdim=True)  # (n, 1)
            loss += (highest + total.log() - target_logits).sum()
            if differentiate:
                # The gradient times `total`: dividing (n, D) numbers later costs less than (n, V).
                gradient = exponentials.scatter_add_(1, pieces, -total).to(low)
                grad_hidden[start : start + CHUNK] = gradient @ table / total
                grad_weight += gradient.t() @ (rows / total).to(low)
        if differentiate:
            ctx.save_for_backward(grad_hidden, grad_weight)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor, Tensor, None]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad_loss, grad_weight * grad_loss, None
