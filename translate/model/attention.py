"""Attention: the lesson's single head, and the multi-head attention of the model.

Both go through the same five stages:

    1 take the input       x
    2 project              queries = x · W_query, keys = x · W_key, values = x · W_value
    3 score every pair     scores  = queries · keysᵀ
    4 scores to weights    weights = softmax(scores / √d_k), row by row
    5 combine the values   context = weights · values          (Vaswani et al. 2017, section 3.2)

Stages 3 to 5 cost (number of queries) x (number of keys): O(n²).

B batch, T queries, S keys (T = S in self-attention), D d_model, H heads, d_k head width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Stages(NamedTuple):
    """The tensors that the stages of one attention produced, in order.

    Multi-head: x (B, T, D), then (B, H, ...). Single head: x (n, d_in), n x n scores and weights.
    """

    x: Tensor
    queries: Tensor
    keys: Tensor
    values: Tensor
    scores: Tensor
    weights: Tensor
    context: Tensor


@dataclass
class AttentionRecord:
    """The stages of every attention in one forward pass, one entry per layer."""

    encoder: list[Stages] = field(default_factory=list)  # weights (B, H, S, S)
    decoder: list[Stages] = field(default_factory=list)  # weights (B, H, T, T)
    cross: list[Stages] = field(default_factory=list)  # weights (B, H, T, S)


def scores_to_weights(scores: Tensor, scale: float, mask: Tensor | None = None) -> Tensor:
    """Stage 4: softmax(scores · scale) over the keys, (..., T, S) -> (..., T, S).

    The dot product of d_k independent terms of variance 1 has variance d_k. Scaling by 1/√d_k
    brings the variance back to 1, so that the softmax does not start out saturated.

    Where `mask` is False the weight is exactly 0. A row that may attend to nothing is all zeros,
    as in ``F.scaled_dot_product_attention``; with -inf the row and all gradients would be NaN.
    """
    scaled = scores * scale
    if mask is None:
        return scaled.softmax(dim=-1)
    lowest = torch.finfo(scaled.dtype).min  # -1e9 would overflow in float16
    weights = torch.where(mask, scaled, lowest).softmax(dim=-1)
    return weights * mask.any(dim=-1, keepdim=True).to(weights.dtype)


class SelfAttention(nn.Module):
    """One head of self-attention over one unbatched sequence: (n, d_in) -> (n, d_out).

    The matrices are drawn uniformly from [0, 1) in the order query, key, value, as in Raschka,
    *Build a Large Language Model (From Scratch)*, chapter 3; the tests check its numbers.
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def stages(self, x: Tensor, mask: Tensor | None = None) -> Stages:
        """Return the results of all stages; x (n, d_in), `mask` (n, n) or None."""
        queries = x @ self.W_query  # (n, d_in) @ (d_in, d_out) -> (n, d_out)
        keys = x @ self.W_key
        values = x @ self.W_value
        scores = queries @ keys.T  # (n, d_out) @ (d_out, n) -> (n, n)
        weights = scores_to_weights(scores, 1 / math.sqrt(keys.shape[-1]), mask)
        context = weights @ values  # (n, n) @ (n, d_out) -> (n, d_out)
        return Stages(x, queries, keys, values, scores, weights, context)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the context (n, d_out) for x (n, d_in)."""
        return self.stages(x, mask).context


class MultiHeadAttention(nn.Module):
    """H heads side by side, each of width d_k = D / H, concatenated and projected back.

    Self-attention takes queries, keys and values from the same tokens; cross-attention takes
    queries from the target, keys and values from the encoder output.

    The projections have no bias, as in the lesson: a bias on the keys adds the same number to all
    scores of a query and cancels in the softmax. The weights have no dropout, which the fused
    kernel does not support on its fast path; Wu et al. 2021 also use none for this model size.

    Raises:
        ValueError: `n_heads` does not divide `d_model`.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"n_heads {n_heads} does not divide d_model {d_model}")
        self.n_heads = n_heads
        self.scale = 1 / math.sqrt(d_model // n_heads)
        self.explicit_up_to = 64  # keys; on a CPU the fused kernel is slow with few keys (bfloat16)
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, d_model, bias=False)
        self.W_value = nn.Linear(d_model, d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        record: list[Stages] | None = None,
    ) -> Tensor:
        """Let x (B, T, D) attend to memory (B, S, D), by default to itself; return (B, T, D).

        The explicit stages give the same result as the fused kernel, which stores no (T, S) matrix.

        Args:
            x: input of the query projection.
            memory: input of the key and value projections.
            mask: boolean, broadcastable to (B, H, T, S), True: may attend; None allows everything.
            record: list to which the `Stages` of this attention are appended.

        Raises:
            TypeError: the mask is not boolean, for example 0/1 floats as other programs use.
        """
        if mask is not None and mask.dtype != torch.bool:
            raise TypeError(f"attention mask must be boolean (True: may attend), not {mask.dtype}")
        memory = x if memory is None else memory
        queries = self.split_heads(self.W_query(x))  # (B, H, T, d_k)
        keys = self.split_heads(self.W_key(memory))  # (B, H, S, d_k)
        values = self.split_heads(self.W_value(memory))
        if record is None and (x.device.type != "cpu" or keys.shape[2] > self.explicit_up_to):
            context = F.scaled_dot_product_attention(queries, keys, values, mask, scale=self.scale)
        else:
            scores = queries @ keys.mT  # (B, H, T, d_k) @ (B, H, d_k, S) -> (B, H, T, S)
            weights = scores_to_weights(scores, self.scale, mask)
            context = weights @ values  # (B, H, T, S) @ (B, H, S, d_k) -> (B, H, T, d_k)
            if record is not None:
                record.append(Stages(x, queries, keys, values, scores, weights, context))
        return self.out_proj(self.merge_heads(context))

    def split_heads(self, projected: Tensor) -> Tensor:
        """Split the last dimension into heads: (B, T, D) -> (B, H, T, d_k)."""
        return projected.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def merge_heads(self, context: Tensor) -> Tensor:
        """Undo `split_heads`: (B, H, T, d_k) -> (B, T, D). The transpose keeps the heads apart."""
        return context.transpose(1, 2).flatten(-2)
