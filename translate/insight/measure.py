"""Figures of one batch that say how a model is doing inside.

B batch, S source length, T target length, D d_model, H heads, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from translate.insight.attention import Kind
from translate.model.attention import Stages
from translate.model.masks import causal_mask
from translate.model.transformer import AttentionRecord, Transformer

KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")


class AttentionFigures(NamedTuple):
    """Of one layer's attention, over all heads and all tokens that are no padding."""

    largest_score: float  # of the scores divided by √K that go into the softmax, without sign
    entropy: float  # mean over rows, in nats; 0: all weight on one token
    evenness: float  # entropy / ln(tokens that may be looked at), mean; 1: all looked at alike
    end_share: float  # mean weight on eos of the source; in the decoder on bos


class Inspection(NamedTuple):
    """What one batch shows."""

    attention: dict[tuple[Kind, int], AttentionFigures]  # by kind and layer, from 0
    residual: dict[tuple[str, int], float]  # ("encoder" or "decoder", layer): its output, RMS
    nll: float  # nats a target piece
    nll_of_another_source: float | None  # every sentence given the next one's; None: there is one


@torch.inference_mode()
def inspect(model: Transformer, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Inspection:
    """Measure `model` on src (B, S), tgt_in (B, T), tgt_out (B, T).

    The model's training mode is left as it was; nothing random is drawn.
    """
    pad_id = model.config.pad_id
    record = AttentionRecord()
    was_training = model.training
    model.eval()
    try:
        with _outputs(model) as outputs:
            memory, src_mask = model.encode(src, record)
            hidden = model.decode(tgt_in, memory, src_mask, record=record)
        others = None
        if len(src) > 1:
            others = model.decode(tgt_in, memory.roll(1, 0), src_mask.roll(1, 0))
    finally:
        model.train(was_training)
    real_src, real_tgt = src != pad_id, tgt_out != pad_id  # (B, S), (B, T)
    ends = F.one_hot(real_src.sum(1) - 1, src.shape[1]).bool()  # (B, S): eos
    begins = torch.zeros_like(real_tgt)
    begins[:, 0] = True  # bos
    causal = causal_mask(tgt_in.shape[1], device=src.device)  # (1, 1, T, T)
    views = {
        "encoder": (real_src, src_mask, ends),
        "decoder": (real_tgt, causal, begins),
        "cross": (real_tgt, src_mask, ends),
    }
    return Inspection(
        {
            (kind, layer): _figures(stages, *views[kind])
            for kind in KINDS
            for layer, stages in enumerate(getattr(record, kind))
        },
        {
            (part, layer): x[real_src if part == "encoder" else real_tgt]
            .square()
            .mean()
            .sqrt()
            .item()
            for (part, layer), x in outputs.items()
        },
        _nll(model, hidden, tgt_out, real_tgt),
        None if others is None else _nll(model, others, tgt_out, real_tgt),
    )


def _figures(stages: Stages, rows: Tensor, mask: Tensor, end: Tensor) -> AttentionFigures:
    """`rows` (B, T): queries that count; `mask` broadcasts to (B, 1, T, S); `end` (B, S)."""
    weights = stages.weights  # (B, H, T, S)
    seen = (
        mask.expand(len(weights), 1, *weights.shape[-2:]) & rows[:, None, :, None]
    )  # (B, 1, T, S)
    scaled = stages.scores / math.sqrt(stages.queries.shape[-1])
    entropy = -torch.xlogy(weights, weights).sum(-1)  # (B, H, T)
    possible = seen.sum(-1).clamp(min=1).log()  # (B, 1, T), ln of the tokens in sight
    chosen = rows[:, None].expand_as(entropy)  # (B, H, T)
    several = chosen & (possible > 0)  # a token that sees one alone has no choice
    evenness = entropy / possible.where(possible > 0, 1.0)
    on_end = (weights * end[:, None, None]).sum(-1)  # (B, H, T)
    return AttentionFigures(
        scaled.abs().where(seen, 0.0).max().item(),
        entropy[chosen].mean().item(),
        evenness[several].mean().item() if several.any() else 1.0,
        on_end[chosen].mean().item(),
    )


def _nll(model: Transformer, hidden: Tensor, tgt_out: Tensor, real: Tensor) -> float:
    return F.cross_entropy(model.logits(hidden[real]), tgt_out[real]).item()


@contextmanager
def _outputs(model: Transformer) -> Iterator[dict[tuple[str, int], Tensor]]:
    """What every block puts out while the model runs: (B, S or T, D) by part and layer."""
    outputs: dict[tuple[str, int], Tensor] = {}

    def keep(place: tuple[str, int]):
        return lambda module, args, output: outputs.__setitem__(place, output)

    hooks = [
        block.register_forward_hook(keep((part, layer)))
        for part in ("encoder", "decoder")
        for layer, block in enumerate(getattr(model, part))
    ]
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


def parts(model: Transformer) -> dict[str, list[nn.Parameter]]:
    """The parameters by part. The embedding is also the output layer: one table, one gradient."""
    found: dict[str, list[nn.Parameter]] = {"embedding": [], "encoder": [], "decoder": []}
    for name, parameter in model.named_parameters():
        found[name.split(".")[0].removesuffix("_norm")].append(parameter)
    return found


def norm(tensors: Iterable[Tensor]) -> float:
    """The Euclidean norm of all together; 0.0 of none."""
    listed = list(tensors)
    return torch.stack(torch._foreach_norm(listed)).norm().item() if listed else 0.0


def update_ratios(
    before: Mapping[str, list[Tensor]], after: Mapping[str, list[Tensor]]
) -> dict[str, float]:
    """How far an update moved each part, as a share of the norm of its weights."""
    return {
        part: norm(torch._foreach_sub(after[part], before[part])) / max(norm(before[part]), 1e-12)
        for part in before
    }
