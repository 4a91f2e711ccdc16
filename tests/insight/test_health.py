"""Bad measurements raise the right alarm; those of a normal training raise none."""

from __future__ import annotations

import math

import pytest

from translate.insight.health import Health
from translate.insight.measure import AttentionStatistics, Inspection

SOUND = AttentionStatistics(max_score=8.0, entropy=1.2, relative_entropy=0.5, boundary_weight=0.1)


def inspection(
    *, score=8.0, entropy=0.4, residual=2.0, nll=1.0, another: float | None = 6.0
) -> Inspection:
    cross = SOUND._replace(max_score=score, relative_entropy=entropy)
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
        assert not list(health.inspection(epoch * 100, inspection(**sizes)))
        assert not list(health.validation(train_nll=2.0 - epoch / 10, val_nll=2.0 - epoch / 20))
        late = epoch >= 3
        assert not list(
            health.translations(
                epoch * 100,
                repeats_itself=0.1 if late else 0.9,
                copied_source=0.0,
                limit_reached=0.1,
            )
        )


def test_a_loss_that_jumps_and_stays_is_named_once_with_both_losses(health):
    assert steps(health, [3.0] * 30 + [9.0, 3.0, 9.0, 3.0, 3.0]) == []  # unusual batches
    (line,) = steps(health, [5.5, 6.0, 7.0, 8.0], start=36)
    assert line.startswith(
        "loss spike: 5.50 nats per piece or more, three times in a row, after a median of 3.00"
    )
    assert "model.peak_learning_rate" in line


def test_a_gradient_that_jumps_is_named(health):
    assert steps(health, [3.0] * 20) == []
    (line,) = steps(health, [3.0], norm=100.0, start=21)
    assert line.startswith("gradient spike: norm 100 after a median of 1.")
    assert "gradient_clip_val" in line


def test_an_overflowed_gradient_in_float16_is_no_spike(health):
    assert steps(health, [3.0] * 20) == []
    assert steps(health, [3.0], norm=math.inf, start=21) == []
    assert steps(health, [3.0], norm=math.nan, start=22) == []
    assert len(steps(health, [3.0], norm=100.0, start=23)) == 1  # the median is unchanged


def test_a_loss_that_stays_at_ln_v_is_named_100_updates_after_the_warmup(health):
    uniform = math.log(1000)
    assert steps(health, [uniform] * 149) == []
    (line,) = steps(health, [uniform], start=150)
    assert line.startswith("stuck: loss 6.91 after 150 updates")
    assert "ln V = 6.91" in line and "trainer.overfit_batches 1" in line


def test_an_update_as_large_as_its_weights_is_named(health):
    (line,) = steps(health, [3.0], updates={"embedding": 0.01, "decoder": 0.9})
    assert line.startswith("large update: one update moves the decoder by 90% of the norm")
    assert "model.warmup_steps" in line


def test_large_scores_are_named_with_their_layer(health):
    (line,) = health.inspection(0, inspection(score=180.0))
    assert line.startswith(
        "large attention scores: up to 180 in cross layer 2, where the attention entropy is 40%"
    )


def test_large_scores_with_uniform_weights_are_no_alarm(health):
    assert not list(health.inspection(0, inspection(score=180.0, entropy=0.9)))


def test_a_residual_stream_is_compared_with_its_first_rms(health):
    assert not list(health.inspection(0, inspection(residual=2.0)))
    (line,) = health.inspection(100, inspection(residual=100.0))
    assert line.startswith("large residual stream: RMS 1e+02 after decoder layer 2, initially 2.")


def test_a_source_that_makes_no_difference_is_named_once_the_training_is_mature(health):
    ignored = inspection(nll=4.0, another=4.01)
    assert not list(health.inspection(100, ignored))
    assert not list(health.inspection(500, inspection(another=None)))  # a single sentence
    (line,) = health.inspection(500, ignored)
    assert line.startswith("source ignored: the loss is 4.00 with the right source and 4.01 with")
    assert "translate check" in line


def test_overfitting_is_named_after_three_validations(health):
    lines = []
    curves = [(2.0, 2.1), (1.5, 1.8), (1.2, 2.0), (1.0, 2.1), (0.8, 2.2), (0.6, 2.4)]
    for train, valid in curves:
        lines.append(list(health.validation(train_nll=train, val_nll=valid)))
    assert [len(each) for each in lines] == [0, 0, 0, 0, 1, 0]
    assert lines[4][0].startswith("overfitting: the validation loss rose from 1.80 to 2.20, while")
    assert "model.dropout" in lines[4][0]


def test_a_validation_loss_that_rises_with_training_is_no_overfitting(health):
    assert not list(health.validation(train_nll=1.0, val_nll=1.0))
    for _ in range(5):
        assert not list(health.validation(train_nll=3.0, val_nll=3.0))


@pytest.mark.parametrize(
    ("name", "alarm"),
    [
        ("repeats_itself", "translations repeat themselves: 50% of them. "),
        ("copied_source", "translations copy their source: 50% of them. "),
        ("limit_reached", "translations do not end: 50% of them. "),
    ],
)
def test_a_fault_of_many_translations_is_named_once_the_training_is_mature(health, name, alarm):
    shares = {"repeats_itself": 0.0, "copied_source": 0.0, "limit_reached": 0.0, name: 0.5}
    assert not list(health.translations(100, **shares))
    (line,) = health.translations(900, **shares)
    assert line.startswith(alarm)
    assert not list(health.translations(910, **(shares | {name: 0.6})))  # each alarm comes once


def test_a_training_without_a_limit_is_mature_after_the_warmup():
    health = Health(vocab_size=1000, warmup_steps=50, total_steps=math.inf)
    assert list(health.inspection(500, inspection(nll=4.0, another=4.0)))
    assert list(health.translations(500, repeats_itself=0.9, copied_source=0.0, limit_reached=0.0))


def test_history_and_raised_alarms_survive_a_resume(health):
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
    assert not list(health.inspection(0, inspection(residual=2.0)))
    assert len(list(resumed(health).inspection(100, inspection(residual=100.0)))) == 1
    steps(health, [3.0] * 20)
    assert len(steps(resumed(health), [3.0], norm=100.0, start=21)) == 1
    assert len(steps(resumed(health), [9.0] * 3, start=21)) == 1
