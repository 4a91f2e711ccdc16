"""The values that the monitor logs, and those that it passes to the alarms."""

from __future__ import annotations

import json
import re
from statistics import fmean

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2

from translate.insight.health import Health

PARTS = ("embedding", "encoder", "decoder")
KINDS = ("encoder_1", "decoder_1", "cross_1")
AT_VALIDATION = {
    *(
        f"watch_attention/{name}/{kind}"
        for name in ("max_score", "entropy", "relative_entropy", "boundary_weight")
        for kind in KINDS
    ),
    *("watch_residual/rms/encoder_1", "watch_residual/rms/decoder_1"),
    *("watch_source/nll/right", "watch_source/nll/wrong"),
}
AT_STEPS = {
    f"{name}/{part}" for name in ("watch_gradient/norm", "watch_update/ratio") for part in PARTS
}


def test_every_figure_is_there_at_its_steps(finished):
    scalars = set(finished.events().Tags()["scalars"])
    assert scalars >= AT_VALIDATION | AT_STEPS
    for tag in AT_VALIDATION:
        assert finished.steps(tag) == [4, 8]
    for tag in AT_STEPS:
        assert finished.steps(tag) == list(range(1, 9))


def test_the_figures_are_what_they_say(finished):
    for kind in KINDS:
        for _, entropy in finished.curve(f"watch_attention/relative_entropy/{kind}"):
            assert 0 < entropy <= 1.0001
        for _, share in finished.curve(f"watch_attention/boundary_weight/{kind}"):
            assert 0 < share < 1
    parts = [finished.curve(f"watch_gradient/norm/{part}") for part in PARTS]
    whole = finished.curve("train/gradient_norm")
    for (_, expected), *norms in zip(whole, *parts, strict=True):
        assert sum(norm**2 for _, norm in norms) ** 0.5 == pytest.approx(expected, rel=1e-3)
    for part in PARTS:
        # The rate begins at half of the peak 2e-3 and falls; Adam's steps are about as large.
        assert all(1e-7 < ratio < 0.5 for _, ratio in finished.curve(f"watch_update/ratio/{part}"))


def test_loss_of_training_and_validation_stand_in_one_chart(finished):
    event = finished.events().Tensors("custom_scalars__config__")[-1]
    layout = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
    charts = {chart.title: list(chart.multiline.tag) for c in layout.category for chart in c.chart}
    assert charts["training and validation loss"] == ["^train/nll$", "^val/nll$"]
    tags = set(finished.events().Tags()["scalars"])
    for title, patterns in charts.items():
        for pattern in patterns:
            assert any(re.fullmatch(pattern, tag) for tag in tags), (title, pattern)


def test_settings_stand_beside_the_best_bleu(finished):
    accumulator = EventAccumulator(str(finished.folder))
    accumulator.Reload()
    best = json.loads((finished.folder / "result.json").read_text())["best_bleu"]
    assert accumulator.Scalars("val/best_bleu")[-1].value == pytest.approx(best, rel=1e-5)
    content = accumulator.summary_metadata
    assert "_hparams_/session_start_info" in content


def test_the_projector_has_the_pieces(finished):
    config = (finished.folder / "projector_config.pbtxt").read_text()
    assert "pieces" in config
    (metadata,) = finished.folder.glob("**/metadata.tsv")
    (tensors,) = finished.folder.glob("**/tensors.tsv")
    pieces = metadata.read_text(encoding="utf-8").rstrip("\n").split("\n")
    assert pieces[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert len(pieces) == len(tensors.read_text().splitlines())


def test_it_can_be_switched_off(run, settings):
    outcome = run("fit", settings, "--monitor.sentences", 0)
    assert outcome.code == 0
    assert not set(outcome.events().Tags()["scalars"]) & (AT_VALIDATION | AT_STEPS)
    assert alarms(outcome) == []


@pytest.mark.parametrize("count", [1, -1])
def test_one_sentence_cannot_be_compared(run, settings, count):
    outcome = run("fit", settings, "--monitor.sentences", count)
    assert outcome.code == 2
    assert "monitor.sentences must be 0, or 2 or more" in outcome.err


def test_looking_changes_nothing_of_the_training(run, settings):
    settings["model"]["dropout"] = 0.3
    with_it = run("fit", settings)
    without = run("fit", settings, "--monitor.sentences", 0)
    assert with_it.curve("train/loss") == without.curve("train/loss")
    assert with_it.curve("val/loss") == without.curve("val/loss")


class Recorder(Health):
    """Records what the monitor measures, and raises one alarm after each validation."""

    calls: list[tuple] = []  # noqa: RUF012 (cleared by the fixture)

    def step(self, step, *, nll, gradient_norm, updates):
        self.calls.append(("step", step, nll, gradient_norm, updates))
        return iter(())

    def inspection(self, step, found):
        self.calls.append(("inspection", step, found.nll))
        return iter(())

    def validation(self, *, train_nll, val_nll):
        self.calls.append(("validation", train_nll, val_nll))
        yield "made up: nothing to do"

    def translations(self, step, **shares):
        self.calls.append(("translations", step, shares))
        return iter(())


@pytest.fixture
def recorded(run, settings, monkeypatch):
    """A run of two epochs, and the calls of its health object by kind."""
    monkeypatch.setattr("translate.training.monitor.Health", Recorder)
    Recorder.calls.clear()
    outcome = run("fit", settings, "--trainer.max_epochs", 2)
    calls = {}
    for kind, *values in Recorder.calls:
        calls.setdefault(kind, []).append(values)
    return outcome, calls


def test_alarms_are_computed_from_what_is_logged(recorded):
    outcome, calls = recorded
    nll, norm = outcome.curve("train/nll"), outcome.curve("train/gradient_norm")
    ratios = {part: outcome.curve(f"watch_update/ratio/{part}") for part in PARTS}
    for i, (step, train_nll, gradient_norm, updates) in enumerate(calls["step"]):
        assert (step, train_nll) == pytest.approx(nll[i])
        assert gradient_norm == pytest.approx(norm[i][1], rel=1e-3)
        assert updates == pytest.approx({part: ratios[part][i][1] for part in PARTS})
    assert len(calls["step"]) == 8
    assert calls["inspection"] == [
        pytest.approx(x) for x in outcome.curve("watch_source/nll/right")
    ]
    means = [fmean(value for _, value in nll[i : i + 4]) for i in (0, 4)]
    for i, (train_nll, val_nll) in enumerate(calls["validation"]):
        assert train_nll == pytest.approx(means[i])
        assert val_nll == pytest.approx(outcome.curve("val/nll")[i][1])
    for i, (step, shares) in enumerate(calls["translations"]):
        assert step == 4 * (i + 1)
        assert shares == pytest.approx({x: outcome.curve(f"val/{x}")[i][1] for x in shares})
        assert shares.keys() == {"repeats_itself", "copied_source", "limit_reached"}


def test_an_alarm_is_a_warning_in_the_terminal_and_a_text_on_the_board(recorded):
    outcome, _ = recorded
    assert alarms(outcome) == [f"health: step {n}: made up: nothing to do" for n in (4, 8)]
    text = outcome.events().Tensors("health/text_summary")[0].tensor_proto.string_val[0].decode()
    assert text == "    health: step 4: made up: nothing to do"


def alarms(outcome) -> list[str]:
    lines = (line.removeprefix("warning: ") for line in outcome.err.splitlines())
    return [line for line in lines if line.startswith("health: ")]


def test_the_first_epochs_of_a_sound_run_raise_no_alarm(finished):
    assert alarms(finished) == []


def test_an_alarm_is_not_repeated_after_a_resume(run, settings):
    settings["model"] |= {"warmup_steps": 0, "peak_learning_rate": 5.0}  # every update is too large
    first = run("fit", settings)
    assert any("large update: one update moves the" in line for line in alarms(first))
    second = run("fit", settings, "--trainer.max_epochs", 2, "--ckpt_path", first.folder)
    assert second.code == 0, second.err
    assert not any("large update" in line for line in alarms(second))


def test_a_single_pair_to_validate_on_has_no_wrong_source(run, settings):
    settings["data"].pop("valid")
    settings["data"]["held_out"] = 1
    outcome = run("fit", settings)
    assert outcome.code == 0, outcome.err
    scalars = outcome.events().Tags()["scalars"]
    assert "watch_source/nll/right" in scalars
    assert "watch_source/nll/wrong" not in scalars


def test_a_sanity_check_and_no_logged_steps_are_no_trouble(run, settings):
    outcome = run(
        *("fit", settings, "--trainer.num_sanity_val_steps", 2, "--trainer.log_every_n_steps", 0)
    )
    assert outcome.code == 0, outcome.err
    tags = set(outcome.events().Tags()["scalars"])
    assert not tags & AT_STEPS
    assert tags >= AT_VALIDATION


def test_the_best_bleu_is_that_of_our_checkpoint(run, settings):
    outcome = run(
        *("fit", settings, "--trainer.callbacks", "ModelCheckpoint"),
        *("--trainer.callbacks.monitor", "val/loss"),
    )
    assert outcome.code == 0, outcome.err
    (_, best), *_ = outcome.curve("val/best_bleu")
    assert best == pytest.approx(max(bleu for _, bleu in outcome.curve("val/bleu")), abs=1e-4)
