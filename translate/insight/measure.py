"""Measurements of a model on one batch: attention, residual stream, losses, sizes of updates.

B batch, S source length, T target length, D d_model, H heads, d_k head width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import get_total_norm

from translate.decoding.translator import evaluating
from translate.insight.attention import Kind
from translate.model.attention import Stages
from translate.model.transformer import AttentionRecord, Transformer

KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")


class AttentionStatistics(NamedTuple):
    """One layer's attention, over all heads and all queries that are not padding."""

    max_score: float  # largest absolute score after division by √d_k: the softmax's input
    entropy: float  # mean of the rows' entropies, in nats; 0: all weight on one token
    relative_entropy: float  # mean of entropy / maximum entropy; 1: uniform weights
    boundary_weight: float  # mean weight on the source's eos; in decoder self-attention, on bos


class Inspection(NamedTuple):
    """Measurements on one batch. Layers count from 0."""

    attention: dict[tuple[Kind, int], AttentionStatistics]
    residual_rms: dict[tuple[str, int], float]  # RMS of the residual stream after the layer
    nll: float  # nats per target piece, with the right source
    nll_wrong_source: float | None  # with another sentence's source; None for a single sentence


@torch.inference_mode()
def inspect(model: Transformer, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Inspection:
    """Measure `model` on src (B, S), tgt_in (B, T), tgt_out (B, T).

    Leaves the model's training mode and all random states as they were.
    """
    record, residual_rms = AttentionRecord(), {}
    pad_id = model.config.pad_id
    real_src, real_tgt = src != pad_id, tgt_out != pad_id  # (B, S), (B, T)
    src_mask, tgt_mask = model.source_mask(src), model.target_mask(tgt_in)
    with evaluating(model):
        # The loops of Transformer.encode and Transformer.decode, measuring after each block.
        x = model.embed(src)
        for layer, block in enumerate(model.encoder):
            x = block(x, src_mask, record)
            residual_rms["encoder", layer] = _rms(x[real_src])
        memory = model.encoder_norm(x)
        x = model.embed(tgt_in)
        for layer, block in enumerate(model.decoder):
            x = block(x, memory, src_mask, tgt_mask, record)
            residual_rms["decoder", layer] = _rms(x[real_tgt])
        hidden = model.decoder_norm(x)
        # Decode each target with the source of the previous sentence in the batch.
        wrong = model.decode(tgt_in, memory.roll(1, 0), src_mask.roll(1, 0))
    eos = real_src.sum(1) - 1  # (B,), the position of each source's eos
    bos = torch.zeros_like(eos)
    scale = model.encoder[0].self_attention.sublayer.scale  # the same in every layer
    attention = {
        (kind, layer): _statistics(stages, scale, *tokens)
        for kind, *tokens in (
            ("encoder", real_src, src_mask, eos),
            ("decoder", real_tgt, tgt_mask, bos),
            ("cross", real_tgt, src_mask, eos),
        )
        for layer, stages in enumerate(getattr(record, kind))
    }
    return Inspection(
        attention,
        residual_rms,
        _nll(model, hidden, tgt_out, real_tgt),
        _nll(model, wrong, tgt_out, real_tgt) if len(src) > 1 else None,
    )


def _statistics(
    stages: Stages, scale: float, queries: Tensor, mask: Tensor, boundary: Tensor
) -> AttentionStatistics:
    """Summarise stages of shape (B, H, ...).

    Args:
        scale: 1/√d_k.
        queries: (B, T), False at padding.
        mask: broadcastable to (B, 1, T, S).
        boundary: (B,), the position of the key whose weight is `boundary_weight`.
    """
    # (B, H, T, S) -> (N, H, S), one row for each of the N queries that are not padding
    weights, scores = (each.transpose(1, 2)[queries] for each in (stages.weights, stages.scores))
    allowed = mask.expand_as(stages.weights).transpose(1, 2)[queries]  # (N, H, S)
    entropy = -torch.xlogy(weights, weights).sum(-1)  # (N, H)
    maximum = allowed.sum(-1).log()  # ln(keys allowed)
    relative = (entropy / maximum)[maximum > 0]  # without queries that see only one key
    boundaries = boundary[queries.nonzero()[:, 0]]  # (N,)
    return AttentionStatistics(
        (scores * scale).abs().where(allowed, 0.0).max().item(),
        entropy.mean().item(),
        relative.mean().item() if len(relative) else 1.0,
        weights.take_along_dim(boundaries[:, None, None], dim=-1).mean().item(),
    )


def _rms(x: Tensor) -> float:
    return x.square().mean().sqrt().item()


def _nll(model: Transformer, hidden: Tensor, tgt_out: Tensor, real: Tensor) -> float:
    return F.cross_entropy(model.logits(hidden[real]), tgt_out[real]).item()


def parameters_by_module(model: Transformer) -> dict[str, list[nn.Parameter]]:
    """Group all parameters by module. The embedding is also the output layer: one gradient."""
    return {
        "embedding": list(model.embedding.parameters()),
        "encoder": [*model.encoder.parameters(), *model.encoder_norm.parameters()],
        "decoder": [*model.decoder.parameters(), *model.decoder_norm.parameters()],
    }


def update_ratios(
    before: Mapping[str, Sequence[Tensor]], after: Mapping[str, Sequence[Tensor]]
) -> dict[str, float]:
    """Return, for each group of parameters, the norm of the update / the norm of the weights."""
    ratios = {}
    for group, old in before.items():
        update = get_total_norm([a - b for a, b in zip(after[group], old, strict=True)])
        ratios[group] = update.item() / max(get_total_norm(old).item(), 1e-12)
    return ratios
