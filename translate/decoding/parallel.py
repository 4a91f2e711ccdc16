"""Batches in parallel: each on one thread, as many at a time as PyTorch may use threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def threads_of(count: int) -> Iterator[None]:
    """Every operation on `count` threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_parallel(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int, threads: int = 1
) -> list[Result]:
    """`work` of each item, in order, on `threads` threads each. PyTorch lets go of Python's lock
    while it computes."""
    with threads_of(threads):
        if workers == 1 or len(items) <= 1:
            return [work(item) for item in items]
        pool = ThreadPoolExecutor(workers)
        try:
            return list(pool.map(work, items))
        finally:
            pool.shutdown(cancel_futures=True)
