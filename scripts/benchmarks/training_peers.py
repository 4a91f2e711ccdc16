"""Run in a child process: train PyTorch's nn.Transformer or Hugging Face's MarianMTModel.

This module needs torch, and transformers for MarianMTModel. It does not import this program.

B batch, S source length, T target length, D d_model, V vocabulary.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.child_processes import answer
from benchmarks.engine_weights import PAD, marian_config
from benchmarks.options import LEARNING_RATE, SEED, SHAPE, SMOOTHING

MAX_LENGTH = 256


class PlainTransformer(nn.Module):
    """`nn.Transformer` with one embedding table for source, target and output."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        width = SHAPE["d_model"]
        self.scale = math.sqrt(width)
        self.embedding = nn.Embedding(vocab_size, width, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.dropout = nn.Dropout(SHAPE["dropout"])
        layers = SHAPE["encoder_layers"], SHAPE["decoder_layers"]
        self.transformer = nn.Transformer(
            width, SHAPE["n_heads"], *layers, dim_feedforward=SHAPE["d_ff"],
            dropout=SHAPE["dropout"], batch_first=True, norm_first=True,
        )  # fmt: skip
        self.positions = nn.Parameter(torch.randn(MAX_LENGTH, width) * 0.02)

    def embed(self, ids: Tensor) -> Tensor:
        """Return scaled embeddings plus positions: (B, T) -> (B, T, D)."""
        x = self.embedding(ids) * self.scale + self.positions[: ids.shape[1]]
        return self.dropout(x)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """(B, S), (B, T) -> logits (B, T, V)."""
        length = tgt_in.shape[1]
        # The masks of nn.Transformer are True where attention is forbidden.
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        src_padding = src == PAD
        hidden = self.transformer(
            self.embed(src), self.embed(tgt_in), tgt_mask=future, tgt_is_causal=True,
            src_key_padding_mask=src_padding, memory_key_padding_mask=src_padding,
            tgt_key_padding_mask=tgt_in == PAD,
        )  # fmt: skip
        return F.linear(hidden, self.embedding.weight)


class Marian(nn.Module):
    """MarianMTModel, which returns logits; its own loss has no label smoothing."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        from transformers import MarianMTModel

        self.model = MarianMTModel(marian_config(SHAPE, vocab_size, MAX_LENGTH))

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """(B, S), (B, T) -> logits (B, T, V)."""
        return self.model(
            input_ids=src, attention_mask=src != PAD, decoder_input_ids=tgt_in, use_cache=False
        ).logits


def measure(settings: dict[str, Any]) -> dict[str, list[float]]:
    """Train on all batches; return the target tokens per second of every interval."""
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(SEED)
    models = {"nn.Transformer": PlainTransformer, "MarianMTModel": Marian}
    model = models[settings["model"]](settings["pieces"]).train()
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, (0.9, 0.98), fused=True)
    loss = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=SMOOTHING)
    speeds, tokens, started = [], 0, time.perf_counter()
    for number, (src, tgt_in, tgt_out) in enumerate(torch.load(settings["batches"]), 1):
        optimizer.zero_grad()
        loss(model(src, tgt_in).flatten(0, 1), tgt_out.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tokens += int((tgt_out != PAD).sum())
        if number % settings["interval"] == 0:
            now = time.perf_counter()
            speeds.append(tokens / (now - started))
            tokens, started = 0, now
    return {"speeds": speeds}


if __name__ == "__main__":
    answer(measure)
