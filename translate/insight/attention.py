"""Which tokens an attention looks at, by pieces or by words.

L layers, H heads, T tokens that look, S tokens looked at; P panels, R rows, C columns.
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
    """`weights` (P, R, C): row r of every panel sums to 1."""

    weights: Tensor
    titles: list[str]  # of the panels
    rows: list[str]  # tokens that look
    columns: list[str]  # tokens looked at
    kind: Kind = "cross"
    unit: Literal["word", "piece"] = "word"  # what a token is


def cross_weights(record: AttentionRecord) -> Tensor:
    """Mean over layers and heads of the decoder's attention to the source: (B, T, S)."""
    layers = torch.stack([stages.weights for stages in record.cross])  # (L, B, H, T, S)
    return layers.mean(dim=(0, 2))


def join_pieces(weights: Tensor, rows: list[Word], columns: list[Word]) -> Tensor:
    """(..., T, S) over pieces to (..., R, C) over words.

    A word that is looked at receives what its pieces receive together; a word that looks spends
    what its pieces spend on average. So rows keep the sum 1.
    """
    received = torch.stack([weights[..., w.start : w.end].sum(dim=-1) for w in columns], dim=-1)
    return torch.stack([received[..., w.start : w.end, :].mean(dim=-2) for w in rows], dim=-2)


@torch.inference_mode()
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
    """How `source` and its translation `target`, pieces without bos and eos, attend.

    With `layer` (from 0) a panel for each of its heads, with `head` a panel for that of each
    layer, with both a single one; with neither the mean of all.

    Row i of cross-attention is what the decoder looks at to *write* target token i, not after it
    has read it. In the decoder's self-attention the tokens read are on both axes, bos before them.

    The model must be in evaluation mode: dropout would blur the picture. Of a text that is
    longer than the model's `max_length` the beginning is shown.
    """
    if model.training:
        raise ValueError("the model is in training mode: call eval() first")
    room = model.config.max_length - 1
    src = [*source[:room], tokenizer.eos_id]
    tgt_in, tgt_out = [tokenizer.bos_id, *target[:room]], [*target[:room], tokenizer.eos_id]
    device = model.embedding.weight.device
    record = AttentionRecord()
    encoded = model.encode(torch.tensor([src], device=device), record)
    model.decode(torch.tensor([tgt_in], device=device), *encoded, record=record)
    layers = getattr(record, kind)
    weights = torch.stack([stages.weights[0] for stages in layers]).cpu()  # (L, H, T, S)
    if layer is None and head is None:
        titles = [f"mean of {weights.shape[0]} layers, {weights.shape[1]} heads each"]
        weights = weights.mean(dim=(0, 1))[None]
    elif layer is None:
        titles = [f"layer {number + 1}, head {head + 1}" for number in range(len(weights))]
        weights = weights[:, head]
    else:
        heads = range(weights.shape[1]) if head is None else [head]
        titles = [f"layer {layer + 1}, head {number + 1}" for number in heads]
        weights = weights[layer, list(heads)]
    ids = {"encoder": (src, src), "decoder": (tgt_in, tgt_in), "cross": (tgt_out, src)}[kind]
    if not by_word:
        names = (piece_names(tokenizer, each) for each in ids)
        return AttentionMaps(weights, titles, *names, kind, "piece")
    rows, columns = (words(tokenizer, each) for each in ids)
    joined = join_pieces(weights, rows, columns)
    return AttentionMaps(
        joined, titles, [word.text for word in rows], [word.text for word in columns], kind
    )


def piece_names(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """A name for each piece, none of them empty; "-e" goes on with the word before it."""
    names = []
    for index, piece in enumerate(ids):
        name = words(tokenizer, [piece])[0].text
        starts = index == 0 or tokenizer.piece(piece).startswith(WORD_START) or not name.isalnum()
        names.append(name if starts else f"-{name}")
    return names
