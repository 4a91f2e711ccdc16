"""What training minimises: label-smoothed cross entropy, as sums.

N real target positions (padding is left out beforehand), D d_model, V vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Rows whose logits exist at the same time: 1,024 x 8,000 float32 are 33 MB; all rows of a batch
# would be far more than any other tensor, written to memory and read back several times.
CHUNK = 1024


class Loss(NamedTuple):
    """Sums over N target tokens, so that batches of any size add up exactly."""

    loss: Tensor  # label-smoothed cross entropy, nats; what the gradient comes from
    nll: Tensor  # negative log-likelihood of the right pieces, nats; what perplexity comes from
    count: int  # N


def label_smoothed_cross_entropy(
    hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float
) -> Loss:
    """Logits `hidden` (N, D) @ `weight`ᵀ (D, V) against the right pieces (N,).

    The target distribution puts 1 - smoothing on the right piece and spreads the rest evenly
    over all V pieces (Szegedy et al. 2016, section 7), which keeps the model from chasing
    probability 1. The same as ``F.cross_entropy(hidden @ weight.T, targets,
    label_smoothing=smoothing, reduction="sum")``. Without any target all three are zero.
    """
    loss, nll = _LinearCrossEntropy.apply(hidden, weight, targets, smoothing)
    return Loss(loss, nll, len(targets))


class _LinearCrossEntropy(torch.autograd.Function):
    """Output layer, loss and their gradients chunk by chunk: the (N, V) logits are never whole.

    With p = softmax(logits) and q the smoothed target distribution, the loss of a row is
    log Σ exp(logits) - q · logits and its gradient with respect to the logits p - q. So the
    gradients can be had at once, while the chunk's logits are still there.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        differentiate = any(ctx.needs_input_grad)
        exact = torch.promote_types(weight.dtype, torch.float32)  # sums need more than half a float
        low = _product_type(weight)
        log_sums, right = hidden.new_zeros(2, dtype=exact).unbind()
        # The even part of q · logits is that of a mean piece; it needs no logits.
        mean_piece = weight.mean(dim=0)  # (D,)
        summed = hidden.sum(dim=0)  # (D,)
        if differentiate:
            grad_hidden = torch.empty_like(hidden)
            grad_weight = (summed * (-smoothing / len(weight))).expand_as(weight).clone()
        table = weight.to(low)
        for start in range(0, len(hidden), CHUNK):
            rows = hidden[start : start + CHUNK]
            pieces = targets[start : start + CHUNK, None]  # (n, 1)
            logits = (rows.to(low) @ table.t()).to(exact)  # (n, D) @ (D, V) -> (n, V)
            right += logits.gather(1, pieces).sum()
            highest = logits.amax(dim=1, keepdim=True)
            exponentials = logits.sub_(highest).exp_()  # never above 1
            total = exponentials.sum(dim=1, keepdim=True)  # (n, 1)
            log_sums += (highest + total.log()).sum()
            if differentiate:
                # p - q without its even part, times `total`: that scales rows, not (n, V).
                gradient = exponentials.scatter_add_(1, pieces, (smoothing - 1) * total)
                gradient = gradient.to(low)
                grad_hidden[start : start + CHUNK] = gradient @ table / total
                grad_weight += gradient.t() @ (rows / total).to(low)
        if differentiate:
            ctx.save_for_backward(grad_hidden.sub_(smoothing * mean_piece), grad_weight)
        nll = log_sums - right
        loss = log_sums - (1 - smoothing) * right - smoothing * (summed @ mean_piece)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad_loss, grad_weight * grad_loss, None, None


def _product_type(weight: Tensor) -> torch.dtype:
    """The type matrices are multiplied in: under autocast not that of the weights."""
    device = weight.device.type
    automatic = torch.is_autocast_enabled(device)
    return torch.get_autocast_dtype(device) if automatic else weight.dtype
