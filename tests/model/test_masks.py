"""True means "may attend"; every mask of the program comes from here."""

from __future__ import annotations

import torch

from translate.model.masks import causal_mask, padding_mask

PAD = 3  # not 0, so that a hard-coded 0 would show


def test_padding_mask_keeps_exactly_the_real_positions():  # A04
    ids = torch.tensor([[7, 7, 7, 7, 7], [7, 7, 7, 7, 3], [7, 3, 3, 3, 3], [3, 3, 3, 3, 3]])
    mask = padding_mask(ids, PAD)
    assert mask.shape == (4, 1, 1, 5)
    assert mask.dtype == torch.bool
    assert mask.sum(-1).flatten().tolist() == [5, 4, 1, 0]


def test_token_zero_is_an_ordinary_token_when_pad_is_another():  # A22
    assert padding_mask(torch.tensor([[0, 3]]), PAD).flatten().tolist() == [True, False]


def test_causal_mask_is_the_lower_triangle():  # A09
    assert causal_mask(3)[0, 0].tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_causal_mask_of_new_positions_is_aligned_with_the_end():  # A11, A12
    assert causal_mask(2, 4)[0, 0].tolist() == [
        [True, True, True, False],
        [True, True, True, True],
    ]
    assert causal_mask(1, 4)[0, 0].tolist() == [[True, True, True, True]]
