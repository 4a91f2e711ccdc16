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
    """What one batch shows. Layers count from 0."""

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
    was_training = model.training
    model.eval()
    try:
        # The loops of Transformer.encode and Transformer.decode, with a look at every block.
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
        # Each target with the source of the sentence before it.
        wrong = model.decode(tgt_in, memory.roll(1, 0), src_mask.roll(1, 0))
    finally:
        model.train(was_training)
    is_eos = F.one_hot(real_src.sum(1) - 1, src.shape[1]).bool()  # (B, S)
    is_bos = torch.zeros_like(real_tgt)  # (B, T)
    is_bos[:, 0] = True
    encoder = [block.self_attention for block in model.encoder]
    decoder = [block.self_attention for block in model.decoder]
    cross = [block.cross_attention for block in model.decoder]
    attention = {
        (kind, layer): _statistics(stages, residual.sublayer.scale, *tokens)
        for kind, residuals, recorded, *tokens in (
            ("encoder", encoder, record.encoder, real_src, src_mask, is_eos),
            ("decoder", decoder, record.decoder, real_tgt, tgt_mask, is_bos),
            ("cross", cross, record.cross, real_tgt, src_mask, is_eos),
        )
        for layer, (residual, stages) in enumerate(zip(residuals, recorded, strict=True))
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
    """Stages of (B, H, ...); `queries` (B, T) and `boundary` (B, S) are True at the tokens that
    count, `mask` is broadcastable to (B, 1, T, S)."""
    weights = stages.weights  # (B, H, T, S)
    allowed = mask & queries[:, None, :, None]  # (B, 1, T, S)
    scores = (stages.scores * scale).abs().where(allowed, 0.0)
    entropy = -torch.xlogy(weights, weights).sum(-1)  # (B, H, T)
    maximum = allowed.sum(-1).clamp(min=1).log().expand_as(entropy)  # ln(tokens allowed)
    counted = queries[:, None].expand_as(entropy)
    relative = (entropy / maximum)[counted & (maximum > 0)]  # without tokens that have no choice
    on_boundary = (weights * boundary[:, None, None]).sum(-1)  # (B, H, T)
    return AttentionStatistics(
        scores.max().item(),
        entropy[counted].mean().item(),
        relative.mean().item() if len(relative) else 1.0,
        on_boundary[counted].mean().item(),
    )


def _rms(x: Tensor) -> float:
    return x.square().mean().sqrt().item()


def _nll(model: Transformer, hidden: Tensor, tgt_out: Tensor, real: Tensor) -> float:
    return F.cross_entropy(model.logits(hidden[real]), tgt_out[real]).item()


def parameters_by_module(model: Transformer) -> dict[str, list[nn.Parameter]]:
    """Group all parameters. The embedding is also the output layer: one table, one gradient."""
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
