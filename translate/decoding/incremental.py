"""Decode one piece at a time: `CachedDecoder`, and `PlainDecoder`, which tests compare it with.

A decoder reads the newest pieces of each hypothesis and returns the logits of the next piece. Both
give the same logits. The plain one reads the whole prefix again at each step; the cached one keeps
the keys and values of earlier positions and computes the new positions only. For inference only:
the cache is written in place, so nothing can be differentiated through it.

R hypotheses (rows), B sources, S source length, N new target positions, T_max longest target,
D d_model, H heads, d_k head width, V vocabulary. In greedy search R = B; in beam search each source
has up to W hypotheses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from translate.model.attention import AttentionRecord
from translate.model.layers import DecoderBlock
from translate.model.masks import causal_mask
from translate.model.transformer import Transformer


class PlainDecoder:
    """A decoder that reads the whole prefix at each step and records the attention of that step.

    Args:
        model: in evaluation mode.
        src: (R, S), one row per hypothesis.
    """

    def __init__(self, model: Transformer, src: Tensor) -> None:
        self.model, self.src = model, src
        self.prefix = src.new_empty(len(src), 0)  # (R, T), the pieces read so far
        self.record = AttentionRecord()

    @torch.inference_mode()
    def step(self, pieces: Sequence[Sequence[int]]) -> Tensor:
        """Read the N newest pieces of each hypothesis, (R, N); return the logits (R, V) of the
        piece that follows."""
        self.prefix = torch.cat((self.prefix, self.prefix.new_tensor(pieces)), dim=1)
        self.record = AttentionRecord()
        memory, src_mask = self.model.encode(self.src, self.record)
        hidden = self.model.decode(self.prefix, memory, src_mask, self.record)
        return self.model.logits(hidden[:, -1])

    def keep(self, rows: Sequence[int]) -> None:
        """Continue with these rows only, in this order; row i is the hypothesis of source i."""
        self.src, self.prefix = self.src[list(rows)], self.prefix[list(rows)]


class Slots(NamedTuple):
    """The hypotheses of each source, side by side: W slots per source.

    The cross-attention treats these slots as W positions that attend to the same memory, so the
    memory is stored once per source and not once per hypothesis.
    """

    rows: Tensor  # (B, W), the row in each slot; an unused slot holds an arbitrary row
    slot_of_row: Tensor  # (R,), source * W + slot


class CachedBlock:
    """One decoder block with the keys and values that later positions need again.

    Args:
        block: the layer, in evaluation mode.
        memory: keys and values of the source for the cross-attention, (2, B, H, S, d_k).
        cache: room for keys and values of the target, (2, T_max, R, H, d_k), filled from the
            front, so the positions that one step adds are contiguous.
    """

    def __init__(self, block: DecoderBlock, memory: Tensor, cache: Tensor) -> None:
        self.memory, self.cache = memory, cache
        self.residuals = (block.self_attention, block.cross_attention, block.feed_forward)
        to_target, to_memory = block.self_attention.sublayer, block.cross_attention.sublayer
        self.scales = (to_target.scale, to_memory.scale)
        # For a single position, calling an operation takes as long as computing it. So this uses
        # one product instead of three, and functions instead of modules.
        matrices = (to_target.W_query, to_target.W_key, to_target.W_value)
        self.target_projection = torch.cat([matrix.weight for matrix in matrices])  # (3 D, D)
        self.memory_projection = to_memory.W_query.weight
        self.outputs = [(a.out_proj.weight, a.out_proj.bias) for a in (to_target, to_memory)]
        widen, _, narrow = block.feed_forward.sublayer
        self.feed_forward = ((widen.weight, widen.bias), (narrow.weight, narrow.bias))

    def step(self, x: Tensor, start: int, src_mask: Tensor | None, slots: Slots | None) -> Tensor:
        """Compute N positions from `start` on, as `DecoderBlock` does: (R, N, D) -> (R, N, D)."""
        rows, n_new, _ = x.shape
        *_, n_heads, d_k = self.cache.shape
        end = start + n_new

        def attend_to_target(y: Tensor) -> Tensor:
            projected = F.linear(y, self.target_projection).view(rows, n_new, 3, n_heads, d_k)
            queries = projected[:, :, 0].transpose(1, 2)  # (R, H, N, d_k)
            self.cache[:, start:end] = projected[:, :, 1:].permute(2, 1, 0, 3, 4)
            keys, values = self.cache[:, :end].permute(0, 2, 3, 1, 4)  # (R, H, end, d_k) each
            mask = None if n_new == 1 else causal_mask(n_new, end, device=x.device)
            context = F.scaled_dot_product_attention(
                queries, keys, values, mask, scale=self.scales[0]
            )
            return F.linear(context.transpose(1, 2).flatten(-2), *self.outputs[0])

        def attend_to_memory(y: Tensor) -> Tensor:
            queries = F.linear(y, self.memory_projection).view(rows, n_new, n_heads, d_k)
            queries = queries.transpose(1, 2)  # (R, H, N, d_k)
            if slots is not None:  # (R, H, 1, d_k) -> (B, H, W, d_k)
                queries = queries[slots.rows].squeeze(3).transpose(1, 2)
            keys, values = self.memory  # (B, H, S, d_k) each
            context = F.scaled_dot_product_attention(
                queries, keys, values, src_mask, scale=self.scales[1]
            )
            if slots is not None:  # (B, H, W, d_k) -> (R, H, 1, d_k)
                context = context.transpose(1, 2).flatten(0, 1)[slots.slot_of_row].unsqueeze(2)
            return F.linear(context.transpose(1, 2).flatten(-2), *self.outputs[1])

        def feed_forward(y: Tensor) -> Tensor:
            widen, narrow = self.feed_forward
            return F.linear(F.linear(y, *widen).relu_(), *narrow)

        self_attention, cross_attention, last = self.residuals
        x = self_attention.around(x, attend_to_target)
        x = cross_attention.around(x, attend_to_memory)
        return last.around(x, feed_forward)


class CachedDecoder:
    """A decoder that computes each position once.

    Args:
        model: in evaluation mode.
        src: (B, S); each source starts with one hypothesis.
        max_length: T_max, target positions with bos; the cache is allocated once.
        beam: W, maximum number of hypotheses per source.
    """

    @torch.inference_mode()
    def __init__(self, model: Transformer, src: Tensor, *, max_length: int, beam: int = 1) -> None:
        self.model, self.device = model, src.device
        memory, src_mask = model.encode(src)
        self.src_mask = None if src_mask.all() else src_mask  # attention is fastest without a mask
        attentions = [block.cross_attention.sublayer for block in model.decoder]
        keys_and_values = [
            torch.stack([a.split_heads(a.W_key(memory)), a.split_heads(a.W_value(memory))])
            for a in attentions
        ]
        # All layers, (layers, 2, B, H, S, d_k): rows are selected in one step.
        self.memory = torch.stack(keys_and_values)
        layers, two, sources, n_heads, _, d_k = self.memory.shape
        self.cache = memory.new_empty(layers, two, max_length, sources * beam, n_heads, d_k)
        self.length = 0  # target positions read so far
        self.slots: Slots | None = None  # None: row i is the one hypothesis of source i
        self.blocks = [
            CachedBlock(block, self.memory[i], self.cache[i, :, :, :sources])
            for i, block in enumerate(model.decoder)
        ]

    @torch.inference_mode()
    def step(self, pieces: Sequence[Sequence[int]]) -> Tensor:
        """See `PlainDecoder`. After `regroup`, N must be 1."""
        tgt_in = torch.tensor(pieces, device=self.device)
        x = self.model.embed(tgt_in, start=self.length)
        for block in self.blocks:
            x = block.step(x, self.length, self.src_mask, self.slots)
        self.length += tgt_in.shape[1]
        return self.model.logits(self.model.decoder_norm(x[:, -1]))

    def keep(self, rows: Sequence[int]) -> None:
        """See `PlainDecoder`. Only rows that move are copied."""
        self._move(rows, rows)

    def regroup(self, rows: Sequence[int], sources: Sequence[int], groups: list[list[int]]) -> None:
        """Continue with `rows` and `sources`, for beam search.

        Args:
            rows: row i continues hypothesis `rows[i]`; a row occurs several times where
                hypotheses share their beginning.
            sources: source i is the former source `sources[i]`.
            groups: the new rows of each source.
        """
        width = max(map(len, groups))
        padded = [[*group, *group[:1] * (width - len(group))] for group in groups]
        slot_of_row = [0] * len(rows)
        for source, group in enumerate(groups):
            for slot, row in enumerate(group):
                slot_of_row[row] = source * width + slot
        self.slots = Slots(
            torch.tensor(padded, device=self.device), torch.tensor(slot_of_row, device=self.device)
        )
        self._move(rows, sources)

    @torch.inference_mode()
    def _move(self, rows: Sequence[int], sources: Sequence[int]) -> None:
        _move_rows(self.cache[:, :, : self.length], 3, rows)
        _move_rows(self.memory, 2, sources)
        for i, block in enumerate(self.blocks):
            block.memory = self.memory[i, :, : len(sources)]
            block.cache = self.cache[i, :, :, : len(rows)]
        if self.src_mask is not None:
            self.src_mask = self.src_mask[list(sources)]


def _move_rows(stored: Tensor, dim: int, rows: Sequence[int]) -> None:
    """Replace row i in dimension `dim` by the former row `rows[i]`, in place."""
    moved = [(new, old) for new, old in enumerate(rows) if old != new]
    if moved:
        new, old = torch.tensor(moved, device=stored.device).unbind(1)
        # Takes half the time of assigning through a list of indices.
        stored.index_copy_(dim, new, stored.index_select(dim, old))
