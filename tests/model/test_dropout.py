"""Dropout: its share, its mean, its randomness, its gradient."""

from __future__ import annotations

import pytest
import torch

from translate.model.dropout import Dropout


@pytest.mark.parametrize("p", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_dropout_zeroes_its_share_and_keeps_the_mean(p):
    dropout = Dropout(p)
    x = torch.ones(400, 1001)
    kept = dropout(x)
    share = round(p * 256) / 256 if p < 0.998 else 255 / 256
    assert abs((kept == 0).float().mean() - share) < 0.004
    assert len(kept.unique()) <= 2
    assert abs(kept.mean() - 1) < 0.06
    assert dropout.eval()(x) is x


def test_dropout_is_as_random_along_every_axis_and_its_gradient_has_the_same_mask():
    dropout = Dropout(0.5)
    x = torch.ones(512, 512, requires_grad=True)
    output = dropout(x)
    output.sum().backward()
    assert torch.equal(output.detach(), x.grad)
    zero = (x.grad == 0).float()
    for axis in (0, 1):
        assert (zero.mean(axis) - 0.5).abs().max() < 0.12  # 5 standard deviations
    for lag in (1, 2, 4, 8, 64):  # neighbours of one 64-bit word, and of the next
        flat = zero.flatten() - 0.5
        assert abs((flat[lag:] * flat[:-lag]).mean() / 0.25) < 0.01
    assert not torch.equal(dropout(x.detach()), output.detach())
