"""Attention masks: the only module that makes them.

A mask is boolean, and **True in row i, column j means that position i may attend to position j**.
That is the convention of ``F.scaled_dot_product_attention``; the ``key_padding_mask`` of
``nn.MultiheadAttention`` means the opposite (True: ignore).

B batch, S source length, T target length.
"""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Return the mask that hides padding: ids (B, S) -> (B, 1, 1, S)."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(
    n_new: int, n_total: int | None = None, *, device: torch.device | None = None
) -> Tensor:
    """Return the mask that hides the future, shape (1, 1, n_new, n_total).

    The queries are the last `n_new` of `n_total` positions (by default all of them). So several
    new positions can be added to a cache: each attends to all earlier ones and to no later one.
    """
    n_total = n_new if n_total is None else n_total
    everything = torch.ones(n_new, n_total, dtype=torch.bool, device=device)
    return everything.tril(diagonal=n_total - n_new)[None, None]
