"""Batches in parallel: the same translations in the same order, and threads as they were."""

from __future__ import annotations

import threading

import pytest
import torch

from translate.decoding import translator as module
from translate.decoding.parallel import in_parallel


@pytest.fixture
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def test_results_come_in_order_and_every_worker_computes_on_one_thread(two_threads):
    both = threading.Barrier(2, timeout=20)  # passes only if two work at the same time

    def work(item: int) -> tuple[int, int]:
        both.wait()
        return item, torch.get_num_threads()

    assert in_parallel(work, range(6), workers=2) == [(item, 1) for item in range(6)]
    assert torch.get_num_threads() == 2


def test_one_item_or_one_worker_needs_no_thread_of_its_own(two_threads):
    here = threading.get_ident()
    assert in_parallel(lambda _: threading.get_ident(), [1], workers=2) == [here]
    assert in_parallel(lambda _: threading.get_ident(), [1, 2], workers=1) == [here, here]


def test_an_error_in_one_batch_ends_the_rest_and_reaches_the_caller(two_threads):
    done = []

    def work(item: int) -> None:
        if item == 0:
            raise ValueError("no")
        done.append(item)

    with pytest.raises(ValueError, match="no"):
        in_parallel(work, range(1000), workers=2)
    assert len(done) < 1000
    assert torch.get_num_threads() == 2


# A20 G02: whatever the batch, and whichever thread has it
@pytest.mark.parametrize("batch_size", [1, 3, 12])
def test_translations_do_not_depend_on_the_threads(
    translator, pairs, batch_size, two_threads, monkeypatch
):
    monkeypatch.setattr(module, "SMALLEST_BATCH", 2)
    sources = [pair.source for pair in pairs]
    parallel = translator.translate(sources, batch_size=batch_size)
    backwards = translator.translate(sources[::-1], batch_size=batch_size)[::-1]
    torch.set_num_threads(1)
    assert parallel == backwards == translator.translate(sources, batch_size=batch_size)
    assert parallel == [pair.target for pair in pairs]


def test_a_model_in_training_has_no_dropout_while_several_threads_search(
    translator, pairs, two_threads, monkeypatch
):
    monkeypatch.setattr(module, "SMALLEST_BATCH", 1)
    sources = [pair.source for pair in pairs] * 4
    translator.model.train()
    for dropout in (each for each in translator.model.modules() if hasattr(each, "of_256")):
        monkeypatch.setattr(dropout, "of_256", 128)
    try:
        outputs = translator.translate(sources, batch_size=2)
        assert translator.model.training
    finally:
        translator.model.eval()
    assert outputs == [pair.target for pair in pairs] * 4
