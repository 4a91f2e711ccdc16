"""Attention weights of a trained model, between pieces or between words.

L layers, H heads, T queries (tokens that attend), S keys (tokens attended to), D d_model;
P panels, R rows, C columns of a picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from translate.model.transformer import AttentionRecord, Transformer
from translate.text.tokenizer import WORD_START, Tokenizer
from translate.text.words import Word, words

Kind = Literal["encoder", "decoder", "cross"]


class AttentionMaps(NamedTuple):
    """Attention weights with the labels of a picture; every row of a panel sums to 1."""

    weights: Tensor  # (P, R, C)
    titles: list[str]  # of the panels
    rows: list[str]  # tokens that attend
    columns: list[str]  # tokens attended to
    row_name: str  # meaning of a row, such as "target word being predicted"
    column_name: str  # meaning of a column, such as "source word attended to"


class ForwardPass(NamedTuple):
    """One sentence pair as the model reads it, and the stages of every attention."""

    src: list[int]  # source and eos
    tgt_in: list[int]  # bos and target
    tgt_out: list[int]  # target and eos
    memory: Tensor  # (1, S, D)
    record: AttentionRecord


@torch.inference_mode()
def forward_pass(
    model: Transformer, tokenizer: Tokenizer, source: Sequence[int], target: Sequence[int]
) -> ForwardPass:
    """Run the model on one sentence pair, given as pieces without bos and eos.

    A text longer than `max_length` is cut at the end.

    Raises:
        ValueError: the model is in training mode, where dropout changes the weights.
    """
    if model.training:
        raise ValueError("the model is in training mode: call eval() first")
    longest = model.config.max_length - 1
    src = [*source[:longest], tokenizer.eos_id]
    tgt_in, tgt_out = [tokenizer.bos_id, *target[:longest]], [*target[:longest], tokenizer.eos_id]
    device = model.embedding.weight.device
    record = AttentionRecord()
    memory, src_mask = model.encode(torch.tensor([src], device=device), record)
    model.decode(torch.tensor([tgt_in], device=device), memory, src_mask, record)
    return ForwardPass(src, tgt_in, tgt_out, memory, record)


def attention_maps(
    model: Transformer,
    tokenizer: Tokenizer,
    source: Sequence[int],
    target: Sequence[int],
    *,
    kind: Kind = "cross",
    layer: int | None = None,
    head: int | None = None,
    by_word: bool = True,
) -> AttentionMaps:
    """Return the attention weights while the model reads `source` and writes `target`.

    In cross-attention, row i belongs to the prediction of target token i, made before the decoder
    reads it. In decoder self-attention, the tokens that the decoder reads label both axes, with
    bos first.

    Args:
        source: pieces without eos, as in `forward_pass`.
        target: pieces of the translation without bos and eos.
        layer: counted from 0; without `head`, one panel for each head of the layer.
        head: counted from 0; without `layer`, one panel for each layer. Without both, one panel
            with the mean of all heads of all layers.
        by_word: join the pieces of each word.
    """
    seen = forward_pass(model, tokenizer, source, target)
    weights = torch.stack([stages.weights[0] for stages in getattr(seen.record, kind)]).cpu()
    n_layers, n_heads = weights.shape[:2]  # weights (L, H, T, S)
    if layer is None and head is None:
        panels = {f"mean of {n_layers} layers, {n_heads} heads each": weights.mean(dim=(0, 1))}
    else:
        layers = range(n_layers) if layer is None else [layer]
        heads = range(n_heads) if head is None else [head]
        panels = {f"layer {i + 1}, head {j + 1}": weights[i, j] for i in layers for j in heads}
    queries, keys, row_name, column_name = {
        "encoder": (seen.src, seen.src, "source {} that attends", "source {} attended to"),
        "decoder": (seen.tgt_in, seen.tgt_in, "target {} that attends", "target {} attended to"),
        "cross": (seen.tgt_out, seen.src, "target {} being predicted", "source {} attended to"),
    }[kind]
    unit, split = ("word", words) if by_word else ("piece", pieces)
    rows, columns = split(tokenizer, queries), split(tokenizer, keys)
    return AttentionMaps(
        join_pieces(torch.stack(list(panels.values())), rows, columns),
        list(panels),
        [word.text for word in rows],
        [word.text for word in columns],
        row_name.format(unit),
        column_name.format(unit),
    )


def join_pieces(weights: Tensor, rows: list[Word], columns: list[Word]) -> Tensor:
    """Join pieces to words: (..., T, S) -> (..., R, C).

    A word receives the sum of the weights that its pieces receive, and attends with the mean of
    the weights of its pieces. So every row still sums to 1.
    """
    received = torch.stack([weights[..., w.start : w.end].sum(dim=-1) for w in columns], dim=-1)
    return torch.stack([received[..., w.start : w.end, :].mean(dim=-2) for w in rows], dim=-2)


def pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Word]:
    """Return each piece as a word of its own; see `label`."""
    return [Word(label(tokenizer, [piece]), i, i + 1) for i, piece in enumerate(ids)]


def label(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Return the text of one or more pieces, never empty; "-e" means that "e" continues a word."""
    text = "".join(word.text for word in words(tokenizer, ids))
    continues = text.isalnum() and not tokenizer.piece(ids[0]).startswith(WORD_START)
    return f"-{text}" if continues else text
