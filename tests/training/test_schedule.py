"""The learning rate of every update."""

from __future__ import annotations

import math

import pytest

from translate.training.schedule import learning_rate


def rates(count: int, *, warmup: int, total: float) -> list[float]:
    return [
        learning_rate(step, peak=0.5, warmup_steps=warmup, total_steps=total)
        for step in range(count)
    ]


def test_it_rises_in_even_steps_to_the_peak_and_falls_in_even_steps_to_zero():  # T10
    assert rates(11, warmup=4, total=10) == pytest.approx(
        [0.125, 0.25, 0.375, 0.5, *(0.5 * left / 6 for left in (6, 5, 4, 3, 2, 1, 0))]
    )


def test_the_first_update_is_at_most_a_warmup_step():  # T11
    assert rates(1, warmup=100, total=1000) == [0.5 / 100]


def test_no_warmup_begins_at_the_peak():  # T11
    assert rates(2, warmup=0, total=4) == [0.5, 0.375]


def test_a_warmup_longer_than_the_run_rises_to_the_end():  # T11
    values = rates(5, warmup=10, total=5)
    assert values == sorted(values)
    assert values[0] > 0


@pytest.mark.parametrize("warmup", [0, 3, 5])
@pytest.mark.parametrize("total", [1, 3, 5])
def test_no_combination_divides_by_zero_or_goes_below_it(warmup, total):  # T11 T12
    assert all(0 <= rate <= 0.5 for rate in rates(2 * total + 2, warmup=warmup, total=total))


def test_a_run_without_an_end_stays_at_the_peak():
    assert rates(5, warmup=2, total=math.inf) == [0.25, 0.5, 0.5, 0.5, 0.5]
