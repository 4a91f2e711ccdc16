"""Each alarm from figures that deserve it, and none from sound ones."""

from __future__ import annotations

import math

import pytest

from translate.insight.health import Health
from translate.insight.measure import AttentionFigures, Inspection

SOUND = AttentionFigures(largest_score=8.0, entropy=1.2, evenness=0.5, end_share=0.1)


def inspection(
    *, score=8.0, evenness=0.4, residual=2.0, nll=1.0, another: float | None = 6.0
) -> Inspection:
    cross = SOUND._replace(largest_score=score, evenness=evenness)
    return Inspection(
        {("encoder", 0): SOUND, ("cross", 1): cross},
        {("encoder", 0): 1.0, ("decoder", 1): residual},
        nll,
        another,
    )


@pytest.fixture
def health() -> Health:
    return Health(vocab_size=1000, warmup_steps=50, total_steps=1000)


def steps(health: Health, losses, norm=1.0, start=1, updates=None) -> list[str]:
    return [
        line
        for step, nll in enumerate(losses, start)
        for line in health.step(
            step, nll=nll, gradient_norm=norm, updates=updates or {"encoder": 0.01}
        )
    ]


def test_a_sound_training_raises_no_alarm(health):
    falling = [math.log(1000) * 0.98**step for step in range(400)]
    assert steps(health, falling) == []
    for epoch in range(10):
        sizes = {"score": 5.0 + epoch, "residual": 1.0 + epoch}
        assert not list(health.inside(epoch * 100, inspection(**sizes)))
        assert not list(health.validation(train_nll=2.0 - epoch / 10, val_nll=2.0 - epoch / 20))
        late = epoch >= 3
        assert not list(
            health.translations(epoch * 100, repeated=0.1 if late else 0.9, copied=0.0, endless=0.1)
        )


def test_a_loss_that_jumps_and_stays_is_named_with_both_figures_and_once(health):
    assert steps(health, [3.0] * 30 + [9.0, 3.0, 9.0, 3.0, 3.0]) == []  # batches of odd pairs
    (line,) = steps(health, [5.5, 6.0, 7.0, 8.0], start=36)
    assert line.startswith("loss spike: 5.50 nats a piece or more after 3.00, three times in a")
    assert "model.peak_learning_rate" in line


def test_a_gradient_that_jumps_is_named(health):
    assert steps(health, [3.0] * 20) == []
    (line,) = steps(health, [3.0], norm=100.0, start=21)
    assert line.startswith("gradient spike: norm 100 after 1;")
    assert "gradient_clip_val" in line


def test_a_gradient_that_overflowed_in_float16_is_no_spike(health):
    assert steps(health, [3.0] * 20) == []
    assert steps(health, [3.0], norm=math.inf, start=21) == []
    assert steps(health, [3.0], norm=math.nan, start=22) == []
    assert len(steps(health, [3.0], norm=100.0, start=23)) == 1  # and it still knows the usual one


def test_a_loss_that_stays_at_ln_v_is_named_when_the_warmup_is_long_over(health):
    uniform = math.log(1000)
    assert steps(health, [uniform] * 149) == []
    (line,) = steps(health, [uniform], start=150)
    assert line.startswith("stuck: loss 6.91 after 150 updates")
    assert "ln V = 6.91" in line and "trainer.overfit_batches 1" in line


def test_an_update_as_large_as_its_weights_is_named(health):
    (line,) = steps(health, [3.0], updates={"embedding": 0.01, "decoder": 0.9})
    assert line.startswith("one update moves the decoder by 90% of its weights")
    assert "model.warmup_steps" in line


def test_scores_that_grow_are_named_with_their_place(health):
    (line,) = health.inside(0, inspection(score=180.0))
    assert line.startswith("scores grow: up to 180 in cross attention, layer 2, entropy 40% of")


def test_scores_that_grow_alike_and_change_no_weight_are_not_named(health):
    assert not list(health.inside(0, inspection(score=180.0, evenness=0.9)))


def test_a_residual_path_that_grows_is_measured_against_its_start(health):
    assert not list(health.inside(0, inspection(residual=2.0)))
    (line,) = health.inside(100, inspection(residual=100.0))
    assert line.startswith("the residual path of decoder layer 2 has grown from 2 to 1e+02")


def test_a_source_that_makes_no_difference_is_named_once_it_should(health):
    deaf = inspection(nll=4.0, another=4.01)
    assert not list(health.inside(100, deaf))
    assert not list(health.inside(500, inspection(another=None)))  # one sentence: nothing to say
    (line,) = health.inside(500, deaf)
    assert line.startswith("the decoder ignores its source")
    assert "4.01 and not 4.00" in line and "translate check" in line


def test_a_validation_loss_that_turns_is_named_after_three_times(health):
    lines = []
    curves = [(2.0, 2.1), (1.5, 1.8), (1.2, 2.0), (1.0, 2.1), (0.8, 2.2), (0.6, 2.4)]
    for train, valid in curves:
        lines.append(list(health.validation(train_nll=train, val_nll=valid)))
    assert [len(each) for each in lines] == [0, 0, 0, 0, 1, 0]
    assert lines[4][0].startswith("validation loss turned: 2.20 after a best of 1.80")
    assert "model.dropout" in lines[4][0]


def test_a_validation_loss_that_rises_with_training_is_no_overfitting(health):
    assert not list(health.validation(train_nll=1.0, val_nll=1.0))
    for _ in range(5):
        assert not list(health.validation(train_nll=3.0, val_nll=3.0))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("repeated", "50% of the translations go round in circles"),
        ("copied", "50% of the translations copy their source"),
        ("endless", "50% of the translations never end"),
    ],
)
def test_translations_that_are_none_are_named(health, name, said):
    shares = {"repeated": 0.0, "copied": 0.0, "endless": 0.0, name: 0.5}
    assert not list(health.translations(100, **shares))
    (line,) = health.translations(900, **shares)
    assert line.startswith(said)


def test_a_training_without_an_end_is_looked_at_after_the_warmup():
    health = Health(vocab_size=1000, warmup_steps=50, total_steps=math.inf)
    assert list(health.inside(500, inspection(nll=4.0, another=4.0)))
    assert list(health.translations(500, repeated=0.9, copied=0.0, endless=0.0))


def test_what_was_seen_and_said_outlives_a_resume(health):
    def resumed(before: Health) -> Health:
        after = Health(vocab_size=1000, warmup_steps=50, total_steps=1000)
        after.load_state_dict(before.state_dict())
        return after

    curves = [(2.0, 2.1), (1.5, 1.8), (1.2, 2.0), (1.0, 2.1), (0.8, 2.2), (0.6, 2.4)]
    said = []
    for train, valid in curves:  # resumed before every validation: as if it had not been
        health = resumed(health)
        said.append(len(list(health.validation(train_nll=train, val_nll=valid))))
    assert said == [0, 0, 0, 0, 1, 0]
    assert not list(health.inside(0, inspection(residual=2.0)))
    assert len(list(resumed(health).inside(100, inspection(residual=100.0)))) == 1
    steps(health, [3.0] * 20)
    assert len(steps(resumed(health), [3.0], norm=100.0, start=21)) == 1
    health = resumed(health)
    health.load_state_dict({})
    assert steps(health, [9.0] * 3, start=21) != []
