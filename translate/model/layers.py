"""The building blocks between attention and the whole model.

B batch, S source length, T target length, D d_model.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from translate.model.attention import MultiHeadAttention, Stages


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """Position codes (length, D): sines in the even columns, cosines in the odd ones.

    Column pair i turns with wavelength 2π · 10000^(2i/D) (Vaswani et al. 2017, section 3.5).
    Nothing to learn, so every position up to `length` works, also those never seen in training.
    """
    positions = torch.arange(length, dtype=torch.float32)[:, None]  # (length, 1)
    rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))  # (D / 2,)
    angles = positions * rates  # (length, 1) * (D / 2,) -> (length, D / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # (length, D)


class FeedForward(nn.Sequential):
    """The same two-layer network at every position: D -> d_ff -> D, ReLU between."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))


class Residual(nn.Module):
    """The residual pathway around one sublayer: x (B, T, D) -> (B, T, D).

    pre-norm   x + dropout(sublayer(norm(x)))     the path from loss to input is a plain sum
    post-norm  norm(x + dropout(sublayer(x)))     as in Vaswani et al. 2017; needs warmup

    Pre-norm is the default: its gradient reaches the lowest layer undamped, so training is
    stable at higher rates (Xiong et al. 2020, "On Layer Normalization in the Transformer").
    """

    def __init__(self, d_model: int, dropout: float, norm: str) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class LayerCache:
    """Keys and values of one decoder layer, so that no position is projected twice.

    The memory's are computed once; the target's room is allocated once, (B, H, T_max, K), and
    filled from the left as tokens come.
    """

    def __init__(self, memory_keys: Tensor, memory_values: Tensor, max_length: int) -> None:
        self.memory_keys, self.memory_values = memory_keys, memory_values  # (B, H, S, K)
        batch, heads, _, head_dim = memory_keys.shape
        self._keys = memory_keys.new_empty(batch, heads, max_length, head_dim)
        self._values = torch.empty_like(self._keys)
        self.length = 0

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add N new positions (B, H, N, K); returns all so far, two views (B, H, length, K)."""
        start, self.length = self.length, self.length + keys.shape[2]
        self._keys[:, :, start : self.length] = keys
        self._values[:, :, start : self.length] = values
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows of the batch only, in this order; `rows` (B',) are indices."""
        self.memory_keys, self.memory_values = self.memory_keys[rows], self.memory_values[rows]
        self._keys, self._values = self._keys[rows], self._values[rows]


class EncoderBlock(nn.Module):
    """Self-attention over the source, then feed-forward: (B, S, D) -> (B, S, D)."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float, norm: str) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, n_heads)
        self.attention_residual = Residual(d_model, dropout, norm)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_residual = Residual(d_model, dropout, norm)

    def forward(self, x: Tensor, src_mask: Tensor, record: list[Stages] | None = None) -> Tensor:
        def attend(y: Tensor) -> Tensor:
            return self.attention(y, *self.attention.keys_and_values(y), src_mask, record)

        x = self.attention_residual(x, attend)
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention, then feed-forward: (B, T, D) -> (B, T, D)."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float, norm: str) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, d_model, n_heads)
        self.self_residual = Residual(d_model, dropout, norm)
        self.cross_attention = MultiHeadAttention(d_model, d_model, n_heads)
        self.cross_residual = Residual(d_model, dropout, norm)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_residual = Residual(d_model, dropout, norm)

    def start_cache(self, memory: Tensor, max_length: int) -> LayerCache:
        return LayerCache(*self.cross_attention.keys_and_values(memory), max_length)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None,
        src_mask: Tensor,
        cache: LayerCache | None = None,
        self_record: list[Stages] | None = None,
        cross_record: list[Stages] | None = None,
    ) -> Tensor:
        """`memory` (B, S, D) is read only without a cache, which already holds its projections."""

        def attend_to_target(y: Tensor) -> Tensor:
            keys, values = self.self_attention.keys_and_values(y)
            if cache is not None:
                keys, values = cache.append(keys, values)
            return self.self_attention(y, keys, values, tgt_mask, self_record)

        def attend_to_memory(y: Tensor) -> Tensor:
            if cache is not None:
                keys, values = cache.memory_keys, cache.memory_values
            else:
                keys, values = self.cross_attention.keys_and_values(memory)
            return self.cross_attention(y, keys, values, src_mask, cross_record)

        x = self.self_residual(x, attend_to_target)
        x = self.cross_residual(x, attend_to_memory)
        return self.feed_forward_residual(x, self.feed_forward)
