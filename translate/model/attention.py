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

from translate.model.masks import causal_mask


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
    weights = torch.where(mask, scaled, lowest).softmax(dim=-1)
    return weights * mask.any(dim=-1, keepdim=True).to(weights.dtype)


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


# The explicit path is the faster one on a CPU for several queries over at most so many keys. The
# scores, 64 numbers a query, then take little more room than queries, keys and values of width 32.
EXPLICIT_UP_TO = 64


def side_by_side(*layers: nn.Linear) -> Tensor:
    """n matrices as one (n · H · K, d_in): one product with it is faster than n products."""
    return torch.cat([layer.weight for layer in layers])


def project(x: Tensor, weight: Tensor, n_heads: int, head_dim: int) -> tuple[Tensor, ...]:
    """Stage 2 for n matrices side by side: x (B, T, d_in) -> n times (B, H, T, K)."""
    projected = F.linear(x, weight)  # (B, T, d_in) @ (d_in, n · H · K) -> (B, T, n · H · K)
    split = projected.unflatten(-1, (-1, n_heads, head_dim)).unbind(2)  # n times (B, T, H, K)
    return tuple(each.transpose(1, 2).contiguous() for each in split)


class MultiHeadAttention(nn.Module):
    """H heads side by side, each of width K = d_out / H, concatenated and projected back.

    Serves as self-attention (queries, keys and values from the same tokens) and as
    cross-attention (queries from the target, keys and values from the encoder's memory).

    Two paths give the same answer. The explicit one goes through the stages by name; PyTorch's
    fused kernel never builds the (T, S) matrices, so its memory grows with the length and not
    with its square. On a CPU the explicit one is the faster up to `EXPLICIT_UP_TO` keys, which
    most sentences are. There is no dropout on the weights: the fused kernel would leave its fast
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

    def queries_keys_values(self, x: Tensor) -> tuple[Tensor, ...]:
        """All three from the same tokens: x (B, T, d_in) -> three times (B, H, T, K)."""
        weight = side_by_side(self.W_query, self.W_key, self.W_value)
        return project(x, weight, self.n_heads, self.head_dim)

    def queries(self, x: Tensor) -> Tensor:
        """From the tokens that look elsewhere: x (B, T, d_in) -> (B, H, T, K)."""
        return project(x, self.W_query.weight, self.n_heads, self.head_dim)[0]

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        record: list[Stages] | None = None,
    ) -> Tensor:
        """Let every query attend: (B, H, T, K), (B, H, S, K) twice -> (B, T, d_out).

        `mask` is boolean, broadcastable to (B, H, T, S), True where attending is allowed; None
        allows everything. `causal` forbids looking ahead: the queries are those of the last T of
        S positions. With a `record` the explicit path runs and appends its `Stages`.
        Raises TypeError on a mask that is not boolean: a 0/1 float mask would be *added* to the
        scores by the fused kernel instead of blocking anything.
        """
        if mask is not None and mask.dtype != torch.bool:
            raise TypeError(f"attention mask must be boolean (True: may attend), not {mask.dtype}")
        n_new, n_total = queries.shape[-2], keys.shape[-2]
        explicit = record is not None or self._explicit_is_faster(queries, keys)
        # The fused kernel needs no (T, S) triangle, but it draws it from the top left corner,
        # which is wrong as soon as there are more keys than queries.
        kernel_is_causal = causal and not explicit and mask is None and n_new == n_total
        if causal and n_new > 1 and not kernel_is_causal:
            triangle = causal_mask(n_new, n_total, device=queries.device)
            mask = triangle if mask is None else mask & triangle
        if explicit:
            scores = score_pairs(queries, keys)  # (B, H, T, K) @ (B, H, K, S) -> (B, H, T, S)
            weights = scores_to_weights(scores, self.head_dim, mask)
            context = combine_values(weights, values)  # (B, H, T, S) @ (B, H, S, K) -> (B, H, T, K)
            if record is not None:
                record.append(Stages(queries, keys, values, scores, weights, context))
        else:
            context = F.scaled_dot_product_attention(
                queries, keys, values, attn_mask=mask, is_causal=kernel_is_causal
            )
        return self.out_proj(self._merge_heads(context))

    @staticmethod
    def _explicit_is_faster(queries: Tensor, keys: Tensor) -> bool:
        on_cpu = queries.device.type == "cpu"
        return on_cpu and queries.shape[-2] > 1 and keys.shape[-2] <= EXPLICIT_UP_TO

    def _merge_heads(self, context: Tensor) -> Tensor:
        """(B, H, T, K) -> (B, T, D): the exact inverse; without the transpose heads would mix."""
        return context.transpose(1, 2).flatten(-2)
