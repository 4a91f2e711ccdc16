"""Muon for the matrices, AdamW for everything else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

# The quintic of Jordan et al. 2024: steep at 0, so that small singular values rise within a few
# rounds; it then swings between about 0.7 and 1.2 and never settles at 1, which does no harm.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ROUNDS = 5


def orthogonalise(matrices: Tensor) -> Tensor:
    """Each of `matrices` (n, rows, columns) with its singular values moved close to 1.

    Newton-Schulz iterations: products only, where an SVD would take a hundred times as long. All
    matrices at once, in the precision they come in: ``torch.optim.Muon`` takes them one by one
    in bfloat16, which a processor without such arithmetic does ten times more slowly.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)  # no singular value above 1
    a, b, c = _COEFFICIENTS
    for _ in range(_ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class MuonAdamW(torch.optim.AdamW):
    """Muon for groups whose "muon" is true, AdamW for the others; one optimizer for Lightning.

    Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks") steps by
    the orthogonalised momentum: every direction of a matrix moves at the same rate, also those
    that few tokens ask for. Its `lr` is the length of that step, so it is far larger than AdamW's.
    """

    def __init__(
        self, groups: Iterable[dict[str, Any]], *, momentum: float = 0.95, **adamw: Any
    ) -> None:
        super().__init__(groups, **adamw)
        self.momentum = momentum

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update; Lightning's `closure` computes the gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group.get("muon"):
                self._muon(group)
        super().step()  # AdamW skips what has no gradient any more
        return loss

    def _muon(self, group: dict[str, Any]) -> None:
        by_shape = defaultdict(list)
        for matrix in group["params"]:
            if matrix.grad is not None:
                by_shape[matrix.shape].append(matrix)
        for (rows, columns), matrices in by_shape.items():
            gradients = [matrix.grad for matrix in matrices]
            momenta = [self._momentum_of(matrix) for matrix in matrices]
            torch._foreach_mul_(momenta, self.momentum)
            torch._foreach_add_(momenta, gradients)
            # Nesterov: look ahead along the momentum, and count the newest gradient once more.
            torch._foreach_add_(gradients, momenta, alpha=self.momentum)
            steps = orthogonalise(torch.stack(gradients)).unbind()
            torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
            length = group["lr"] * max(1, rows / columns) ** 0.5
            torch._foreach_add_(matrices, steps, alpha=-length)
            for matrix in matrices:
                matrix.grad = None

    def _momentum_of(self, matrix: Tensor) -> Tensor:
        state = self.state[matrix]
        if not state:
            state["step"] = torch.zeros(())  # AdamW looks for it when a state is loaded
            state["momentum"] = torch.zeros_like(matrix)
        return state["momentum"]
