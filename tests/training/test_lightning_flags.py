"""Each setting and callback of Lightning does what its documentation says, or is refused.

docs/lightning.md lists them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from translate.decoding.translator import Translator


def callback(name: str, **settings) -> dict:
    """A setting of the Trainer: one callback of Lightning."""
    entry = {"class_path": f"lightning.pytorch.callbacks.{name}", "init_args": settings}
    return {"callbacks": [entry]}


def fit(run, settings, trainer: dict, *args, **options):
    settings["trainer"] |= {"max_epochs": 2} | trainer
    return run("fit", settings, *args, **options)


@pytest.fixture(autouse=True)
def _any_algorithm():
    """Undo trainer.deterministic, which holds for the whole process."""
    yield
    torch.use_deterministic_algorithms(False)


REFUSED = [
    # N28: the rate is a function of the step
    (callback("LearningRateFinder"), "set model.peak_learning_rate"),
    (callback("StochasticWeightAveraging", swa_lrs=0.01), "use EMAWeightAveraging"),
    # N06: other callbacks that touch weights or batches
    (callback("BatchSizeFinder"), "set data.batch_tokens"),
    (callback("GradientAccumulationScheduler", scheduling={1: 2}), "accumulate_grad_batches"),
    (callback("ModelPruning", pruning_fn="l1_unstructured"), "set a smaller model.d_model"),
    (callback("BackboneFinetuning"), "no pretrained layers"),
    (callback("OnExceptionCheckpoint", dirpath="here"), "resume it with --ckpt_path"),
    (callback("Timer", duration="00:00:00:10"), "set trainer.max_time"),
    (callback("ModelCheckpoint", save_last=True), "last.ckpt is always saved"),
    (callback("ModelCheckpoint", monitor="val_loss"), "no metric val_loss; choose one of train/"),
    (callback("LearningRateMonitor") | {"logger": False}, "needs a logger"),
    (callback("ThroughputMonitor", batch_size_fn="builtins.len") | {"logger": False}, "a logger"),
    (callback("TQDMProgressBar"), "contradicts trainer.enable_progress_bar false"),
    (callback("ModelCheckpoint") | {"enable_checkpointing": False}, "enable_checkpointing false"),
    # N12: early stopping that looks where no validation was
    (callback("EarlyStopping", monitor="val_bleu"), "no metric val_bleu"),
    (callback("EarlyStopping", monitor="val/loss") | {"limit_val_batches": 0}, "no validation"),
    (
        callback("EarlyStopping", monitor="val/loss", check_on_train_epoch_end=True)
        | {"check_val_every_n_epoch": 2},
        "EarlyStopping would look for val/loss where there is no validation",
    ),
    (
        callback("ModelCheckpoint", monitor="val/loss", every_n_train_steps=1),
        "ModelCheckpoint would look for val/loss where there is no validation",
    ),
    # N14: weights of 16 bits
    ({"precision": "16-true"}, "bf16-mixed or 16-mixed, not 16-true"),
    ({"precision": "bf16-true"}, "bf16-mixed or 16-mixed, not bf16-true"),
    ({"precision": "transformer-engine"}, "bf16-mixed or 16-mixed, not transformer-engine"),
    # N36: devices
    ({"strategy": "ddp"}, "trainer.strategy is not supported: training runs on one device"),
    ({"strategy": "fsdp"}, "trainer.strategy is not supported"),
    ({"strategy": "nonsense"}, "trainer.strategy is not supported"),
    ({"devices": -1}, "training runs on one device, not -1: set --trainer.devices 1"),
    ({"devices": "cpu"}, "not cpu: set --trainer.devices 1"),
    ({"devices": [0, 1]}, "not [0, 1]: set --trainer.devices 1"),
    ({"devices": 2}, "not 2: set --trainer.devices 1"),
    ({"devices": 0}, "not 0: set --trainer.devices 1"),
    ({"num_nodes": 2}, "trainer.num_nodes is not supported: training runs on one device"),
    ({"accelerator": "mps"}, "set --trainer.accelerator cpu"),
    ({"accelerator": "tpu"}, "trainer.accelerator must be cpu, gpu or auto, not tpu"),
    # N26: intervals and limits
    ({"val_check_interval": 0}, "trainer.val_check_interval must be above 0"),
    ({"val_check_interval": 1.5}, "a share of at most 1, not 1.5"),
    ({"val_check_interval": "00:00:00:01"}, "must be batches or a share of an epoch"),
    ({"val_check_interval": 0.5, "check_val_every_n_epoch": None}, "a whole number of batches"),
    ({"val_check_interval": 10, "limit_train_batches": 3}, "10 batches, but an epoch has 3"),
    ({"val_check_interval": 10, "overfit_batches": 2}, "10 batches, but an epoch has 2"),
    ({"check_val_every_n_epoch": 0}, "trainer.check_val_every_n_epoch must be 1 or more"),
    ({"accumulate_grad_batches": 0}, "trainer.accumulate_grad_batches must be 1 or more"),
    ({"limit_train_batches": 0.1}, "trainer.limit_train_batches 0.1 of 4 batches"),
    ({"limit_val_batches": 0.1}, "trainer.limit_val_batches 0.1 of 1 batches"),
    ({"limit_val_batches": -1}, "trainer.limit_val_batches must be 0 or more"),
    ({"overfit_batches": 0.1}, "trainer.overfit_batches 0.1 of 4 batches"),
    ({"min_epochs": 3}, "trainer.min_epochs 3 is more than trainer.max_epochs 2"),
    ({"min_steps": 3, "max_steps": 2}, "trainer.min_steps 3 is more than trainer.max_steps 2"),
    ({"min_steps": 9}, "trainer.min_steps is 9, but trainer.max_epochs 2 has 8 updates"),
    ({"max_epochs": -2}, "trainer.max_epochs must be -1 or more"),
    ({"max_time": "00:00:00:00"}, "nothing to train: trainer.max_time"),
    ({"max_time": {"second": 1}}, "is not a time"),
    ({"reload_dataloaders_every_n_epochs": -1}, "must be 0 or more"),
    ({"log_every_n_steps": -1}, "trainer.log_every_n_steps must be 0 or more"),
    ({"gradient_clip_val": -1}, "trainer.gradient_clip_val must be 0 or more"),
    ({"gradient_clip_algorithm": "mean"}, "trainer.gradient_clip_algorithm must be one of norm"),
    ({"num_sanity_val_steps": -2}, "trainer.num_sanity_val_steps must be -1 or more"),
    ({"fast_dev_run": -1}, "trainer.fast_dev_run must be 0 or more"),
    ({"profiler": "xla"}, "trainer.profiler must be one of simple, advanced, pytorch"),
    ({"plugins": ["SLURMEnvironment"]}, "trainer.plugins is not supported"),
    ({"default_root_dir": "here"}, "trainer.default_root_dir is not supported: set --runs"),
    ({"barebones": True}, "trainer.barebones is not supported"),
    ({"model_registry": "mine"}, "trainer.model_registry is not supported"),
    ({"logger": {"class_path": "lightning.pytorch.loggers.CometLogger"}}, "comet"),
]


# N06 N12 N14 N26 N28 N36
@pytest.mark.parametrize(("trainer", "part"), REFUSED, ids=str)
def test_a_setting_that_cannot_be_followed_is_refused_at_the_start(
    run, settings, trainer, part, monkeypatch
):
    monkeypatch.setenv("TRANSLATE_CLASSES", "builtins")
    outcome = fit(run, settings, trainer)
    assert (outcome.code, outcome.out) == (2, "")
    assert part in outcome.err
    assert outcome.err.splitlines()[-1].startswith("translate: ")
    assert "Trainer(" not in outcome.err
    assert not outcome.runs.exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
@pytest.mark.parametrize("name", ["gpu", "cuda"])
def test_a_gpu_that_is_missing_is_told_in_our_words(run, settings, name):  # N36
    outcome = fit(run, settings, {"accelerator": name, "devices": -1})
    assert outcome.code == 2
    assert outcome.err == (
        f"translate: trainer.accelerator is {name}, but PyTorch finds no GPU with CUDA: set "
        "--trainer.accelerator cpu\n"
    )


@pytest.mark.parametrize("devices", [2, -1, "auto", [0, 1], "0,1", [2], 0])
def test_of_several_gpus_one_is_used(run, settings, monkeypatch, devices):  # N36
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    outcome = fit(run, settings, {"accelerator": "gpu", "devices": devices})
    assert outcome.code == 2
    assert f"training runs on one device, not {devices}: set --trainer.devices 1" in outcome.err


def test_all_faults_are_told_at_once(run, settings):
    outcome = fit(run, settings, callback("Timer", duration="00:00:00:10") | {"strategy": "ddp"})
    assert "trainer.strategy" in outcome.err
    assert "Timer" in outcome.err


def test_early_stopping_of_ours_needs_a_validation_in_each_epoch(run, settings):  # N12
    settings["early_stopping"] = {"check_on_train_epoch_end": True}
    outcome = fit(run, settings, {"check_val_every_n_epoch": 2})
    assert outcome.code == 2
    assert "early_stopping would look for val/bleu where there is no validation" in outcome.err
    assert not outcome.runs.exists()
    assert fit(run, settings, {"check_val_every_n_epoch": 1}).code == 0


CSV = {"class_path": "lightning.pytorch.loggers.CSVLogger", "init_args": {"save_dir": "csv"}}
BOARD = {
    "class_path": "lightning.pytorch.loggers.TensorBoardLogger",
    "init_args": {"save_dir": "t"},
}


@pytest.mark.parametrize(
    "trainer",
    [
        callback("LearningRateMonitor"),
        callback("ModelCheckpoint"),
        callback("EarlyStopping", monitor="val/loss"),
        callback("ThroughputMonitor", batch_size_fn="builtins.len"),
        callback("LambdaCallback"),
        {"devices": "auto"},
        {"precision": 32},
        {"limit_train_batches": 100},
        {"limit_train_batches": 1.0},
        {"limit_test_batches": 0},
        {"check_val_every_n_epoch": None},
        {"min_epochs": 2, "min_steps": 8},
        {"max_time": "00:01:00:00"},
        {"reload_dataloaders_every_n_epochs": 1},
        {"logger": False},
        {"logger": [CSV, BOARD]},
        {"log_every_n_steps": 0},
        {"num_sanity_val_steps": 2},
        {"detect_anomaly": True},
        {"deterministic": True},
        {"benchmark": True},
        {"inference_mode": False},
        {"sync_batchnorm": True},
        {"use_distributed_sampler": False},
        {"enable_autolog_hparams": False},
        {"gradient_clip_algorithm": "norm"},
    ],
    ids=str,
)
def test_a_setting_beside_the_update_does_not_change_the_weights(
    run, settings, finished, trainer, monkeypatch
):
    monkeypatch.setenv("TRANSLATE_CLASSES", "builtins")
    outcome = fit(run, settings, trainer)
    assert outcome.code == 0, outcome.err
    assert torch.equal(outcome.weights(), finished.weights())


# N14
@pytest.mark.parametrize(
    "trainer",
    [
        {"precision": "64-true"},
        {"precision": "bf16-mixed"},
        {"gradient_clip_algorithm": "value"},
        {"gradient_clip_val": 0.1},
        {"accumulate_grad_batches": 2},
        {"overfit_batches": 2},
        {"limit_train_batches": 0.5},
    ],
    ids=str,
)
def test_a_setting_of_the_update_changes_the_weights_and_they_translate(
    run, settings, finished, trainer
):
    outcome = fit(run, settings, trainer)
    assert outcome.code == 0, outcome.err
    assert not torch.allclose(outcome.weights().float(), finished.weights(), rtol=0, atol=1e-9)
    assert Translator.load(outcome.folder).translate(["The cat"])


# N26
@pytest.mark.parametrize(("limit", "updates"), [(1, 1), (1.0, 4), (3, 3), (0.5, 2)])
def test_one_batch_is_not_all_batches(run, settings, limit, updates):
    for name in ("my.yaml", "command line"):
        args = () if name == "my.yaml" else ("--trainer.limit_train_batches", limit)
        trainer = {"limit_train_batches": limit} if name == "my.yaml" else {}
        settings["trainer"].pop("limit_train_batches", None)
        outcome = fit(run, settings, trainer | {"max_epochs": 1}, *args)
        assert outcome.checkpoint()["global_step"] == updates, name


# Weight averages


def averaging(decay: float, **more) -> dict:
    return callback("EMAWeightAveraging", decay=decay, **more)


def test_weight_averages_are_saved_and_translate(run, settings, tmp_path):  # N06
    every = callback("ModelCheckpoint", dirpath="steps", every_n_train_steps=1, save_top_k=-1)
    trainer = {"callbacks": [*averaging(0.5)["callbacks"], *every["callbacks"]]}
    outcome = fit(run, settings, trainer, "--trainer.max_epochs", 1)
    assert outcome.code == 0, outcome.err
    steps = [
        torch.load(tmp_path / "steps" / f"epoch=0-step={step}.ckpt", weights_only=True)
        for step in (1, 2)
    ]
    first, second = (step["current_model_state"] for step in steps)
    for name, average in steps[1]["state_dict"].items():
        torch.testing.assert_close(average, (first[name] + second[name]) / 2)
    assert Translator.load(outcome.folder).translate(["The cat"])


def test_the_scores_of_a_validation_are_those_of_the_averages(run, settings):  # N06
    outcome = fit(run, settings, averaging(0.9))
    logged = {name: outcome.curve(f"val/{name}")[-1][1] for name in ("loss", "chrf")}
    settings["trainer"].pop("callbacks")
    last = outcome.folder / "checkpoints" / "last.ckpt"
    values = dict(
        line.split() for line in run("validate", settings, "--ckpt_path", last).out.splitlines()
    )
    for name, value in logged.items():
        assert float(values[f"val/{name}"]) == pytest.approx(value, abs=1e-3)


def test_a_resumed_run_continues_the_averages(run, settings, watcher):  # N06
    whole = fit(run, settings, averaging(0.5)).checkpoint()

    def interrupt():
        raise KeyboardInterrupt

    watcher.at[6] = interrupt  # in the second epoch; last.ckpt is from the end of the first
    part = fit(run, settings, {})
    assert part.code == 130
    watcher.at.clear()
    resumed = fit(run, settings, {}, "--ckpt_path", part.folder).checkpoint()
    for key in ("state_dict", "current_model_state"):
        for name, tensor in whole[key].items():
            assert torch.equal(tensor, resumed[key][name]), (key, name)


# What is shown


def test_the_users_progress_bar_replaces_ours(run, settings):  # N10
    trainer = callback("TQDMProgressBar", refresh_rate=1) | {"enable_progress_bar": True}
    outcome = fit(run, settings, trainer, terminal=True)
    assert outcome.code == 0, outcome.err
    assert "4/4 [" in outcome.err
    assert "tokens/s=" not in outcome.err


def test_model_summary_and_profile_are_shown(run, settings):  # N34
    outcome = fit(run, settings, {"enable_model_summary": True, "profiler": "simple"})
    assert re.search(r"model \| Transformer \| 7\.4 K", outcome.err)
    assert "FIT Profiler Report" in outcome.err
    assert "run_training_batch" in outcome.err
    assert "lightning.pytorch" not in outcome.err


@pytest.mark.slow  # 6 s
def test_the_trace_of_the_pytorch_profiler_is_in_the_run_folder(run, settings, tmp_path):  # N34
    outcome = fit(run, settings, {"profiler": "pytorch", "logger": False})
    assert any("trace.json" in name for name in outcome.files)
    assert {path.name for path in tmp_path.iterdir()} == {"my.yaml", "runs"}


def test_checkpoints_of_lightning_are_beside_ours(run, settings):
    outcome = fit(run, settings, callback("ModelCheckpoint", monitor="val/bleu", mode="max"))
    found = {Path(name).name for name in outcome.files if name.endswith(".ckpt")}
    assert found > {"best.ckpt", "last.ckpt"}
    assert len(found) == 3
    assert {Path(name).parent.name for name in outcome.files if name.endswith(".ckpt")} == {
        "checkpoints"
    }


def test_the_learning_rate_monitor_logs_the_rate_of_the_update_before(run, settings):
    outcome = fit(run, settings, callback("LearningRateMonitor", logging_interval="step"))
    tags = [tag for tag in outcome.events().Tags()["scalars"] if tag.startswith("lr-")]
    rates = [value for _, value in outcome.curve("train/learning_rate")]
    for tag in tags:
        assert [value for _, value in outcome.curve(tag)][1:] == pytest.approx(rates[:-1])
    assert tags


# Clusters


@pytest.mark.parametrize("name", ["fit", "validate", "test"])
def test_inside_a_slurm_allocation_one_process_trains(run, settings, trained, monkeypatch, name):
    # N27
    for key, value in {"NTASKS": "4", "JOB_ID": "7", "JOB_NAME": "night", "PROCID": "0"}.items():
        monkeypatch.setenv(f"SLURM_{key}", value)
    args = () if name == "fit" else ("--ckpt_path", trained)
    outcome = run(name, settings, *args)
    assert outcome.code == 0, outcome.err
