"""Greedy search over ids: the cache, the batch, the limits and the end."""

from __future__ import annotations

import time

import pytest
import torch

from translate.decoding.incremental import PlainDecoder
from translate.decoding.prefix import Prefix
from translate.decoding.search import GreedySearch, SearchInputs
from translate.model.transformer import Transformer

PAD, UNK, BOS, EOS = range(4)
NEVER = (PAD, UNK, BOS)


def sources(count: int, length: int = 7) -> torch.Tensor:
    """Random sources of length 2 to `length` with eos, padded."""
    rows = torch.full((count, length), PAD)
    for row in rows:
        size = int(torch.randint(1, length, ()))
        row[:size] = torch.randint(4, 23, (size,))
        row[size] = EOS
    return rows


def search(model, src, *, limits=None, prefixes=None, never=NEVER, decoder=None) -> GreedySearch:
    inputs = SearchInputs(
        src,
        limits=limits or [12] * len(src),
        prefixes=prefixes or [Prefix()] * len(src),
        bos_id=BOS,
        eos_id=EOS,
        never=never,
    )
    return GreedySearch(model, inputs, decoder=decoder)


# A08, A11
def test_the_cached_search_equals_the_plain_one_step_by_step(model):
    for src in sources(20):
        cached = search(model, src[None])
        plain = search(model, src[None], decoder=PlainDecoder(model, src[None]))
        while cached.running:
            found, expected = cached.advance(), plain.advance()
            assert found.isfinite().sum() == 20
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        assert cached.hypotheses == plain.hypotheses


# A12
def test_a_prefix_read_in_one_go_equals_one_read_piece_by_piece(model):
    src = sources(1)
    prefix = Prefix([5, 9, 14, 7])
    at_once = search(model, src, prefixes=[prefix])
    first = at_once.advance()

    beside_an_empty_one = search(model, src.repeat(2, 1), prefixes=[prefix, Prefix()])
    for _ in range(5):
        logits = beside_an_empty_one.advance()[:1]
    torch.testing.assert_close(logits, first, atol=1e-5, rtol=1e-5)
    assert beside_an_empty_one.run()[0] == at_once.run()[0]


# A20, G02, G09
def test_a_batch_of_unequal_sources_prefixes_and_limits_equals_each_alone(model):
    src = sources(9)
    prefixes = [Prefix(range(5, 5 + n % 4)) for n in range(9)]
    limits = [3 + n for n in range(9)]
    together = search(model, src, prefixes=prefixes, limits=limits).run()
    for n in range(9):
        alone = search(model, src[n : n + 1], prefixes=prefixes[n : n + 1], limits=limits[n:][:1])
        assert alone.run() == [together[n]]
        (hypothesis,) = together[n]
        assert hypothesis.ids[: n % 4] == list(prefixes[n].pieces)
        assert len(hypothesis.ids) <= n % 4 + limits[n]


# G01, G04
def test_one_call_a_piece_and_one_for_the_end_and_no_special_piece(config, scripted):
    model = scripted(config(), [7, 8, 9, EOS])
    ((hypothesis,),) = search(model, sources(1)).run()
    assert hypothesis.ids == [7, 8, 9]
    assert hypothesis.finished
    assert model.calls == 4


def test_a_sentence_that_ends_exactly_at_the_limit_is_finished(config, scripted):
    ((hypothesis,),) = search(scripted(config(), [7, 8, EOS]), sources(1), limits=[2]).run()
    assert hypothesis.ids == [7, 8] and hypothesis.finished
    ((hypothesis,),) = search(scripted(config(), [7, 8, 9, EOS]), sources(1), limits=[2]).run()
    assert hypothesis.ids == [7, 8] and not hypothesis.finished


# G09
def test_the_limit_counts_what_comes_after_the_prefix(config, scripted):
    model = scripted(config(), [7] * 32)
    ((hypothesis,),) = search(model, sources(1), limits=[2], prefixes=[Prefix([5, 6, 5])]).run()
    assert hypothesis.ids == [5, 6, 5, 7, 7]


# A24
def test_the_search_never_goes_beyond_the_positions_of_the_model(config, scripted):
    model = scripted(config(max_length=9), [7] * 9)
    ((hypothesis,),) = search(model, sources(1), limits=[500], prefixes=[Prefix([5, 6, 5])]).run()
    assert len(hypothesis.ids) == 8
    assert not hypothesis.finished


# G03
def test_an_untrained_model_stops_at_the_limit_and_says_so(config):
    started = time.monotonic()
    found = search(Transformer(config()).eval(), sources(5), never=(*NEVER, EOS)).run()
    assert [len(hypothesis.ids) for (hypothesis,) in found] == [12] * 5
    assert not any(hypothesis.finished for (hypothesis,) in found)
    assert time.monotonic() - started < 5


def test_a_model_in_training_mode_is_refused(config):
    with pytest.raises(ValueError, match="training mode"):
        search(Transformer(config()), sources(1))


# G06
@pytest.mark.parametrize(("encoder_layers", "decoder_layers"), [(1, 3), (3, 1)])
def test_encoder_and_decoder_may_differ_in_depth(config, encoder_layers, decoder_layers):
    shape = {"encoder_layers": encoder_layers, "decoder_layers": decoder_layers}
    model = Transformer(config(**shape)).eval()
    src = sources(2)
    decoder = PlainDecoder(model, src)
    plain = search(model, src, decoder=decoder).run()
    assert len(decoder.record.cross) == decoder_layers
    assert search(model, src).run() == plain
