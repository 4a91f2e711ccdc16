"""Attention: the lesson's single head, and the multi-head attention that the model uses.

Both go through the same five stages: take the input; project it to queries, keys and values;
score every query against every key; turn the scores into weights; combine the values.

    context = softmax(queries · keysᵀ / √K) · values        (Vaswani et al. 2017, section 3.2)

The cost of the middle stages grows with (number of queries) x (number of keys): O(n²).

B batch, T number of queries, S number of keys (T = S in self-attention), D width, H heads,
K head dim.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Stages(NamedTuple):
    """What each stage of one attention produced, in order.

    Single head: queries (T, K), keys and values (S, K), scores and weights (T, S), context (T, K).
    Multi-head: the same with (B, H) in front.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    scores: Tensor
    weights: Tensor
    context: Tensor


def score_pairs(queries: Tensor, keys: Tensor) -> Tensor:
    """Stage 3: every query · every key, (..., T, K), (..., S, K) -> (..., T, S)."""
    return queries @ keys.transpose(-2, -1)  # (..., T, K) @ (..., K, S) -> (..., T, S)


def scores_to_weights(scores: Tensor, head_dim: int, mask: Tensor | None = None) -> Tensor:
    """Stage 4: scaled softmax over the keys, (..., T, S) -> (..., T, S); each row sums to 1.

    A dot product of K independent terms of variance 1 has variance K; dividing by √K brings it
    back to 1, whatever the head dim, so that the softmax does not start out saturated.

    Where `mask` is False the weight is exactly 0. A row that may attend to nothing is all zeros,
    as in ``F.scaled_dot_product_attention``; filling with -inf would make it NaN, and NaN leaks
    into the gradient of every other row.
    """
    scaled = scores / math.sqrt(head_dim)
    if mask is None:
        return scaled.softmax(dim=-1)
    lowest = torch.finfo(scaled.dtype).min  # -1e9 would overflow in float16
    return scaled.masked_fill(~mask, lowest).softmax(dim=-1) * mask


def combine_values(weights: Tensor, values: Tensor) -> Tensor:
    """Stage 5: the weighted mean of the values, (..., T, S), (..., S, K) -> (..., T, K)."""
    return weights @ values  # (..., T, S) @ (..., S, K) -> (..., T, K)


class SelfAttention(nn.Module):
    """One head of self-attention over one unbatched sequence: (n, d_in) -> (n, d_out).

    The three matrices are drawn uniformly from [0, 1) in the order query, key, value, as in
    Raschka, *Build a Large Language Model (From Scratch)*, chapter 3, whose worked numbers the
    tests reproduce.
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def stages(self, x: Tensor, mask: Tensor | None = None) -> Stages:
        """All five stages by name. Stage 1 is `x` itself, (n, d_in); `mask` is (n, n) or None."""
        queries = x @ self.W_query  # (n, d_in) @ (d_in, d_out) -> (n, d_out)
        keys = x @ self.W_key
        values = x @ self.W_value
        scores = score_pairs(queries, keys)  # (n, n)
        weights = scores_to_weights(scores, keys.shape[-1], mask)  # (n, n)
        context = combine_values(weights, values)  # (n, d_out)
        return Stages(queries, keys, values, scores, weights, context)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.stages(x, mask).context


class MultiHeadAttention(nn.Module):
    """H heads side by side, each of width K = d_out / H, concatenated and projected back.

    Serves as self-attention (queries, keys and values from the same tokens) and as
    cross-attention (queries from the target, keys and values from the encoder's memory).

    Two paths give the same answer. The fused one never builds the (T, S) matrices and is used
    for training and decoding; the explicit one shows every stage and is taken when `record` is
    given. There is no dropout on the weights: it would force PyTorch's CPU kernel off its fast
    path, and the published recipe for this model size sets it to 0 as well (Wu et al. 2021).

    Queries, keys and values are projected without bias, as in the lesson: a bias on the keys
    adds the same number to all scores of a query and cancels in the softmax.
    """

    def __init__(self, d_in: int, d_out: int, n_heads: int) -> None:
        super().__init__()
        if d_out % n_heads:
            raise ValueError(f"{n_heads} heads do not divide the width {d_out}")
        self.n_heads = n_heads
        self.head_dim = d_out // n_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """What can be attended to: (B, S, d_in) -> keys and values, each (B, H, S, K)."""
        return self._split_heads(self.W_key(memory)), self._split_heads(self.W_value(memory))

    def forward(
        self,
        x: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        record: list[Stages] | None = None,
    ) -> Tensor:
        """Let every position of `x` (B, T, d_in) attend; returns (B, T, d_out).

        `keys` and `values` (B, H, S, K) come from `keys_and_values`. `mask` is boolean,
        broadcastable to (B, H, T, S), True where attending is allowed; None allows everything.
        With a `record` the explicit path runs and appends its `Stages`.
        Raises TypeError on a mask that is not boolean: a 0/1 float mask would be *added* to the
        scores by the fused kernel instead of blocking anything.
        """
        if mask is not None and mask.dtype != torch.bool:
            raise TypeError(f"attention mask must be boolean (True: may attend), not {mask.dtype}")
        queries = self._split_heads(self.W_query(x))  # (B, H, T, K)
        if record is None:
            context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        else:
            scores = score_pairs(queries, keys)  # (B, H, T, K) @ (B, H, K, S) -> (B, H, T, S)
            weights = scores_to_weights(scores, self.head_dim, mask)
            context = combine_values(weights, values)  # (B, H, T, S) @ (B, H, S, K) -> (B, H, T, K)
            record.append(Stages(queries, keys, values, scores, weights, context))
        return self.out_proj(self._merge_heads(context))

    def _split_heads(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, K): cut the width into heads, move them beside the batch."""
        return x.unflatten(-1, (self.n_heads, self.head_dim)).transpose(1, 2)

    def _merge_heads(self, x: Tensor) -> Tensor:
        """(B, H, T, K) -> (B, T, D): the exact inverse; without the transpose heads would mix."""
        return x.transpose(1, 2).flatten(-2)
