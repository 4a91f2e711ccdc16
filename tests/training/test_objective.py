"""Label-smoothed cross entropy as sums."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from translate.training.batching import Batch
from translate.training.module import TranslationModule
from translate.training.objective import label_smoothed_cross_entropy


def assert_same_gradients(ours, theirs, inputs) -> None:
    for a, b in zip(
        torch.autograd.grad(3 * ours, inputs), torch.autograd.grad(3 * theirs, inputs), strict=True
    ):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("chunk", [1, 4, 9, 1000])
def test_the_loss_is_pytorchs_and_so_are_its_gradients(smoothing, chunk, monkeypatch):
    monkeypatch.setattr("translate.training.objective.CHUNK", chunk)
    hidden = torch.randn(9, 6, requires_grad=True)
    weight = torch.randn(23, 6, requires_grad=True)
    targets = torch.randint(23, (9,))
    ours = label_smoothed_cross_entropy(hidden, weight, targets, smoothing)
    logits = hidden @ weight.T
    theirs = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(ours.loss, theirs)
    torch.testing.assert_close(ours.nll, F.cross_entropy(logits, targets, reduction="sum"))
    assert ours.count == 9
    assert_same_gradients(ours.loss, theirs, (hidden, weight))


def test_it_equals_the_library_in_chunks_with_the_smoothing_term_beside_it():
    hidden = torch.randn(9, 6, requires_grad=True)
    weight = torch.randn(23, 6, requires_grad=True)
    targets = torch.randint(23, (9,))
    ours = label_smoothed_cross_entropy(hidden, weight, targets, 0.1).loss
    options = nn.LinearCrossEntropyOptions(chunking_method=None, batch_chunk_size=4)
    theirs = F.linear_cross_entropy(hidden, weight, targets, reduction="sum", options=options)
    even = hidden.sum(0) @ weight.mean(0)
    theirs = theirs + 0.1 * ((hidden * weight[targets]).sum() - even)
    torch.testing.assert_close(ours, theirs)
    assert_same_gradients(ours, theirs, (hidden, weight))


def test_the_loss_without_gradients_is_the_same():
    hidden, weight = torch.randn(9, 6), torch.randn(23, 6)
    targets = torch.randint(23, (9,))
    without = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    with_gradients = label_smoothed_cross_entropy(hidden, weight.requires_grad_(), targets, 0.1)
    assert without.loss == with_gradients.loss.detach()
    assert not without.loss.requires_grad


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_every_precision_gets_gradients_of_its_own_type(dtype):
    hidden = torch.randn(9, 6, dtype=dtype, requires_grad=True)
    weight = torch.randn(23, 6, dtype=dtype, requires_grad=True)
    targets = torch.randint(23, (9,))
    loss = label_smoothed_cross_entropy(hidden, weight, targets, 0.1).loss
    loss.backward()
    exact = [part.detach().double().requires_grad_() for part in (hidden, weight)]
    expected = F.cross_entropy(exact[0] @ exact[1].T, targets, label_smoothing=0.1, reduction="sum")
    expected.backward()
    rough = {} if dtype == torch.float64 else {"atol": 0.05, "rtol": 0.05}
    torch.testing.assert_close(loss.double(), expected, **rough)
    for ours, theirs in zip((hidden, weight), exact, strict=True):
        assert ours.grad.dtype == dtype
        torch.testing.assert_close(ours.grad.double(), theirs.grad, **rough)


class MatrixProducts(TorchDispatchMode):
    """Notes the types of the factors of every product."""

    def __init__(self) -> None:
        super().__init__()
        self.types: list[torch.dtype] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "mm" in str(function):
            self.types += [factor.dtype for factor in args]
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision_multiplies_in_half_a_float_and_sums_in_a_whole_one(dtype, monkeypatch):
    monkeypatch.setattr("translate.training.objective.CHUNK", 100)
    hidden = torch.randn(300, 16, requires_grad=True)
    weight = torch.randn(500, 16, requires_grad=True)
    targets = torch.randint(500, (300,))
    exact = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    with MatrixProducts() as products, torch.autocast("cpu", dtype):
        mixed = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    assert products.types == [dtype, dtype] * 9  # three products a chunk
    assert mixed.loss.dtype == torch.float32
    torch.testing.assert_close(mixed.loss, exact.loss, rtol=1e-3, atol=0)
    for ours, theirs in zip(
        torch.autograd.grad(mixed.loss, (hidden, weight)),
        torch.autograd.grad(exact.loss, (hidden, weight)),
        strict=True,
    ):
        assert ours.dtype == torch.float32
        assert float((ours - theirs).norm() / theirs.norm()) < 0.01


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_extreme_logits_give_a_finite_loss_and_gradient(scale):  # T05
    hidden = (torch.eye(5) * scale).requires_grad_()
    loss = label_smoothed_cross_entropy(hidden, torch.eye(5), torch.arange(5), 0.1).loss
    loss.backward()
    assert loss.isfinite()
    assert hidden.grad.isfinite().all()


def test_no_target_at_all_costs_nothing_and_poisons_nothing():  # T06
    hidden, weight = torch.randn(0, 3, requires_grad=True), torch.ones(5, 3, requires_grad=True)
    nothing = torch.zeros(0, dtype=torch.int64)
    result = label_smoothed_cross_entropy(hidden, weight, nothing, 0.1)
    result.loss.backward()
    assert [part.item() for part in result[:2]] == [0.0, 0.0]
    assert weight.grad.eq(0).all()


@pytest.fixture
def module(model):
    module = TranslationModule(d_model=16)
    module.model = model
    return module


def padded(row: list[int], width: int) -> list[int]:
    return row + [0] * (width - len(row))


def test_pad_columns_and_their_absence_leave_the_loss_the_same(module):  # T04 T05
    def loss(width: int):
        rows = [[5, 6, 7], [8, 9, 3]]
        tgt_in = torch.tensor([padded([2, *row[:-1]], width) for row in rows])
        tgt_out = torch.tensor([padded(row, width) for row in rows])
        src = torch.tensor([padded([4, 3], width)] * 2)
        return module.loss(Batch(src, tgt_in, tgt_out))

    bare, wide = loss(3), loss(13)
    assert bare.count == wide.count == 6
    torch.testing.assert_close(wide.loss, bare.loss, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(wide.nll, bare.nll, rtol=1e-6, atol=1e-6)


def test_two_batches_cost_what_one_big_batch_costs(module):  # T08
    def loss(rows: list[int]):
        targets = [[5, 6, 7, 3], [8, 3, 0, 0], [9, 9, 3, 0]]
        tgt_out = torch.tensor([targets[row] for row in rows])
        tgt_in = torch.cat([torch.full((len(rows), 1), 2), tgt_out[:, :-1]], dim=1)
        return module.loss(Batch(torch.tensor([[4, 3]] * len(rows)), tgt_in, tgt_out))

    parts, whole = [loss([0]), loss([1, 2])], loss([0, 1, 2])
    torch.testing.assert_close(parts[0].loss + parts[1].loss, whole.loss)
    assert parts[0].count + parts[1].count == whole.count == 9
