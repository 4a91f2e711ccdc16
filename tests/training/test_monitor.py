"""What the board shows of the inside of a model, and the alarms of a real training."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2

KINDS = ("encoder_1", "decoder_1", "cross_1")
AT_VALIDATION = {
    *(
        f"within_attention_{name}/{kind}"
        for name in ("max_score", "entropy", "relative_entropy", "boundary_weight")
        for kind in KINDS
    ),
    *("within_residual/encoder_1", "within_residual/decoder_1"),
    *("within_source/own", "within_source/another"),
}
AT_STEPS = {
    f"{name}/{part}"
    for name in ("within_gradient_norm", "within_update_ratio")
    for part in ("embedding", "encoder", "decoder")
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
        for _, entropy in finished.curve(f"within_attention_relative_entropy/{kind}"):
            assert 0 < entropy <= 1.0001
        for _, share in finished.curve(f"within_attention_boundary_weight/{kind}"):
            assert 0 < share < 1
    parts = [
        finished.curve(f"within_gradient_norm/{part}")
        for part in ("embedding", "encoder", "decoder")
    ]
    whole = finished.curve("train/gradient_norm")
    for (_, expected), *norms in zip(whole, *parts, strict=True):
        assert sum(norm**2 for _, norm in norms) ** 0.5 == pytest.approx(expected, rel=1e-3)
    for part in ("embedding", "encoder", "decoder"):
        # The rate begins at half of the peak 2e-3 and falls; Adam's steps are about as large.
        assert all(1e-7 < ratio < 0.5 for _, ratio in finished.curve(f"within_update_ratio/{part}"))


def test_loss_of_training_and_validation_stand_in_one_chart(finished):
    event = finished.events().Tensors("custom_scalars__config__")[-1]
    layout = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
    charts = {chart.title: list(chart.multiline.tag) for c in layout.category for chart in c.chart}
    assert charts["loss of training and validation"] == ["^train/nll$", "^val/nll$"]
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
    outcome = run("fit", settings, "--inside.sentences", 0)
    assert outcome.code == 0
    assert not set(outcome.events().Tags()["scalars"]) & (AT_VALIDATION | AT_STEPS)
    assert "health" not in outcome.err


@pytest.mark.parametrize("count", [1, -1])
def test_one_sentence_cannot_be_compared(run, settings, count):
    outcome = run("fit", settings, "--inside.sentences", count)
    assert outcome.code == 2
    assert "sentences must be 0, or 2 or more" in outcome.err


def test_looking_changes_nothing_of_the_training(run, settings):
    settings["model"]["dropout"] = 0.3
    with_it = run("fit", settings)
    without = run("fit", settings, "--inside.sentences", 0)
    assert with_it.curve("train/loss") == without.curve("train/loss")
    assert with_it.curve("val/loss") == without.curve("val/loss")


def alarms(outcome) -> list[str]:
    return [line for line in outcome.err.splitlines() if line.startswith("health: ")]


def test_a_sound_run_raises_no_alarm(run, settings):
    outcome = run(
        *("fit", settings, "--trainer.max_epochs", 60, "--early_stopping.patience", 100),
        *("--trainer.check_val_every_n_epoch", 12, "--model.peak_learning_rate", 5e-3),
    )
    assert len(outcome.steps("within_source/own")) == 5
    assert outcome.steps("train/nll")[-1] == 240  # long enough for every alarm
    assert alarms(outcome) == []


def test_one_pair_to_validate_on_is_no_ignored_source(run, settings):
    settings["data"].pop("valid")
    settings["data"]["held_out"] = 1
    outcome = run("fit", settings, "--trainer.max_epochs", 40, "--early_stopping.patience", 100)
    assert outcome.code == 0, outcome.err
    assert not [line for line in alarms(outcome) if "source ignored" in line]
    assert "within_source/another" not in outcome.events().Tags()["scalars"]


def test_a_sanity_check_and_no_logged_steps_are_no_trouble(run, settings):
    outcome = run(
        *("fit", settings, "--trainer.num_sanity_val_steps", 2, "--trainer.log_every_n_steps", 0)
    )
    assert outcome.code == 0, outcome.err
    tags = set(outcome.events().Tags()["scalars"])
    assert not tags & AT_STEPS
    assert tags >= AT_VALIDATION


def test_what_was_said_is_not_said_again_after_a_resume(run, settings):
    slow = ("--model.peak_learning_rate", 1e-9, "--early_stopping.patience", 50)
    first = run("fit", settings, "--trainer.max_epochs", 30, *slow)
    assert any("stuck: loss" in line for line in alarms(first))
    last = first.folder / "checkpoints/last.ckpt"
    second = run("fit", settings, "--trainer.max_epochs", 34, *slow, "--ckpt_path", last)
    assert second.code == 0, second.err
    assert alarms(second) == []


def test_the_best_bleu_is_that_of_the_checkpoint_chosen_by_it(run, settings):
    outcome = run(
        *("fit", settings, "--trainer.callbacks", "ModelCheckpoint"),
        *("--trainer.callbacks.monitor", "val/loss"),
    )
    assert outcome.code == 0, outcome.err
    (_, best), *_ = outcome.curve("val/best_bleu")
    assert best == pytest.approx(max(bleu for _, bleu in outcome.curve("val/bleu")), abs=1e-4)


def test_a_far_too_high_rate_is_said_in_the_terminal_and_on_the_board(run, settings):
    outcome = run(
        *("fit", settings, "--trainer.max_epochs", 20, "--model.warmup_steps", 0),
        *("--model.peak_learning_rate", 5.0, "--early_stopping.patience", 50),
    )
    said = "\n".join(alarms(outcome))
    assert "large update: one update moves the" in said
    assert "large attention scores" in said
    text = outcome.events().Tensors("health/text_summary")[0].tensor_proto.string_val[0].decode()
    assert text.startswith("    health: step ")


def test_a_rate_of_nearly_nothing_is_said(run, settings):
    outcome = run(
        *("fit", settings, "--trainer.max_epochs", 30, "--early_stopping.patience", 50),
        *("--model.peak_learning_rate", 1e-9),
    )
    assert any("stuck: loss" in line for line in alarms(outcome))


def rows(settings, name: str) -> list[list[str]]:
    table = Path(settings["data"][name]["tsv"]).read_text(encoding="utf-8")
    return [line.split("\t") for line in table.splitlines()]


def mixed(settings, folder: Path) -> Path:
    """Training pairs of which no two sides belong together."""
    pairs = rows(settings, "train")
    lines = [f"{pairs[i - 7][0]}\t{pairs[i][1]}\n" for i in range(len(pairs))]
    path = folder / "mixed.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_a_source_that_tells_nothing_is_said(run, settings, tmp_path):
    for name in ("train", "valid"):
        lines = [f"The same again.\t{target}\n" for _, target in rows(settings, name)]
        path = tmp_path / f"same.{name}.tsv"
        path.write_text("".join(lines), encoding="utf-8")
        settings["data"][name] = {"tsv": str(path)}
    outcome = run(
        *("fit", settings, "--trainer.max_epochs", 60, "--early_stopping.patience", 100),
        *("--trainer.check_val_every_n_epoch", 30),
    )
    (line,) = [line for line in alarms(outcome) if "source ignored" in line]
    assert line.startswith("health: step ")


def test_learning_by_heart_is_said(run, settings, tmp_path):
    outcome = run(
        *("fit", settings, "--trainer.max_epochs", 80, "--early_stopping.patience", 100),
        *("--trainer.check_val_every_n_epoch", 10, "--data.train.tsv", mixed(settings, tmp_path)),
        *("--model.peak_learning_rate", 5e-3, "--model.d_model", 64),
    )
    (line,) = [line for line in alarms(outcome) if "overfitting: " in line]
    assert "model.dropout" in line
