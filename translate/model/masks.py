"""The only place where masks are made.

A mask is boolean, and **True in row i, column j means that position i may attend to position j**.
That is the convention of ``F.scaled_dot_product_attention``; the ``key_padding_mask`` of
``nn.MultiheadAttention`` means the opposite (True: ignore).

B batch, S source length, T target length, N new target positions on top of a cache.
"""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Every position may look at every real token: (B, S) ids -> (B, 1, 1, S)."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(
    n_new: int, n_total: int | None = None, *, device: torch.device | None = None
) -> Tensor:
    """No position may look ahead: (1, 1, N, T), for the last N of T positions (default all).

    Row i is position T - N + i. Aligning the triangle with the *last* positions is what makes
    several new tokens on top of a cache see all of the past and none of their own future.
    """
    n_total = n_new if n_total is None else n_total
    everything = torch.ones(n_new, n_total, dtype=torch.bool, device=device)
    return everything.tril(diagonal=n_total - n_new)[None, None]
