"""AdamW for everything, or Muon for the matrices and AdamW for the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

# The polynomial of degree 5 of Jordan et al. 2024. It is steep at 0, so that small singular values
# grow within a few iterations. Large singular values stay between about 0.7 and 1.2, which is close
# enough to 1.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_MOMENTUM = 0.95


def build_optimizer(
    model: nn.Module, kind: str, *, weight_decay: float, fused: bool
) -> torch.optim.Optimizer:
    """Return the optimizer `kind`, "adamw" or "muon"; every update sets its learning rate first.

    AdamW has β₂ = 0.98, which follows the fast-changing gradients of embeddings better than 0.999
    (Vaswani et al. 2017, section 5.3). Only matrices decay: a bias or a norm has no scale to
    regularise, and the embedding of a rare piece would shrink between its uses.
    """
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_matrix = parameter.ndim == 2 and not name.startswith("embedding")
        (matrices if is_matrix else others).append(parameter)
    groups = [
        {"params": matrices, "weight_decay": weight_decay, "muon": kind == "muon"},
        {"params": others, "weight_decay": 0.0, "muon": False},
    ]
    optimizer = MuonAdamW if kind == "muon" else torch.optim.AdamW
    return optimizer(groups, lr=0.0, betas=(0.9, 0.98), fused=fused)


def orthogonalise(matrices: Tensor) -> Tensor:
    """Return each of `matrices` (n, rows, columns) with its singular values moved close to 1.

    Newton-Schulz iterations consist of matrix products; an SVD takes a hundred times as long. All
    matrices are computed together and in their own precision. ``torch.optim.Muon`` computes them
    one by one in bfloat16, which is ten times slower on a processor without bfloat16 arithmetic.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)  # now all are at most 1
    a, b, c = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class MuonAdamW(torch.optim.AdamW):
    """Muon for groups whose "muon" is true, AdamW for the others; one optimizer for Lightning.

    Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks") moves a
    matrix along its orthogonalised momentum. So every direction of the matrix changes at the same
    rate, even a direction that few tokens use. `lr` is the length of this step; it is far larger
    than the learning rate of AdamW.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one update; Lightning's `closure` computes the gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group["muon"]:
                self._muon(group)
        super().step()  # AdamW skips the matrices: their gradients are None now
        return loss

    def _muon(self, group: dict[str, Any]) -> None:
        by_shape = defaultdict(list)
        for matrix in group["params"]:
            if matrix.grad is not None:
                by_shape[matrix.shape].append(matrix)
        for (rows, columns), matrices in by_shape.items():
            steps = orthogonalise(torch.stack([self._direction(each) for each in matrices]))
            length = group["lr"] * max(1, rows / columns) ** 0.5
            for matrix, step in zip(matrices, steps.unbind(), strict=True):
                matrix.mul_(1 - group["lr"] * group["weight_decay"]).sub_(step, alpha=length)
                matrix.grad = None

    def _direction(self, matrix: Tensor) -> Tensor:
        """Return the Nesterov momentum: the newest gradient plus 0.95 times the momentum."""
        state = self.state[matrix]
        if not state:
            state["step"] = torch.zeros(())  # AdamW expects "step" when it loads a state
            state["momentum"] = torch.zeros_like(matrix)
        momentum = state["momentum"].mul_(_MOMENTUM).add_(matrix.grad)
        return matrix.grad.add(momentum, alpha=_MOMENTUM)
