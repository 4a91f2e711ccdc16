"""Decoding with a memory: keys and values that later positions need again are kept.

Written in place, so it is for inference only: nothing can be differentiated through it.

B batch, S source length, N new target positions, T_max most target positions, D d_model, H heads,
K head dim. In a beam search R hypotheses of B sources, at most W of one source; otherwise R = B.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from translate.model.attention import project, side_by_side
from translate.model.layers import DecoderBlock, Residual


class Seats(NamedTuple):
    """Where the hypotheses of one source sit side by side, W seats a source.

    Side by side they are W positions that look at the same memory, which so exists once a source.
    """

    rows: Tensor  # (B, W), who sits where; in an empty seat anyone
    places: Tensor  # (R,), the seat of each row, counted through all sources


class LayerCache:
    """Keys and values of one decoder layer, so that no position is projected twice.

    Args:
        block: the layer.
        memory: keys and values of the source for its cross-attention, (2, B, H, S, K).
        room: where those of the target go, (2, T_max, R, H, K), filled from the front: what a step
            adds lies in one piece.
    """

    def __init__(self, block: DecoderBlock, memory: Tensor, room: Tensor) -> None:
        self.block = block
        self.memory = memory
        self.room = room
        self.length = 0
        attention = block.self_attention
        self._weight = side_by_side(attention.W_query, attention.W_key, attention.W_value)

    def extend(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project N new positions (B, N, D); returns their queries (B, H, N, K), and the keys and
        the values of all positions so far, views (B, H, length, K)."""
        *_, n_heads, head_dim = self.room.shape
        queries, *keys_values = project(x, self._weight, n_heads, head_dim)
        start, self.length = self.length, self.length + x.shape[1]
        for room, new in zip(self.room, keys_values, strict=True):  # (T_max, B, H, K), (B, H, N, K)
            room[start : self.length] = new.permute(2, 0, 1, 3)
        keys, values = self._so_far()
        return queries, keys, values

    def _so_far(self) -> Tensor:
        """Keys and values of all positions so far: a view (2, R, H, length, K)."""
        return self.room[:, : self.length].permute(0, 2, 3, 1, 4)

    def step(self, x: Tensor, src_mask: Tensor | None, seats: Seats | None = None) -> Tensor:
        """One new position of each row: (R, D) -> (R, D).

        The operations of `DecoderBlock.forward`, written in a row: for a single position calls of
        modules cost as much as the arithmetic.
        """
        block, (_, _, rows, n_heads, head_dim) = self.block, self.room.shape

        y = _before(block.self_residual, x)
        projected = F.linear(y, self._weight).view(rows, 3, n_heads, head_dim)
        self.room[:, self.length] = projected[:, 1:].transpose(0, 1)
        self.length += 1
        keys, values = self._so_far()
        queries = projected[:, 0].unsqueeze(2)
        context = F.scaled_dot_product_attention(queries, keys, values)  # (R, H, 1, K)
        out = block.self_attention.out_proj
        x = _after(block.self_residual, x, F.linear(context.flatten(1), out.weight, out.bias))

        y = _before(block.cross_residual, x)
        attention, (keys, values) = block.cross_attention, self.memory
        queries = F.linear(y, attention.W_query.weight).view(rows, n_heads, 1, head_dim)
        if seats is not None:  # (R, H, 1, K) -> (B, H, W, K)
            queries = queries[seats.rows].squeeze(3).transpose(1, 2)
        context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=src_mask)
        if seats is not None:  # and back
            context = context.transpose(1, 2).flatten(0, 1)[seats.places]
        out = attention.out_proj
        x = _after(block.cross_residual, x, F.linear(context.flatten(1), out.weight, out.bias))

        y = _before(block.feed_forward_residual, x)
        first, _, last = block.feed_forward
        y = F.linear(y, first.weight, first.bias).relu_()
        return _after(block.feed_forward_residual, x, F.linear(y, last.weight, last.bias))


def _before(residual: Residual, x: Tensor) -> Tensor:
    return _normalised(residual, x) if residual.norm_first else x


def _after(residual: Residual, x: Tensor, branch: Tensor) -> Tensor:
    return branch.add_(x) if residual.norm_first else _normalised(residual, branch.add_(x))


def _normalised(residual: Residual, x: Tensor) -> Tensor:
    norm = residual.norm
    return torch.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


class DecoderCache:
    """One `LayerCache` a decoder layer, all of the same length.

    Args:
        blocks: the layers.
        memory: keys and values of the source in every layer, (layers, 2, B, H, S, K).
        max_length: T_max; the room for that many target positions is allocated once.
        beam: W, for at most so many hypotheses a source. It starts with one.
    """

    def __init__(
        self, blocks: Sequence[DecoderBlock], memory: Tensor, max_length: int, beam: int = 1
    ) -> None:
        layers, two, sources, n_heads, _, head_dim = memory.shape
        self._memory = memory
        self._room = memory.new_empty(layers, two, max_length, sources * beam, n_heads, head_dim)
        self._seats: Seats | None = None  # None: row i is the one hypothesis of source i
        self.layers = [
            LayerCache(block, memory[i], self._room[i, :, :, :sources])
            for i, block in enumerate(blocks)
        ]

    @property
    def length(self) -> int:
        """Target positions decoded so far."""
        return self.layers[0].length

    def step(self, x: Tensor, src_mask: Tensor | None) -> Tensor:
        """One new position of each row through all layers: (R, D) -> (R, D)."""
        for layer in self.layers:
            x = layer.step(x, src_mask, self._seats)
        return x

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows of the batch, in this order. Only rows that move are copied."""
        self.regroup(rows, rows)

    def regroup(
        self, rows: Sequence[int], sources: Sequence[int], seats: Seats | None = None
    ) -> None:
        """Row i goes on where `rows[i]` was, source i is what `sources[i]` was; only those that
        move are copied. A row may occur several times: hypotheses that part."""
        _move(self._room[:, :, : self.length], 3, rows)
        _move(self._memory, 2, sources)
        self._seats = seats
        for i, layer in enumerate(self.layers):
            layer.memory = self._memory[i, :, : len(sources)]
            layer.room = self._room[i, :, :, : len(rows)]


def _move(stored: Tensor, dim: int, rows: Sequence[int]) -> None:
    """Row i of dimension `dim` becomes what `rows[i]` was."""
    places = [place for place, row in enumerate(rows) if row != place]
    if places:
        moved = [rows[place] for place in places]
        # Half the time of assigning by a list of indices.
        where, whence = torch.tensor([places, moved], device=stored.device)
        stored.index_copy_(dim, where, stored.index_select(dim, whence))
