"""Beam search over ids, compared with greedy search, all possible outputs and single sources."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from translate.decoding.beam import BeamSearch, ScoredHypothesis
from translate.decoding.prefix import PieceIndex, Prefix
from translate.decoding.search import GreedySearch, Hypothesis, SearchInputs
from translate.model.transformer import Transformer

PAD, UNK, BOS, EOS = range(4)
NEVER = (PAD, UNK, BOS)
PENALTIES = [0.0, 0.6, 1.0, 2.0]


def sources(count: int, vocab_size: int = 23, length: int = 7) -> torch.Tensor:
    """Random sources of length 2 to `length` with eos, padded."""
    rows = torch.full((count, length), PAD)
    for row in rows:
        size = int(torch.randint(1, length, ()))
        row[:size] = torch.randint(4, vocab_size, (size,))
        row[size] = EOS
    return rows


def inputs(src, limits=None, prefixes=None, never=NEVER) -> SearchInputs:
    return SearchInputs(
        src,
        limits=limits or [12] * len(src),
        prefixes=prefixes or [Prefix()] * len(src),
        bos_id=BOS,
        eos_id=EOS,
        never=never,
    )


def search(model, src, beam, length_penalty=1.0, wanted=1, **given) -> list[list[ScoredHypothesis]]:
    given = inputs(src, **given)
    return BeamSearch(model, given, beam=beam, length_penalty=length_penalty, wanted=wanted).run()


def log_probability(model, src, hypothesis: Hypothesis) -> float:
    """Log probability of the pieces after the prefix and of eos, from one forward pass."""
    ids, given = hypothesis.ids, len(hypothesis.prefix.pieces)
    with torch.inference_mode():
        logits = model(src[None], torch.tensor([[BOS, *ids]]))[0]
        logits[:, list(NEVER)] = -torch.inf
        chances = logits.log_softmax(dim=-1)[range(len(ids) + 1), [*ids, EOS]]
    return float(chances[given:].double().sum())


def outcomes(found: list[list[ScoredHypothesis]]) -> list[list[tuple]]:
    """Scores with four digits: the last digits depend on the shapes of the matrix products."""
    return [[(each.ids, each.finished, round(each.score, 4)) for each in one] for one in found]


def lively(model: Transformer) -> Transformer:
    """Make an untrained model write various pieces and end, instead of repeating one piece."""
    with torch.no_grad():
        for matrix in model.decoder.parameters():
            if matrix.dim() > 1:
                matrix.mul_(6)
        model.embedding.weight.mul_(20)
        end = model.embedding.weight[EOS]
        model.decoder_norm.bias.copy_(end / end.norm())
    return model.eval()


@pytest.fixture
def model(config) -> Transformer:
    return lively(Transformer(config()))


@pytest.fixture
def tiny(config) -> Transformer:
    """A model with three ordinary pieces, so that all outputs can be tried."""
    return lively(Transformer(config(vocab_size=7)))


# G16
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy_search(config, seed):
    torch.manual_seed(seed)
    model = lively(Transformer(config()))
    src = sources(12)
    given = {
        "limits": [1 + n for n in range(12)],
        "prefixes": [Prefix(range(5, 5 + n % 4)) for n in range(12)],
    }
    greedy = GreedySearch(model, inputs(src, **given)).run()
    assert {one.finished for (one,) in greedy} == {True, False}
    for length_penalty in PENALTIES:
        found = search(model, src, 1, length_penalty, **given)
        assert [len(one) for one in found] == [1] * 12
        assert [(one.ids, one.finished) for (one,) in found] == [
            (one.ids, one.finished) for (one,) in greedy
        ]


@pytest.fixture
def in_words(translator) -> tuple[Transformer, SearchInputs]:
    """A search whose prefixes end within a word, on the model that knows its sentences."""
    tokenizer, index = translator.tokenizer, PieceIndex(translator.tokenizer)
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
    assert special == (PAD, UNK, BOS, EOS)
    src = torch.tensor([[*tokenizer.encode("This is an example"), EOS]] * 5)
    prefixes = [Prefix.of(text, index) for text in ("Das ist ei", "Hau", "Nein", "Das ", "b")]
    return translator.model, inputs(src, limits=[1, 2, 3, 1, 30], prefixes=prefixes)


def test_a_beam_of_one_is_greedy_search_within_the_characters_of_a_prefix(in_words):
    greedy = GreedySearch(*in_words).run()
    found = BeamSearch(*in_words, beam=1, length_penalty=1.0).run()
    assert {one.finished for (one,) in greedy} == {True, False}
    assert [(one.ids, one.finished) for (one,) in found] == [
        (one.ids, one.finished) for (one,) in greedy
    ]


def test_the_characters_of_a_prefix_count_with_what_the_model_gives_them(in_words):
    """Probabilities are not renormalised over allowed pieces: that would favour odd spellings."""
    found = BeamSearch(*in_words, beam=5, length_penalty=1.0, wanted=5).run()
    model, given = in_words
    for source, ranked in zip(given.src, found, strict=True):
        assert len(ranked) == 5
        for one in ranked:
            expected = log_probability(model, source, one)
            assert one.log_probability == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("given", [(), (5,), (6, 4, 6)])
def test_a_beam_wide_enough_for_all_finds_what_trying_all_finds(tiny, length_penalty, given):
    src = sources(2, vocab_size=7)
    prefixes = [Prefix(given)] * 2
    found = search(tiny, src, 120, length_penalty, 120, limits=[3] * 2, prefixes=prefixes)
    for source, ranked in zip(src, found, strict=True):
        everything = []
        for size in range(4):
            for chosen in product((4, 5, 6), repeat=size):
                one = Hypothesis(prefixes[0], "", 0, [*given, *chosen])
                score = log_probability(tiny, source, one) / (size + 1) ** length_penalty
                everything.append((score, one.ids))
        everything.sort(reverse=True)
        assert len(ranked) == len(everything) == 40
        assert [one.ids for one in ranked[:10]] == [ids for _, ids in everything[:10]]
        scores = [one.score for one in ranked]
        assert scores == pytest.approx([score for score, _ in everything], abs=1e-4)
    best = search(tiny, src, 120, length_penalty, limits=[3] * 2, prefixes=prefixes)
    assert [one[0].ids for one in best] == [ranked[0].ids for ranked in found]
    for beam in (1, 2, 3, 10):
        narrow = search(tiny, src, beam, length_penalty, limits=[3] * 2, prefixes=prefixes)
        for one, ranked in zip(narrow, found, strict=True):
            assert one[0].score <= ranked[0].score + 1e-4


@pytest.mark.parametrize("length_penalty", PENALTIES)
def test_to_stop_early_loses_nothing(model, length_penalty):
    src = sources(20)
    for beam in (2, 5):
        early = search(model, src, beam, length_penalty)
        late = search(model, src, beam, length_penalty, wanted=beam)
        for one, ranked in zip(early, late, strict=True):
            assert outcomes([one[:1]]) == outcomes([ranked[:1]])
            assert len(one) <= len(ranked)


@pytest.mark.parametrize("length_penalty", PENALTIES)
def test_scores_are_those_of_teacher_forcing(model, length_penalty):
    src = sources(8)
    prefixes = [Prefix(range(5, 5 + n % 3)) for n in range(8)]
    found = search(model, src, 4, length_penalty, wanted=4, prefixes=prefixes)
    for source, ranked in zip(src, found, strict=True):
        for one in ranked:
            expected = log_probability(model, source, one)
            assert one.log_probability == pytest.approx(expected, abs=1e-4)
            pieces = len(one.ids) - len(one.prefix.pieces) + 1
            assert one.score == pytest.approx(expected / pieces**length_penalty, abs=1e-4)


# A20, G02, G09
@pytest.mark.parametrize("wanted", [1, 4])
def test_a_batch_of_unequal_sources_prefixes_and_limits_equals_each_alone(model, wanted):
    src = sources(10)
    prefixes = [Prefix(range(5, 5 + n % 4)) for n in range(10)]
    limits = [3 + n for n in range(10)]
    together = search(model, src, 4, wanted=wanted, prefixes=prefixes, limits=limits)
    turned = search(
        model, src.flip(0), 4, wanted=wanted, prefixes=prefixes[::-1], limits=limits[::-1]
    )
    assert outcomes(turned[::-1]) == outcomes(together)
    for n in range(10):
        own = {"prefixes": prefixes[n:][:1], "limits": limits[n:][:1]}
        alone = search(model, src[n : n + 1], 4, wanted=wanted, **own)
        assert outcomes(alone) == outcomes([together[n]])
        for one in together[n]:
            assert one.ids[: n % 4] == list(prefixes[n].pieces)


def test_the_same_source_twice_has_the_same_output_twice(model):
    src = sources(5)
    found = outcomes(search(model, torch.cat((src, src)), 3, wanted=3))
    assert found[:5] == found[5:]


# G16
def test_hypotheses_are_sorted_different_within_the_limit_and_without_special_pieces(model):
    limits = [1 + n for n in range(12)]
    found = search(model, sources(12), 6, wanted=6, limits=limits)
    for ranked, limit in zip(found, limits, strict=True):
        assert len(ranked) == 6
        assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
        assert len({tuple(one.ids) for one in ranked}) == len(ranked)
        for one in ranked:
            assert len(one.ids) <= limit
            assert not {*NEVER, EOS} & set(one.ids)


SHORT_OR_LONG = [{EOS: 0.6, 7: 0.4}, *[{7: 1.0}] * 9, {EOS: 1.0}]


def test_a_longer_hypothesis_may_overtake_one_that_has_ended_long_before(config, scripted):
    model = scripted(config(), SHORT_OR_LONG)
    best = search(model, sources(1), 2, length_penalty=1.0)[0][0]
    assert best.ids == [7] * 10  # log 0.4 / 11 and not log 0.6 / 1
    assert model.calls == 11


def test_the_search_stops_as_soon_as_nothing_better_can_follow(config, scripted):
    model = scripted(config(), SHORT_OR_LONG)
    best = search(model, sources(1), 2, length_penalty=0.0)[0][0]
    assert (best.ids, model.calls) == ([], 1)  # log 0.4 can only get less
    # At most 2 pieces and eos: log 0.4 / 3 ** 0.4 is less than log 0.6.
    model = scripted(config(), SHORT_OR_LONG)
    best = search(model, sources(1), 2, length_penalty=0.4, limits=[2])[0][0]
    assert (best.ids, model.calls) == ([], 1)
    # With 5 pieces it is more, so there is still hope.
    model = scripted(config(), SHORT_OR_LONG)
    search(model, sources(1), 2, length_penalty=0.4, limits=[5])
    assert model.calls > 1


# G01, G04
@pytest.mark.parametrize("beam", [1, 4])
def test_one_call_a_piece_and_one_for_the_end_and_no_special_piece(config, beam, scripted):
    model = scripted(config(), [7, 8, 9, *[EOS] * 29])
    best = search(model, sources(1), beam, length_penalty=0.0)[0][0]
    assert best.ids == [7, 8, 9] and best.finished
    assert model.calls == 4


# G03
def test_a_model_that_never_ends_stops_at_the_limit_and_says_so(config, scripted):
    found = search(scripted(config(), [{7: 0.6, 8: 0.4}] * 32), sources(5), 3, wanted=3)
    for ranked in found:
        assert [len(one.ids) for one in ranked] == [12] * 3
        assert not any(one.finished for one in ranked)


def test_a_sentence_that_ends_exactly_at_the_limit_is_finished(config, scripted):
    for script, finished in (([7, EOS], True), ([7, 7], False)):
        (ranked,) = search(scripted(config(), script), sources(1), 1, limits=[1])
        assert [(one.ids, one.finished) for one in ranked] == [([7], finished)]


# A24
def test_the_search_never_goes_beyond_the_positions_of_the_model(config, scripted):
    model = scripted(config(max_length=9), [{7: 0.6, 8: 0.4}] * 9)
    (ranked,) = search(model, sources(1), 3, limits=[500], prefixes=[Prefix([5, 6, 5])])
    assert {len(one.ids) for one in ranked} == {8}


def test_a_search_that_cannot_end_is_refused(model):
    with pytest.raises(ValueError, match="has to end, but never="):
        search(model, sources(1), 2, never=(*NEVER, EOS))
