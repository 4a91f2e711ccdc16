"""A seed decides the order; no source sentence is on two sides of a split."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translate.errors import UserError
from translate.text.corpus import Pair
from translate.text.normalize import fold
from translate.text.split import shuffled, split_by_source

pair_lists = st.lists(
    st.builds(Pair, st.sampled_from("aAbcdefgh") | st.just(" a "), st.sampled_from("abxyz ")),
    min_size=2,
)


def test_an_order_depends_on_the_seed_alone():
    # Written down to notice a Python that draws otherwise: old runs could not be resumed.
    assert shuffled(8, "seed") == [4, 0, 1, 3, 7, 6, 2, 5]
    assert shuffled(8, "other") != shuffled(8, "seed")
    assert sorted(shuffled(1000, "seed")) == list(range(1000))


@given(pairs=pair_lists, held_out=st.integers(0, 5), seed=st.integers())
def test_a_split_loses_nothing_and_shares_no_source(pairs, held_out, seed):  # D13 D14
    try:
        train, held = split_by_source(pairs, held_out=held_out, seed=seed)
    except UserError:
        return
    assert Counter(train) + Counter(held) == Counter(pairs)
    assert len(held) >= held_out
    assert train
    assert not {fold(pair.source) for pair in train} & {fold(pair.source) for pair in held}
    assert all(fold(p.source) != fold(p.target) and fold(p.target) for p in held)


def test_a_corpus_with_every_pair_twice_splits_without_overlap():  # D13
    pairs = [Pair(f"s {n}", f"t {n}") for n in range(50)]
    doubled = [*pairs, *(Pair(p.source.upper() + " ", p.target) for p in pairs)]
    train, held = split_by_source(doubled, held_out=10, seed=1)
    assert (len(train), len(held)) == (90, 10)
    assert not {fold(pair.source) for pair in train} & {fold(pair.source) for pair in held}


def test_blank_and_copied_pairs_are_never_held_out():  # D14
    pairs = [Pair(f"s{n}", f"t{n}") for n in range(80)]
    pairs += [Pair(f"c{n}", f"C{n} ") for n in range(10)] + [Pair("b", "\u200b")] * 10
    train, held = split_by_source(pairs, held_out=80, seed=0)
    assert sorted(held) == sorted(pairs[:80])
    assert len(train) == 20


def test_a_split_is_the_same_each_time_and_another_with_another_seed():
    pairs = [Pair(f"s{n}", f"t{n}") for n in range(100)]
    first = split_by_source(pairs, held_out=10, seed=0)
    assert split_by_source(pairs, held_out=10, seed=0) == first
    assert split_by_source(pairs, held_out=10, seed=1) != first


@pytest.mark.parametrize("count", [2, 3])
def test_two_and_three_pairs_leave_something_to_train_on(count):  # D14
    pairs = [Pair(f"s{n}", f"t{n}") for n in range(count)]
    train, held = split_by_source(pairs, held_out=1, seed=0)
    assert (len(train), len(held)) == (count - 1, 1)


@pytest.mark.parametrize(("count", "held_out"), [(1, 1), (3, 3), (3, 500)])
def test_a_split_that_leaves_nothing_is_refused(count, held_out):  # D14
    pairs = [Pair(f"s{n}", f"t{n}") for n in range(count)]
    with pytest.raises(UserError, match=f"cannot hold out {held_out} of {count} pair"):
        split_by_source(pairs, held_out=held_out, seed=0)


def test_a_single_pair_is_told_to_bring_validation_data_and_not_to_hold_out_fewer():
    with pytest.raises(UserError) as caught:
        split_by_source([Pair("One", "Eins")], held_out=1, seed=1)
    assert str(caught.value) == (
        "cannot hold out 1 of 1 pair: at least one pair with another source sentence must remain "
        "to train on; add pairs, or set data.valid to a file of validation pairs"
    )


def test_the_pairs_that_can_be_held_out_are_counted():
    pairs = [Pair(f"s{n}", f"t{n}") for n in range(3)] + [Pair("c", "C")] * 7
    with pytest.raises(UserError, match=r"only 3 are neither .* lower data\.held_out"):
        split_by_source(pairs, held_out=4, seed=1)
