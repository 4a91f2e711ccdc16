"""Checks of trainer.*: each setting works as documented, or is refused before a run starts.

docs/lightning.md lists them all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import torch
from jsonargparse import Namespace
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import (
    BaseFinetuning,
    BatchSizeFinder,
    Callback,
    DeviceStatsMonitor,
    EarlyStopping,
    GradientAccumulationScheduler,
    LearningRateFinder,
    LearningRateMonitor,
    ModelCheckpoint,
    ModelPruning,
    OnExceptionCheckpoint,
    ProgressBar,
    StochasticWeightAveraging,
    ThroughputMonitor,
    Timer,
)
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from translate.errors import UsageError
from translate.training.settings import out_of_range

# The metrics that the module and our callbacks log, beside those of the monitor ("watch_...").
TRAINING_METRICS = (
    *("train/loss", "train/nll", "train/learning_rate", "train/gradient_norm"),
    *("train/tokens_per_second", "train/padding_share"),
)
VALIDATION_METRICS = (
    *("val/bleu", "val/chrf", "val/exact_match", "val/loss", "val/nll", "val/perplexity"),
    *("val/limit_reached", "val/copied_source", "val/repeats_itself"),
)

# The lowest value of each setting of the Trainer, and those that may also be a share.
_LOWEST = {
    "accumulate_grad_batches": 1,
    "check_val_every_n_epoch": 1,
    "fast_dev_run": 0,
    "gradient_clip_val": 0,
    "limit_train_batches": 0,
    "limit_val_batches": 0,
    "limit_test_batches": 0,
    "limit_predict_batches": 0,
    "log_every_n_steps": 0,
    "max_epochs": -1,
    "max_steps": -1,
    "min_epochs": 0,
    "min_steps": 0,
    "num_sanity_val_steps": -1,
    "overfit_batches": 0,
    "reload_dataloaders_every_n_epochs": 0,
}
_SHARES = (
    *("limit_train_batches", "limit_val_batches", "limit_test_batches", "limit_predict_batches"),
    *("overfit_batches", "val_check_interval"),
)

# The only values of these settings that work here.
_PRECISIONS = ("32-true", "64-true", "bf16-mixed", "16-mixed", "32", "64", "bf16", "16")
_CHOICES = {
    "profiler": ("simple", "advanced", "pytorch"),
    "gradient_clip_algorithm": ("norm", "value"),
}

# Settings that must keep their default, and what to set instead.
_FIXED = {
    "num_nodes": (1, "training runs on one device: leave it out"),
    "strategy": ("auto", "training runs on one device: leave it out"),
    "plugins": (None, "this program chooses them; for the precision, set trainer.precision"),
    "default_root_dir": (None, "set --runs to choose where runs are written"),
    "barebones": (False, "set trainer.logger and trainer.enable_progress_bar to false"),
    "model_registry": (None, "training sends nothing anywhere"),
}

# Callbacks of Lightning that cannot do here what their documentation says, and alternatives.
_UNSUPPORTED: dict[type[Callback], str] = {
    LearningRateFinder: "the learning rate depends on the step alone: set model.peak_learning_rate",
    StochasticWeightAveraging: "it sets a learning rate of its own: use EMAWeightAveraging",
    BatchSizeFinder: "a batch is limited in tokens: set data.batch_tokens",
    GradientAccumulationScheduler: "the schedule of the learning rate needs a fixed number of "
    "updates: set trainer.accumulate_grad_batches",
    ModelPruning: "its checkpoints could not translate: set a smaller model.d_model",
    BaseFinetuning: "there are no pretrained layers to freeze: remove it",
    OnExceptionCheckpoint: "last.ckpt is always saved: resume it with --ckpt_path",
    Timer: "set trainer.max_time",
}
_SWITCHES: dict[type[Callback], str] = {
    ProgressBar: "enable_progress_bar",
    ModelCheckpoint: "enable_checkpointing",
}
_NEED_LOGGER = (LearningRateMonitor, DeviceStatsMonitor, ThroughputMonitor)


class BatchLimitTrainer(Trainer):
    """Trainer whose limits tell 1, a single batch, from 1.0, all batches.

    In the annotations of Lightning, `typing` may swap int and float, because it reuses an equal
    union of another module. The parser then reads 1 as 1.0.
    """

    def __init__(
        self,
        *,
        limit_train_batches: int | float | None = None,
        limit_val_batches: int | float | None = None,
        limit_test_batches: int | float | None = None,
        limit_predict_batches: int | float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            limit_train_batches=limit_train_batches,
            limit_val_batches=limit_val_batches,
            limit_test_batches=limit_test_batches,
            limit_predict_batches=limit_predict_batches,
            **options,
        )


def check_options(options: Namespace, config: Namespace) -> None:
    """Refuse settings of the Trainer that it or this program cannot follow.

    This check comes before the Trainer is made, which reports some of these faults late, in the
    words of its own source, or not at all.

    Args:
        options: the arguments of the Trainer. Its callbacks are the user's, as a list of objects.
        config: all settings. Here, a callback is still a class_path with init_args.

    Raises:
        UsageError: invalid settings, all in one message.
    """
    numbers = {
        name: value for name, value in vars(options).items() if isinstance(value, int | float)
    }
    lowest = {name: low for name, low in _LOWEST.items() if name in numbers}
    faults = [f"trainer.{fault}" for fault in out_of_range(numbers, lowest)]
    faults += [
        f"trainer.{name} must be a whole number of batches, or a share of at most 1, not {value}"
        for name in _SHARES
        if isinstance(value := options[name], float) and value > 1
    ]
    for name, choices in _CHOICES.items():
        value = options[name]
        if isinstance(value, str) and value not in choices:
            faults.append(f"trainer.{name} must be one of {', '.join(choices)}, not {value}")
    if (precision := options.precision) is not None and str(precision) not in _PRECISIONS:
        faults.append(
            f"trainer.precision must be 32-true, 64-true, bf16-mixed or 16-mixed, not {precision}: "
            "weights of 16 bits would lose small updates"
        )
    for name, (default, instead) in _FIXED.items():
        if options[name] not in (default, None):
            faults.append(f"trainer.{name} is not supported: {instead}")
    for name in ("epochs", "steps"):
        low, high = options[f"min_{name}"], options[f"max_{name}"]
        if low is not None and high is not None and low > high > 0:
            faults.append(f"trainer.min_{name} {low} is more than trainer.max_{name} {high}")
    faults += _device_faults(options.accelerator, options.devices)
    faults += _time_faults(options)
    given = config.trainer.callbacks or []
    given = given if isinstance(given, list) else [given]
    for callback, entry in zip(options.callbacks, given, strict=True):
        faults += _callback_faults(callback, entry.get("init_args") or Namespace(), options)
    if (stopping := config.early_stopping).check_on_train_epoch_end:
        faults += _monitor_faults("early_stopping", stopping.monitor, stopping, options)
    if faults:
        raise UsageError("; ".join(faults))


def _device_faults(accelerator: Any, devices: Any) -> Iterator[str]:
    """Yield what is wrong with the choice of one device."""
    gpus = torch.cuda.device_count()
    if accelerator == "mps":
        yield "training on Apple's MPS is not supported: set --trainer.accelerator cpu"
    elif accelerator not in ("cpu", "gpu", "cuda", "auto"):
        yield f"trainer.accelerator must be cpu, gpu or auto, not {accelerator}"
    elif accelerator in ("gpu", "cuda") and not gpus:
        yield (
            f"trainer.accelerator is {accelerator}, but PyTorch finds no GPU with CUDA: set "
            "--trainer.accelerator cpu"
        )
    else:
        allowed = ["1"]
        if gpus <= 1 or accelerator == "cpu":
            allowed.append("auto")
        if gpus and accelerator != "cpu":
            allowed += [f"[{number}]" for number in range(gpus)]
            allowed += [f"{number}," for number in range(gpus)]
            allowed += ["-1"] if gpus == 1 else []
        if str(devices) not in allowed:
            yield f"training runs on one device, not {devices}: set --trainer.devices 1"


def _time_faults(options: Namespace) -> Iterator[str]:
    """Yield what is wrong with the settings of time, and with the interval of validations."""
    interval = options.val_check_interval
    if interval is not None and not isinstance(interval, int | float):
        yield (
            f"trainer.val_check_interval must be batches or a share of an epoch, not {interval}: "
            "times of validations could not be repeated"
        )
    elif interval is not None and interval <= 0:
        yield f"trainer.val_check_interval must be above 0, not {interval}"
    elif options.check_val_every_n_epoch is None and isinstance(interval, float):
        yield (
            "trainer.check_val_every_n_epoch null counts batches across epochs: set "
            "trainer.val_check_interval to a whole number of batches"
        )
    if options.max_time is not None:
        try:
            left = Timer(options.max_time).time_remaining()
        except (MisconfigurationException, TypeError, ValueError):
            yield (
                f"trainer.max_time {options.max_time} is not a time: write days, hours, minutes "
                "and seconds as 00:12:00:00"
            )
        else:
            if left is not None and left <= 0:
                yield f"nothing to train: trainer.max_time is {options.max_time}"


def _callback_faults(callback: Callback, given: Namespace, options: Namespace) -> Iterator[str]:
    """Yield what is wrong with one of the user's callbacks, which has the settings `given`."""
    name = f"trainer.callbacks: {type(callback).__name__}"
    for kind, instead in _UNSUPPORTED.items():
        if isinstance(callback, kind):
            yield f"{name} is not supported: {instead}"
    if isinstance(callback, _NEED_LOGGER) and options.logger in (False, []):
        yield f"{name} needs a logger: remove trainer.logger false"
    if isinstance(callback, DeviceStatsMonitor) and not find_spec("psutil"):
        yield f"{name} needs the package psutil: pip install psutil"
    for kind, setting in _SWITCHES.items():
        if isinstance(callback, kind) and options[setting] is False:
            yield f"{name} contradicts trainer.{setting} false: remove one of them"
    if isinstance(callback, ModelCheckpoint) and callback.save_last and not callback.dirpath:
        yield f"{name}: save_last is not supported: last.ckpt is always saved"
    if isinstance(callback, EarlyStopping | ModelCheckpoint) and callback.monitor is not None:
        yield from _monitor_faults(name, callback.monitor, given, options)


def _monitor_faults(name: str, metric: str, given: Namespace, options: Namespace) -> Iterator[str]:
    """Yield why a callback would not find its metric when it looks for it."""
    known = TRAINING_METRICS + VALIDATION_METRICS
    if metric not in known and not metric.startswith("watch_"):
        if given.get("strict") is not False:
            yield f"{name}: no metric {metric}; choose one of {', '.join(known)}"
        return
    if metric not in VALIDATION_METRICS:
        return
    if options.limit_val_batches == 0:
        yield f"{name} needs {metric}, but trainer.limit_val_batches 0 leaves no validation"
    at_steps = given.get("every_n_train_steps") or given.get("train_time_interval")
    at_epochs = given.get("check_on_train_epoch_end") or given.get("save_on_train_epoch_end")
    if at_steps or (at_epochs and options.check_val_every_n_epoch != 1):
        yield (
            f"{name} would look for {metric} where there is no validation: let it look after "
            "validations, as it does by default"
        )


def check_trainer(
    trainer: Trainer, batches: int | None = None, validation_batches: int | None = None
) -> None:
    """Refuse settings that cannot train. Batches per epoch are known once the data is read.

    Raises:
        UsageError: invalid settings, all in one message.
    """
    faults = [
        f"nothing to train: trainer.{limit} is 0"
        for limit in ("max_epochs", "max_steps", "limit_train_batches")
        if getattr(trainer, limit) == 0
    ]
    if trainer.strategy.root_device.type == "mps":
        faults.append("training on Apple's MPS is not supported: set --trainer.accelerator cpu")
    for kind, count in (("train", batches), ("val", validation_batches)):
        limit = getattr(trainer, f"limit_{kind}_batches")
        if count and isinstance(limit, float) and 0 < limit * count < 1:
            setting = "overfit_batches" if trainer.overfit_batches else f"limit_{kind}_batches"
            faults.append(
                f"trainer.{setting} {limit} of {count} batches in data."
                f"{kind.replace('val', 'valid')} is less than one batch: raise it"
            )
    if batches:
        limit, interval = trainer.limit_train_batches, trainer.val_check_interval
        batches = min(batches, limit) if isinstance(limit, int) else int(batches * limit)
        in_epoch = trainer.check_val_every_n_epoch is not None
        if in_epoch and isinstance(interval, int) and interval > batches:
            faults.append(
                f"trainer.val_check_interval is {interval} batches, but an epoch has {batches}: "
                "set trainer.check_val_every_n_epoch to null to count across epochs"
            )
        epochs, least = trainer.max_epochs or -1, trainer.min_steps or 0
        updates = math.ceil(batches / trainer.accumulate_grad_batches) * epochs
        if -1 < updates < least:
            faults.append(
                f"trainer.min_steps is {least}, but trainer.max_epochs {epochs} has {updates} "
                "updates: raise max_epochs"
            )
    if faults:
        raise UsageError("; ".join(faults))
