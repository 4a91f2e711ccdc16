"""Run in a child process: measure training steps on random ids of one shape, without padding."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.child_processes import answer, peak_ram
from benchmarks.corpus import VOCAB_SIZE
from benchmarks.options import LEARNING_RATE, SEED, SHAPE, SMOOTHING
from translate.model.attention import MultiHeadAttention
from translate.model.transformer import Transformer, TransformerConfig
from translate.training.objective import label_smoothed_cross_entropy


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the target tokens per second and the peak RAM, or the table of the profiler.

    Settings: "rows" and "length" of a batch; number of "warmup" steps and of measured "steps";
    optionally "explicit_up_to", the largest number of keys with explicit attention, and "profile".
    """
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(SEED)
    rows, length = settings["rows"], settings["length"]
    config = TransformerConfig(VOCAB_SIZE, pad_id=0, max_length=max(256, length), **SHAPE)
    model = Transformer(config).train()
    for module in model.modules():
        if isinstance(module, MultiHeadAttention) and "explicit_up_to" in settings:
            module.explicit_up_to = settings["explicit_up_to"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)
    src, tgt_in, tgt_out = torch.randint(4, VOCAB_SIZE, (3, rows, length))  # (B, S), (B, T) twice

    def step() -> None:
        with record_function("forward"):
            memory, src_mask = model.encode(src)
            hidden = model.decode(tgt_in, memory, src_mask).flatten(0, 1)  # (B * T, D)
        with record_function("output layer and loss"):
            table, targets = model.embedding.weight, tgt_out.flatten()
            loss = label_smoothed_cross_entropy(hidden, table, targets, SMOOTHING).loss
        with record_function("backward"):
            (loss / tgt_out.numel()).backward()
        with record_function("clipping and optimizer"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    for _ in range(settings["warmup"]):
        step()
    if settings.get("profile"):
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            for _ in range(settings["steps"]):
                step()
        averages = profiler.key_averages()
        return {"table": averages.table(sort_by="self_cpu_time_total", row_limit=25)}
    seconds = []
    for _ in range(settings["steps"]):
        started = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - started)
    speed = rows * length / statistics.median(seconds)
    return {"speed": speed, "peak": peak_ram()}


if __name__ == "__main__":
    answer(measure)
