"""What training and decoding may cost, counted in operations and tensor sizes, never in seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from translate.decoding.beam import BeamSearch
from translate.decoding.prefix import Prefix
from translate.decoding.search import GreedySearch
from translate.model.transformer import Transformer, TransformerConfig
from translate.training.batching import Batch
from translate.training.module import TranslationModule

V = 1009  # no other size here, so that logits are known by it


class Watch(TorchDispatchMode):
    """Notes every operation that computes something, and the shape of every new tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[str] = []
        self.shapes: list[torch.Size] = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        results = operation(*args, **(kwargs or {}))
        returned = operation._schema.returns
        alias = returned[0].alias_info if returned else None
        if alias is None or alias.is_write:  # otherwise a view, which is no work
            self.operations.append(str(operation))
        if alias is None:
            results_ = results if isinstance(results, tuple | list) else [results]
            self.shapes += [each.shape for each in results_ if isinstance(each, torch.Tensor)]
        return results

    @property
    def largest(self) -> int:
        return max(shape.numel() for shape in self.shapes)


def watched(work: Callable[[], object]) -> Watch:
    with Watch() as watch:
        work()
    return watch


def transformer(**changes) -> Transformer:
    settings = {"encoder_layers": 4, "decoder_layers": 4, "dropout": 0.0, "max_length": 600}
    return Transformer(TransformerConfig(V, 0, **{**settings, **changes})).eval()


def search(model: Transformer, rows: int, length: int = 9) -> GreedySearch:
    src = torch.randint(4, V, (rows, length))
    src[0, -2:] = 0  # so that there is padding
    never = (0, 1, 2, 3)  # no eos: every step has all rows
    return GreedySearch(
        model, src, bos_id=2, eos_id=3, never=never,
        limits=[40] * rows, prefixes=[Prefix()] * rows,
    )  # fmt: skip


def test_operations_of_a_decode_step():
    """A layer: 3 norms, 6 products, 2 attentions, 3 sums, ReLU, the copy into the cache, and what
    brings tensors into shape. No more of them with every position."""
    running = search(transformer(), 8)
    running.advance()
    watch = watched(running.advance)
    assert len(watch.operations) <= 4 * LAYER_OPERATIONS + OTHER_OPERATIONS, watch.operations
    for _ in range(5):
        running.advance()
    assert len(watched(running.advance).operations) == len(watch.operations)


def test_a_decode_step_makes_nothing_larger_than_the_logits():
    running = search(transformer(), 8, length=200)  # a layer's keys alone are 8 x 200 x 128
    for _ in range(20):
        running.advance()
    assert watched(running.advance).largest == 8 * V


def test_dropping_a_row_of_the_cache_copies_at_most_one_row():
    running = search(transformer(), 8, length=50)
    for _ in range(10):
        running.advance()
    running.hypotheses[2].end = len(running.hypotheses[2].ids)
    watch = watched(running.advance)
    assert len(running.running) == 7
    assert watch.largest == 4 * 2 * 50 * 128  # layers, keys and values, source, width


def test_a_step_of_a_beam_is_one_of_greedy_search_and_sorting():
    """The operations of a layer, to the seats and back; log-softmax and the best of each row
    instead of NumPy's argmax; past keys and values of the rows that change their place."""
    model = transformer()
    src = torch.randint(4, V, (8, 150))  # a source's keys alone are larger than its logits
    running = BeamSearch(
        model, src, bos_id=2, eos_id=3, never=(0, 1, 2), beam=5, length_penalty=1.0, wanted=5,
        limits=[40] * 8, prefixes=[Prefix()] * 8,
    )  # fmt: skip
    for _ in range(10):
        running.advance()
    rows = len(running.running)
    assert rows > 8
    watch = watched(running.advance)
    assert len(watch.operations) <= 4 * (LAYER_OPERATIONS + 2) + BEAM_OPERATIONS, watch.operations
    past = 4 * 2 * running._decoder._cache.length * 128  # layers, keys and values, width
    assert watch.largest <= max(rows * V, (rows - 8) * past)  # one of each source stays in place
    assert not [shape for shape in watch.shapes if 150 in shape]  # no memory is made or moved


def training_batch(rows: int, length: int) -> Batch:
    ids = torch.randint(4, V, (rows, length))
    return Batch(src=ids, tgt_in=ids, tgt_out=ids, indices=torch.arange(rows))


def watch_training(batch: Batch) -> Watch:
    """Of a forward and a backward pass, with dropout."""
    module = TranslationModule()
    module.model = transformer(dropout=0.1).train()
    return watched(lambda: module.loss(batch).loss.backward())


def test_logits_of_a_whole_batch_never_exist(monkeypatch):
    monkeypatch.setattr("translate.training.objective.CHUNK", 200)
    watch = watch_training(training_batch(rows=40, length=20))
    rows = [shape.numel() // V for shape in watch.shapes if shape and shape[-1] == V]
    assert max(rows) == 200  # and not 800


@pytest.mark.parametrize("length", [20, 300])
def test_long_sentences_build_no_matrix_of_scores(length):
    watch = watch_training(training_batch(rows=2, length=length))
    squares = [shape for shape in watch.shapes if shape[-2:] == (length, length)]
    assert bool(squares) == (length == 20)


# Measured; an operation more is a change to be weighed, not a number to be raised.
LAYER_OPERATIONS = 16
OTHER_OPERATIONS = 7
BEAM_OPERATIONS = 13
