"""Limits on the RAM and the operations of training and decoding, counted by torch.profiler.

No test measures time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from translate.decoding.beam import BeamSearch
from translate.decoding.prefix import Prefix
from translate.decoding.search import GreedySearch, SearchInputs
from translate.model.attention import MultiHeadAttention
from translate.model.transformer import Transformer, TransformerConfig
from translate.training.batching import Batch
from translate.training.module import TranslationModule

V = 1009
LAYERS, D = 4, 128


class Cost(NamedTuple):
    """The operations that ran, and the largest allocation of one of them, in float32 elements."""

    operations: list[str]
    largest: int


def cost(work: Callable[[], object]) -> Cost:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    events = profiler.events()
    allocated = max(event.self_cpu_memory_usage for event in events)
    return Cost([event.name for event in events if event.name != "[memory]"], allocated // 4)


def transformer(dropout: float = 0.0) -> Transformer:
    shape = {"encoder_layers": LAYERS, "decoder_layers": LAYERS, "d_model": D, "max_length": 600}
    return Transformer(TransformerConfig(V, 0, dropout=dropout, **shape)).eval()


def inputs(rows: int, length: int, never: tuple[int, ...]) -> SearchInputs:
    src = torch.randint(4, V, (rows, length))
    src[0, -2:] = 0  # padding
    prefixes = [Prefix()] * rows
    return SearchInputs(src, [40] * rows, prefixes, bos_id=2, eos_id=3, never=never)


def greedy_search(rows: int, length: int, *, steps: int) -> GreedySearch:
    never = (0, 1, 2, 3)  # without eos, every step has all rows
    search = GreedySearch(transformer(), inputs(rows, length, never))
    for _ in range(steps):
        search.advance()
    return search


def test_a_later_decode_step_has_no_more_operations():
    search = greedy_search(rows=8, length=9, steps=2)
    early = cost(search.advance).operations
    for _ in range(10):
        search.advance()
    assert cost(search.advance).operations == early


def test_a_decode_step_allocates_nothing_larger_than_the_logits():
    search = greedy_search(rows=8, length=200, steps=20)  # a layer's keys are 8 x 200 x 128
    assert cost(search.advance).largest <= 8 * V


def test_dropping_a_row_of_the_cache_copies_at_most_one_row():
    search = greedy_search(rows=8, length=50, steps=10)
    search.hypotheses[2].end = len(search.hypotheses[2].ids)
    copied = cost(search.advance).largest
    assert len(search.running) == 7
    assert copied <= max(LAYERS * 2 * 50 * D, 8 * V)  # keys and values of one source, or logits


def test_a_step_of_a_beam_neither_makes_nor_moves_the_keys_of_the_sources():
    never = (0, 1, 2)
    search = BeamSearch(transformer(), inputs(8, 400, never), beam=5, length_penalty=1.0)
    for _ in range(5):
        search.advance()
    assert len(search.running) > 8
    assert cost(search.advance).largest < 8 * 400 * D  # the keys of one layer


def training_step(rows: int, length: int, explicit_up_to: int | None = None) -> Cost:
    """A forward and a backward pass, with dropout."""
    module = TranslationModule()
    module.model = transformer(dropout=0.1).train()
    for layer in module.model.modules():
        if isinstance(layer, MultiHeadAttention) and explicit_up_to is not None:
            layer.explicit_up_to = explicit_up_to
    ids = torch.randint(4, V, (rows, length))
    batch = Batch(src=ids, tgt_in=ids, tgt_out=ids)
    return cost(lambda: module.loss(batch).loss.backward())


def test_the_logits_of_a_whole_batch_never_exist():
    rows, length = 150, 20
    assert training_step(rows, length).largest < rows * length * V // 2


@pytest.mark.parametrize(("explicit_up_to", "exist"), [(None, False), (400, True)])
def test_long_sentences_build_no_matrix_of_scores(explicit_up_to, exist):
    rows, length, heads = 3, 400, 4
    largest = training_step(rows, length, explicit_up_to).largest
    assert (largest >= rows * heads * length * length) == exist
