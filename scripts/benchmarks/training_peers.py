"""One training contestant as a process: PyTorch's nn.Transformer or Hugging Face's MarianMTModel.

    python -m benchmarks.train_worker '{"contestant": "nn.Transformer", ...}'

Needs torch, and transformers for MarianMTModel; nothing of this program. Batches come from a file
and lie in memory before the clock starts.

B batch, S source length, T target length, D width, V vocabulary.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.engine_weights import PAD, marian_config

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # src, tgt_in, tgt_out -> mean loss


class PlainTransformer(nn.Module):
    """`nn.Transformer` between one embedding table, as PyTorch's translation tutorial has it."""

    def __init__(self, vocab_size: int, shape: dict[str, Any], max_length: int = 256) -> None:
        super().__init__()
        width, dropout = shape["d_model"], shape["dropout"]
        self.scale = math.sqrt(width)
        self.embedding = nn.Embedding(vocab_size, width, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.dropout = nn.Dropout(dropout)
        self.transformer = nn.Transformer(
            d_model=width,
            nhead=shape["n_heads"],
            num_encoder_layers=shape["encoder_layers"],
            num_decoder_layers=shape["decoder_layers"],
            dim_feedforward=shape["d_ff"],
            dropout=dropout,
            batch_first=True,
            norm_first=True,
        )
        angles = torch.arange(max_length)[:, None] * torch.exp(
            torch.arange(0, width, 2) * (-math.log(10_000.0) / width)
        )
        self.register_buffer("positions", torch.cat((angles.sin(), angles.cos()), dim=-1))

    def embed(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, D)."""
        x = self.embedding(ids) * self.scale + self.positions[: ids.shape[1]]
        return self.dropout(x)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """(B, S), (B, T) -> logits (B, T, V)."""
        length = tgt_in.shape[1]
        # nn.Transformer's masks are True where attending is forbidden.
        ahead = torch.ones(length, length, dtype=torch.bool).triu(1)
        src_padding = src == PAD
        hidden = self.transformer(
            self.embed(src),
            self.embed(tgt_in),
            tgt_mask=ahead,
            src_key_padding_mask=src_padding,
            tgt_key_padding_mask=tgt_in == PAD,
            memory_key_padding_mask=src_padding,
            tgt_is_causal=True,
        )
        return F.linear(hidden, self.embedding.weight)


def plain_transformer(settings: dict[str, Any]) -> tuple[nn.Module, Loss]:
    model = PlainTransformer(settings["pieces"], settings["shape"])

    def loss(src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        return F.cross_entropy(
            model(src, tgt_in).flatten(0, 1),
            tgt_out.flatten(),
            ignore_index=PAD,
            label_smoothing=settings["smoothing"],
        )

    return model, loss


def marian(settings: dict[str, Any]) -> tuple[nn.Module, Loss]:
    """MarianMTModel, with the loss outside of it as in the Trainer when labels are smoothed:
    a loss of its own, unsmoothed, would be computed for nothing. `F.cross_entropy` gives the
    Trainer's number in less time."""
    from transformers import MarianMTModel

    model = MarianMTModel(marian_config(settings["shape"], settings["pieces"], 256))

    def loss(src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        logits = model(
            input_ids=src, attention_mask=src != PAD, decoder_input_ids=tgt_in, use_cache=False
        ).logits
        return F.cross_entropy(
            logits.flatten(0, 1),
            tgt_out.flatten(),
            ignore_index=PAD,
            label_smoothing=settings["smoothing"],
        )

    return model, loss


def train(
    model: nn.Module, loss: Loss, batches: list[tuple[Tensor, ...]], settings: dict[str, Any]
) -> Callable[[], list[float]]:
    """A function that trains on all batches: target tokens a second of every interval."""
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=settings["learning_rate"],
        betas=(0.9, 0.98),
        weight_decay=0.01,
        fused=True,
    )
    real = [int((tgt_out != PAD).sum()) for _, _, tgt_out in batches]

    def run() -> list[float]:
        model.train()
        speeds = []
        tokens, started = 0, time.perf_counter()
        for number, batch in enumerate(batches, 1):
            optimizer.zero_grad()
            loss(*batch).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            tokens += real[number - 1]
            if number % settings["interval"] == 0:
                now = time.perf_counter()
                speeds.append(tokens / (now - started))
                tokens, started = 0, now
        return speeds

    return run


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    settings = json.loads(sys.argv[1])
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(1)
    build = {"nn.Transformer": plain_transformer, "MarianMTModel": marian}
    model, loss = build[settings["contestant"]](settings)
    run = train(model, loss, torch.load(settings["batches"]), settings)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(json.dumps({"ready": True, "parameters": parameters}), file=answers, flush=True)
    for _ in sys.stdin:
        print(json.dumps({"speeds": run()}), file=answers, flush=True)


if __name__ == "__main__":
    main()
