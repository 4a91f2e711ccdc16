"""A run with a NaN or infinite loss stops with a message and keeps its last good checkpoint."""

from __future__ import annotations


def test_a_run_that_diverges_stops_with_the_setting_to_change(run, settings):
    settings["trainer"] |= {"max_epochs": 8, "gradient_clip_val": 0}
    settings["model"] |= {"peak_learning_rate": 1e20, "warmup_steps": 0}
    outcome = run("fit", settings)
    assert outcome.code == 1
    assert "training diverged" in outcome.err
    assert "--model.peak_learning_rate (now 1e+20)" in outcome.err
    assert "result.json" not in outcome.files


def test_divergence_between_two_looks_at_the_gradient_is_seen_by_validation(run, settings):
    settings["trainer"] |= {"max_epochs": 8, "gradient_clip_val": 0, "log_every_n_steps": 4}
    settings["model"] |= {"peak_learning_rate": 1e20, "warmup_steps": 0}
    settings["trainer"]["val_check_interval"] = 2
    outcome = run("fit", settings)
    assert outcome.code == 1
    assert "validation loss nan" in outcome.err
    assert "checkpoints/last.ckpt" not in outcome.files  # NaN is not worth keeping
