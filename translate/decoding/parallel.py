"""Work on batches in parallel, one thread per batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> list[Result]:
    """Return `work` of each item, in order, with `workers` items at a time.

    Each item has one thread: the matrices of one position are so small that several threads would
    mostly wait for each other. PyTorch releases Python's global lock (GIL) while it computes.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if workers == 1 or len(items) <= 1:
            return [work(item) for item in items]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(work, items))  # after an error, `map` cancels the waiting items
    finally:
        torch.set_num_threads(before)
