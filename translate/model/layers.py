"""The building blocks between attention and the whole model.

B batch, S source length, T target length, D d_model.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

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


class _Randomness(threading.local):
    generator: torch.Generator | None = None  # PyTorch's own


_randomness = _Randomness()


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """Dropout masks of this thread come from a generator of its own: several threads drawing from
    one would share its numbers differently every time."""
    _randomness.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        _randomness.generator = None


class Dropout(nn.Module):
    """Zeroes a share of the elements while training; the rest grow to keep the expectation.

    The same as ``nn.Dropout`` with masks that cost a tenth: each element is decided by 8 random
    bits, drawn 64 at a time, instead of by a random number of its own. So the share is a
    multiple of 1/256, the nearest one to `p`; what is kept is scaled by exactly that.

    `onto` is a tensor of the shape of `x` to which the result is added in the same pass.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.of_256 = min(round(p * 256), 255)

    def forward(self, x: Tensor, onto: Tensor | None = None) -> Tensor:
        if not self.training or self.of_256 == 0:
            return x if onto is None else onto + x
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64, device=x.device)
        # All 64 bits, the sign's too.
        words.random_(torch.iinfo(torch.int64).min, None, generator=_randomness.generator)
        bits = words.view(torch.uint8)[: x.numel()].view(x.shape)
        kept = torch.ge(bits, self.of_256, out=torch.empty_like(x, requires_grad=False))
        scale = 256 / (256 - self.of_256)
        if onto is None:
            return x * kept.mul_(scale)
        return torch.addcmul(onto, x, kept, value=scale)


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
            return self.dropout(sublayer(self.norm(x)), onto=x)
        return self.norm(self.dropout(sublayer(x), onto=x))


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
        extend: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]] | None = None,
        self_record: list[Stages] | None = None,
        cross_record: list[Stages] | None = None,
    ) -> Tensor:
        """`memory` are its keys and its values for this layer's cross-attention, (B, H, S, K).

        `extend` is for positions on top of a cache: what they project to, and all keys and values
        so far (`LayerCache.extend`). Padding of the target needs no mask: it stands at the end,
        where causality hides it.
        """

        def attend_to_target(y: Tensor) -> Tensor:
            queries_keys_values = extend or self.self_attention.queries_keys_values
            return self.self_attention(*queries_keys_values(y), causal=True, record=self_record)

        def attend_to_memory(y: Tensor) -> Tensor:
            queries = self.cross_attention.queries(y)
            return self.cross_attention(queries, *memory, src_mask, record=cross_record)

        x = self.self_residual(x, attend_to_target)
        x = self.cross_residual(x, attend_to_memory)
        return self.feed_forward_residual(x, self.feed_forward)
