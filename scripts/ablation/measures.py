"""Measurements without training: how far gradients reach, and what attention costs.

n tokens, D width.
"""

from __future__ import annotations

import time
from statistics import median

import torch
from torch import Tensor, nn

from translate.model.attention import MultiHeadAttention

WIDTH = 64
HEADS = 4
LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


def gradient_by_distance(length: int = 48, draws: int = 32) -> dict[str, list[float]]:
    """Return the norm of d(last output)/d(input) by distance, relative to distance 0.

    Distance 0 is the last token. Both layers have width D and PyTorch's default initial weights.
    The norm is the root mean square over several draws of weights and input.
    """
    found = {}
    for name in ("self-attention", "GRU"):
        squares = torch.zeros(length)
        for draw in range(draws):
            torch.manual_seed(draw)
            x = torch.randn(1, length, WIDTH, requires_grad=True)
            if name == "GRU":
                last = nn.GRU(WIDTH, WIDTH, batch_first=True)(x)[0][0, -1]  # (D,)
            else:
                last = MultiHeadAttention(WIDTH, HEADS)(x)[0, -1]
            # The mean over random projections estimates the squared norm of the whole Jacobian.
            for _ in range(8):
                (gradient,) = torch.autograd.grad(last @ torch.randn(WIDTH), x, retain_graph=True)
                squares += gradient[0].square().sum(-1)
        norms = squares.sqrt().flip(0)
        found[name] = (norms / norms[0]).tolist()
    return found


def attention_cost(
    lengths: tuple[int, ...] = LENGTHS, repeats: int = 5
) -> dict[str, dict[str, list[float]]]:
    """Return `seconds` and `mebibytes` of a self-attention over n tokens, forward and backward.

    The explicit stages build the (n, n) matrices; PyTorch's fused kernel does not. `mebibytes` is
    the size of all tensors that the forward pass keeps for the backward pass.
    """
    torch.manual_seed(0)
    attention = MultiHeadAttention(WIDTH, HEADS)
    found = {}
    for path, explicit_up_to in (("explicit stages", max(lengths)), ("fused kernel", 0)):
        attention.explicit_up_to = explicit_up_to
        costs = [_cost(attention, length, repeats) for length in lengths]
        seconds, mebibytes = (list(values) for values in zip(*costs, strict=True))
        found[path] = {"lengths": list(lengths), "seconds": seconds, "mebibytes": mebibytes}
    return found


def _cost(attention: MultiHeadAttention, length: int, repeats: int) -> tuple[float, float]:
    """Return the median seconds and the MiB of one forward and backward pass."""
    x = torch.randn(1, length, WIDTH)
    seconds = []
    for _ in range(repeats):
        sizes: dict[int, int] = {}  # bytes by address: several tensors may share their storage

        def keep(tensor: Tensor, sizes: dict[int, int] = sizes) -> Tensor:
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
            return tensor

        start = time.perf_counter()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            output = attention(x)
        output.sum().backward()
        seconds.append(time.perf_counter() - start)
    return median(seconds), sum(sizes.values()) / 2**20
