"""The building blocks between attention and the whole model.

B batch, S source length, T target length, D d_model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from translate.model.attention import MultiHeadAttention, Stages, project


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


class Dropout(nn.Module):
    """Zeroes a share of the elements while training; the rest grow to keep the expectation.

    The same as ``nn.Dropout`` with masks that cost a tenth: each element is decided by 8 random
    bits, drawn 64 at a time, instead of by a random number of its own. So the share is a
    multiple of 1/256, the nearest one to `p`; what is kept is scaled by exactly that.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.of_256 = min(round(p * 256), 255)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.of_256 == 0:
            return x
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64, device=x.device)
        words.random_(torch.iinfo(torch.int64).min, None)  # all 64 bits, the sign's too
        bits = words.view(torch.uint8)[: x.numel()].view(x.shape)
        kept = torch.ge(bits, self.of_256, out=torch.empty_like(x, requires_grad=False))
        return x * kept.mul_(256 / (256 - self.of_256))


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
        self.dropout = Dropout(dropout)
        self.norm_first = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class LayerCache:
    """Keys and values of one decoder layer, so that no position is projected twice.

    Written in place, so it is for decoding only: nothing can be differentiated through it.

    Args:
        weight: queries', keys' and values' matrix of the self-attention side by side.
        memory: keys and values of the source, (2, B, H, S, K), for the cross-attention.
        room: where those of the target go, (2, B, H, T_max, K), filled from the left.
    """

    def __init__(self, weight: Tensor, memory: Tensor, room: Tensor) -> None:
        self.weight = weight
        self.memory = memory
        self.room = room
        self.length = 0

    def extend(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project N new positions (B, N, D); returns their queries (B, H, N, K), and the keys and
        the values of all positions so far, views (B, H, length, K)."""
        _, _, n_heads, _, head_dim = self.room.shape
        projected = project(x, self.weight, n_heads, head_dim)  # (3, B, H, N, K)
        start, self.length = self.length, self.length + x.shape[1]
        self.room[:, :, :, start : self.length] = projected[1:]
        keys, values = self.room[:, :, :, : self.length]
        return projected[0], keys, values


class DecoderCache:
    """One `LayerCache` a decoder layer, all of the same length.

    Args:
        weights: one a layer, see `LayerCache`.
        memory: keys and values of the source in every layer, (layers, 2, B, H, S, K).
        max_length: T_max; the room for that many target positions is allocated once.
    """

    def __init__(self, weights: Sequence[Tensor], memory: Tensor, max_length: int) -> None:
        shape = *memory.shape[:4], max_length, memory.shape[5]
        self._memory, self._room = memory, memory.new_empty(shape)
        self.layers = [
            LayerCache(*layer) for layer in zip(weights, memory, self._room, strict=True)
        ]

    @property
    def length(self) -> int:
        """Target positions decoded so far."""
        return self.layers[0].length

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows of the batch, in this order. Only rows that move are copied."""
        places = [place for place, row in enumerate(rows) if row != place]
        if places:
            moved = [rows[place] for place in places]
            for stored in (self._memory, self._room[..., : self.length, :]):
                stored[:, :, places] = stored[:, :, moved]
        for i, layer in enumerate(self.layers):
            layer.memory = self._memory[i, :, : len(rows)]
            layer.room = self._room[i, :, : len(rows)]


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
            projected = self.attention.queries_keys_values(y)
            return self.attention(*projected, src_mask, record=record)

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

    def forward(
        self,
        x: Tensor,
        memory: Sequence[Tensor],
        src_mask: Tensor | None,
        cache: LayerCache | None = None,
        self_record: list[Stages] | None = None,
        cross_record: list[Stages] | None = None,
    ) -> Tensor:
        """`memory` are its keys and its values for this layer's cross-attention, (B, H, S, K).

        Padding of the target needs no mask: it stands at the end, where causality hides it.
        """

        def attend_to_target(y: Tensor) -> Tensor:
            project_all = cache.extend if cache else self.self_attention.queries_keys_values
            return self.self_attention(*project_all(y), causal=True, record=self_record)

        def attend_to_memory(y: Tensor) -> Tensor:
            queries = self.cross_attention.queries(y)
            return self.cross_attention(queries, *memory, src_mask, record=cross_record)

        x = self.self_residual(x, attend_to_target)
        x = self.cross_residual(x, attend_to_memory)
        return self.feed_forward_residual(x, self.feed_forward)
