"""Which source words the decoder looked at for each target word.

S source pieces, T target pieces, R target words, C source words; eos is a word of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from translate.model.transformer import AttentionRecord, Transformer
from translate.text.tokenizer import Tokenizer
from translate.text.words import Word, words


class WordAttention(NamedTuple):
    """`weights` (R, C): each row sums to 1."""

    weights: Tensor
    target_words: list[str]
    source_words: list[str]


def cross_weights(record: AttentionRecord) -> Tensor:
    """Mean over layers and heads of the decoder's attention to the source: (B, T, S)."""
    layers = torch.stack([stages.weights for stages in record.cross])  # (L, B, H, T, S)
    return layers.mean(dim=(0, 2))


def join_pieces(weights: Tensor, target: list[Word], source: list[Word]) -> Tensor:
    """(T, S) over pieces to (R, C) over words.

    A source word receives what its pieces receive together; a target word spends what its pieces
    spend on average. So rows keep the sum 1.
    """
    columns = torch.stack([weights[:, w.start : w.end].sum(dim=1) for w in source], dim=1)
    return torch.stack([columns[w.start : w.end].mean(dim=0) for w in target])


@torch.inference_mode()
def word_attention(
    model: Transformer, tokenizer: Tokenizer, source: str, target: str
) -> WordAttention:
    """Cross-attention while `target` is written as the translation of `source`.

    Row i is what the decoder looks at to *predict* target word i, not after it has read it.
    The model must be in evaluation mode: dropout would blur the picture. Of a text that is
    longer than the model's `max_length` the beginning is shown.
    """
    if model.training:
        raise ValueError("the model is in training mode: call eval() first")
    room = model.config.max_length - 1
    source_ids = [*tokenizer.encode(source)[:room], tokenizer.eos_id]
    target_ids = [*tokenizer.encode(target)[:room], tokenizer.eos_id]
    device = model.embedding.weight.device
    record = AttentionRecord()
    memory, src_mask = model.encode(torch.tensor([source_ids], device=device))
    tgt_in = torch.tensor([[tokenizer.bos_id, *target_ids[:-1]]], device=device)
    model.decode(tgt_in, memory, src_mask, record=record)
    source_words, target_words = words(tokenizer, source_ids), words(tokenizer, target_ids)
    weights = join_pieces(cross_weights(record)[0], target_words, source_words)
    return WordAttention(
        weights.cpu(), [word.text for word in target_words], [word.text for word in source_words]
    )
