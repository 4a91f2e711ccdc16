"""The building blocks between attention and the whole model.

B batch, S source length, T target length, D d_model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from translate.model.attention import AttentionRecord, MultiHeadAttention
from translate.model.dropout import Dropout


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """Return position codes (length, D): sines in the even columns, cosines in the odd ones.

    Column pair i has wavelength 2π · 10000^(2i/D) (Vaswani et al. 2017, section 3.5). Positions
    never seen in training also have a code, because the codes are not learned.
    """
    positions = torch.arange(length, dtype=torch.float32)[:, None]  # (length, 1)
    rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))  # (D / 2,)
    angles = positions * rates  # (length, 1) * (D / 2,) -> (length, D / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # (length, D)


class FeedForward(nn.Sequential):
    """The same two-layer network at every position: D -> d_ff -> D, with ReLU between."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))


class Residual(nn.Module):
    """A sublayer with its residual connection, LayerNorm and dropout: (B, T, D) -> (B, T, D).

    pre-norm   x + dropout(sublayer(norm(x)))     the path from loss to input is a plain sum
    post-norm  norm(x + dropout(sublayer(x)))     as in Vaswani et al. 2017; needs warmup

    Pre-norm is the default: it is stable at higher learning rates (Xiong et al. 2020). `forward`
    passes its other arguments to the sublayer.
    """

    sublayer: Any  # MultiHeadAttention or FeedForward

    def __init__(self, sublayer: nn.Module, d_model: int, dropout: float, norm: str) -> None:
        super().__init__()
        self.sublayer = sublayer
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.norm_first = norm == "pre"

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.around(x, lambda y: self.sublayer(y, *args, **kwargs))

    def around(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the residual connection around `sublayer`, any function (B, T, D) -> (B, T, D)."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderBlock(nn.Module):
    """Self-attention over the source, then feed-forward: (B, S, D) -> (B, S, D)."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float, norm: str) -> None:
        super().__init__()
        around = (d_model, dropout, norm)
        self.self_attention = Residual(MultiHeadAttention(d_model, n_heads), *around)
        self.feed_forward = Residual(FeedForward(d_model, d_ff), *around)

    def forward(self, x: Tensor, src_mask: Tensor, record: AttentionRecord | None = None) -> Tensor:
        """Return the output (B, S, D) for x (B, S, D) and src_mask (B, 1, 1, S)."""
        x = self.self_attention(x, mask=src_mask, record=record and record.encoder)
        return self.feed_forward(x)


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention, then feed-forward: (B, T, D) -> (B, T, D)."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float, norm: str) -> None:
        super().__init__()
        around = (d_model, dropout, norm)
        self.self_attention = Residual(MultiHeadAttention(d_model, n_heads), *around)
        self.cross_attention = Residual(MultiHeadAttention(d_model, n_heads), *around)
        self.feed_forward = Residual(FeedForward(d_model, d_ff), *around)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        src_mask: Tensor | None,
        tgt_mask: Tensor,
        record: AttentionRecord | None = None,
    ) -> Tensor:
        """Take x (B, T, D), memory (B, S, D), src_mask (B, 1, 1, S), tgt_mask (1, 1, T, T)."""
        x = self.self_attention(x, mask=tgt_mask, record=record and record.decoder)
        x = self.cross_attention(x, memory, src_mask, record=record and record.cross)
        return self.feed_forward(x)
