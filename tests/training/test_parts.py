"""A batch in parts on several threads: the same sums as in one piece, and reproducible."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.testing import assert_close

from translate.model.layers import Dropout, drawing_from
from translate.model.transformer import Transformer
from translate.training import parts
from translate.training.batching import Batch
from translate.training.objective import Loss, label_smoothed_cross_entropy
from translate.training.parts import how_many, loss_in_parts, split

PAD = 0


@pytest.fixture
def two_threads(monkeypatch) -> Iterator[None]:
    monkeypatch.setattr(parts, "SMALLEST", 8)
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def batch(*lengths: tuple[int, int]) -> Batch:
    """A row of these lengths each, of random pieces."""
    longest = [max(each) for each in zip(*lengths, strict=True)]
    src, tgt_out = (torch.randint(4, 23, (len(lengths), length)) for length in longest)
    for row, (s, t) in enumerate(lengths):
        src[row, s:] = PAD
        tgt_out[row, t:] = PAD
    tgt_in = torch.cat([torch.full((len(lengths), 1), 2), tgt_out[:, :-1]], dim=1)
    tgt_in[tgt_out == PAD] = PAD
    return Batch(src, tgt_in, tgt_out, torch.arange(len(lengths)))


RAGGED = ((5, 2), (1, 7), (4, 4), (2, 2), (5, 7))


def loss_of(model: Transformer):
    def loss(of: Batch) -> Loss:
        hidden = model.decode(of.tgt_in, *model.encode(of.src))
        real = of.tgt_out != PAD
        return label_smoothed_cross_entropy(
            hidden[real], model.embedding.weight, of.tgt_out[real], 0.1
        )

    return loss


def gradients(model: Transformer, summed: Loss) -> list[torch.Tensor]:
    model.zero_grad()
    (2 * summed.loss).backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("lengths", [RAGGED, RAGGED[:2], ((3, 3),)])
def test_sums_and_gradients_are_those_of_the_whole_batch(two_threads, model, lengths):  # A20
    given = batch(*lengths)
    whole = loss_of(model)(given)
    expected = gradients(model, whole)
    summed = loss_in_parts(loss_of(model), given, PAD, list(model.parameters()))
    found = gradients(model, summed)
    assert summed.count == whole.count
    assert_close((summed.loss, summed.nll), (whole.loss, whole.nll))
    assert_close(found, expected)
    assert not summed.nll.requires_grad


def test_every_row_is_in_one_part_without_padding_that_the_part_does_not_need():
    given = batch(*RAGGED)
    halves = split(given, PAD, 2)
    assert sorted(torch.cat([half.indices for half in halves]).tolist()) == [0, 1, 2, 3, 4]
    for half in halves:
        for part, whole in zip(
            (half.src, half.tgt_in, half.tgt_out),
            (given.src, given.tgt_in, given.tgt_out),
            strict=True,
        ):
            assert (part[:, -1] != PAD).any()
            padded = torch.nn.functional.pad(part, (0, whole.shape[1] - part.shape[1]), value=PAD)
            assert torch.equal(padded, whole[half.indices])
    assert len(split(batch((3, 3)), PAD, 2)) == 1


@pytest.mark.parametrize(
    ("threads", "tokens", "expected"),
    [(1, 9000, 1), (2, 2990, 1), (2, 3000, 2), (4, 4500, 2), (3, 4400, 1), (6, 8000, 3)],
)
def test_parts_are_large_enough_and_share_the_threads_evenly(
    monkeypatch, threads, tokens, expected
):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    ids = torch.ones(tokens // 10, 5, dtype=torch.int64)
    assert how_many(Batch(ids, ids, ids, ids[:, 0])) == expected
    ids = ids.to("meta")  # not the processor's memory
    assert how_many(Batch(ids, ids, ids, ids[:, 0])) == 1


def test_the_seed_decides_the_dropout_masks_and_every_step_has_others(two_threads, config):
    model = Transformer(config(dropout=0.5)).train()
    given = batch(*RAGGED)

    def two_steps(seed: int) -> list[float]:
        torch.manual_seed(seed)
        steps = [
            loss_in_parts(loss_of(model), given, PAD, list(model.parameters())) for _ in range(2)
        ]
        return [step.loss.item() for step in steps]

    first = two_steps(1)
    assert two_steps(1) == first
    assert len({*first, *two_steps(2)}) == 4


def test_each_part_draws_masks_of_its_own():
    dropout = Dropout(0.5).train()

    def mask(seed: int) -> torch.Tensor:
        with drawing_from(seed):
            return dropout(torch.ones(64))

    assert torch.equal(mask(1), mask(1))
    assert not torch.equal(mask(1), mask(2))
    before = torch.get_rng_state()
    mask(1)
    assert torch.equal(torch.get_rng_state(), before)  # PyTorch's own was not asked
    dropout(torch.ones(64))
    assert not torch.equal(torch.get_rng_state(), before)  # and is, afterwards


def test_the_parts_compute_in_the_precision_of_the_step(two_threads, model):
    given = batch(*RAGGED)
    seen = []

    def loss(of: Batch) -> Loss:
        hidden = model.decode(of.tgt_in, *model.encode(of.src))
        seen.append(model.logits(hidden).dtype)
        return loss_of(model)(of)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss_in_parts(loss, given, PAD, list(model.parameters()))
    loss_in_parts(loss, given, PAD, list(model.parameters()))
    assert seen == [torch.bfloat16] * 2 + [torch.float32] * 2


def test_what_is_frozen_gets_no_gradient_and_an_error_reaches_the_caller(two_threads, model):
    model.encoder.requires_grad_(False)
    given = batch(*RAGGED)
    loss_in_parts(loss_of(model), given, PAD, list(model.parameters())).loss.backward()
    assert all(parameter.grad is None for parameter in model.encoder.parameters())
    assert all(parameter.grad is not None for parameter in model.decoder.parameters())

    def fails(_: Batch) -> Loss:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        loss_in_parts(fails, given, PAD, list(model.parameters()))
    assert torch.get_num_threads() == 2
