"""What can be measured without training: how far gradients reach, and what attention costs.

n tokens, D width.
"""

from __future__ import annotations

import time
from statistics import median

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from translate.model.attention import MultiHeadAttention

WIDTH = 64
HEADS = 4


def gradient_by_distance(length: int = 48, draws: int = 32) -> dict[str, list[float]]:
    """The norm of d(last output)/d(input) by distance, over that at distance 0; 0 is the last.

    Of untrained layers of the same width, the root mean square of several draws. The lesson: in
    attention every token is one step from every other one; in a recurrent net as many as lie
    between.
    """
    found: dict[str, Tensor] = {}
    for name in ("self-attention", "GRU"):
        norms = torch.zeros(length)
        for draw in range(draws):
            torch.manual_seed(draw)
            x = torch.randn(1, length, WIDTH, requires_grad=True)
            if name == "GRU":
                last = nn.GRU(WIDTH, WIDTH, batch_first=True)(x)[0][0, -1]
            else:
                attention = MultiHeadAttention(WIDTH, WIDTH, HEADS)
                last = attention(*attention.queries_keys_values(x), causal=True)[0, -1]
            # The squared norm of the whole Jacobian, by random projections of the output.
            for _ in range(8):
                (gradient,) = torch.autograd.grad(last @ torch.randn(WIDTH), x, retain_graph=True)
                norms += gradient[0].square().sum(-1)
        found[name] = norms.sqrt().flip(0)  # by distance from the last
    return {name: (norms / norms[0]).tolist() for name, norms in found.items()}


def attention_cost(
    lengths: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096), repeats: int = 5
) -> dict[str, dict[str, list[float]]]:
    """Seconds and MiB of one self-attention over n tokens, forward and backward.

    "explicit" goes through the five stages and builds the (n, n) matrices, "fused" is PyTorch's
    kernel, which never does. Memory is that of the tensors that the backward pass needs.
    """
    torch.manual_seed(0)
    attention = MultiHeadAttention(WIDTH, WIDTH, HEADS)
    found: dict[str, dict[str, list[float]]] = {}
    for path in ("explicit", "fused"):
        seconds, mebibytes = [], []
        for length in lengths:
            x = torch.randn(1, length, WIDTH)
            times = []
            for _ in range(repeats):
                kept: dict[int, int] = {}

                def keep(tensor: Tensor, kept: dict[int, int] = kept) -> Tensor:
                    storage = tensor.untyped_storage()
                    kept[storage.data_ptr()] = storage.nbytes()
                    return tensor

                start = time.perf_counter()
                with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                    queries, keys, values = attention.queries_keys_values(x)
                    if path == "explicit":
                        output = attention(queries, keys, values, record=[])
                    else:
                        context = F.scaled_dot_product_attention(queries, keys, values)
                        output = attention.out_proj(attention._merge_heads(context))
                output.sum().backward()
                times.append(time.perf_counter() - start)
            seconds.append(median(times))
            mebibytes.append(sum(kept.values()) / 2**20)
        found[path] = {
            "lengths": list(lengths),
            "seconds": seconds,
            "mebibytes": mebibytes,
            "exponents": [_exponent(lengths, seconds), _exponent(lengths, mebibytes)],
        }
    return found


def _exponent(lengths: tuple[int, ...], values: list[float], last: int = 3) -> float:
    """p of the fit value = c · n^p to the longest lengths."""
    return float(numpy.polyfit(numpy.log(lengths[-last:]), numpy.log(values[-last:]), 1)[0])
