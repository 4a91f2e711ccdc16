"""One point of the cost curves, in a process of its own.

    python -m benchmarks.costs_worker '{"rows": 256, "length": 16, ...}'

The JSON answer goes into a file.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

import torch

from benchmarks.corpus import SEED, SMOOTHING
from benchmarks.memory import MIB, forget_peak, peak_bytes, resident_bytes
from benchmarks.options import SHAPE
from translate.model import attention
from translate.model.transformer import Transformer, TransformerConfig
from translate.training.batching import Batch
from translate.training.module import TranslationModule

HEAD_DIM = 32


def main() -> None:
    """Measure one point in this process; the JSON answer goes into a file."""
    settings = json.loads(sys.argv[1])
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(SEED)
    rows, length, vocabulary = settings["rows"], settings["length"], settings["vocabulary"]
    if settings["path"] != "as shipped":
        attention.EXPLICIT_UP_TO = sys.maxsize if settings["path"] == "explicit" else 0
    width = settings["width"]
    shape = {**SHAPE, "d_model": width, "d_ff": 2 * width, "n_heads": width // HEAD_DIM}
    shape["max_length"] = max(256, length)
    module = TranslationModule(**shape, label_smoothing=SMOOTHING)
    model = Transformer(TransformerConfig(vocab_size=vocabulary, pad_id=0, **shape))
    module.adopt(model, None)
    module.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    sides = torch.randint(4, vocabulary, (3, rows, length)).unbind(0)
    batch = Batch(*sides, indices=torch.arange(rows))
    forget_peak()
    base = resident_bytes()
    seconds: list[float] = []
    warmup, least = settings["warmup"], settings["least"]
    while len(seconds) < warmup + least or (
        len(seconds) < warmup + settings["steps"] and sum(seconds) < settings["seconds"]
    ):
        started = time.perf_counter()
        optimizer.zero_grad()
        loss, _, count = module.loss(batch)
        (loss / count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - started)
    median = statistics.median(seconds[warmup:])
    answer = {
        "tokens_per_second": rows * length / median,
        "seconds_per_step": median,
        "peak_mib": (peak_bytes() - base) / MIB,
    }
    Path(settings["answer"]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
