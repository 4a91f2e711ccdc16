"""Steps taken apart in a process of their own: those of `translate fit`, or of a bare loop.

    python -m benchmark_parts.split_worker '{"way": "translate fit", ...}'

The JSON answer goes into a file: {"seconds": of a mean step, "parts": {part: seconds}} or
{"seconds": ..., "shares": {block: share}, "profiled_seconds": ...}.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import torch
import yaml


class Stopwatch:
    """Time of methods without that of other timed methods that they call."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._running: list[str] = ["Lightning"]
        self._since = time.perf_counter()

    def turn(self) -> float:
        """Book the time up to now; returns the moment."""
        now = time.perf_counter()
        self.seconds[self._running[-1]] += now - self._since
        self._since = now
        return now

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            self.turn()
            self._running.append(part)
            try:
                return function(*args, **kwargs)
            finally:
                self.turn()
                self._running.pop()

        return inner

    def watch(self, owner: Any, name: str, part: str) -> None:
        setattr(owner, name, self.timed(part, getattr(owner, name)))


def fit(settings: dict[str, Any]) -> dict[str, Any]:
    """`translate fit` as it is; seconds of a mean step and of its parts."""
    from lightning.pytorch.loops.training_epoch_loop import _TrainingEpochLoop
    from lightning.pytorch.trainer.connectors.logger_connector import _LoggerConnector
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    from translate.training import module as training_module
    from translate.training.callbacks import ProgressBar
    from translate.training.cli import main as translate_fit
    from translate.training.logger import Curves

    TranslationModule = training_module.TranslationModule
    watch = Stopwatch()
    watch.watch(_BaseDataLoaderIter, "__next__", "data")
    # On several threads the loss comes with its gradient, which is handed out later.
    watch.watch(training_module, "loss_in_parts", "forward and backward")
    watch.watch(torch.Tensor, "backward", "forward and backward")
    watch.watch(TranslationModule, "on_before_optimizer_step", "clipping and optimiser")
    watch.watch(torch.nn.utils, "clip_grad_norm_", "clipping and optimiser")
    watch.watch(torch.optim.AdamW, "zero_grad", "clipping and optimiser")
    # What `training_step` does beside the loss, it does in order to log it.
    watch.watch(TranslationModule, "training_step", "logging")
    watch.watch(TranslationModule, "log", "logging")
    for name in ("on_batch_start", "on_batch_end", "update_train_step_metrics", "log_metrics"):
        watch.watch(_LoggerConnector, name, "logging")
    watch.watch(Curves, "log_metrics", "logging")
    watch.watch(Curves, "save", "logging")
    watch.watch(ProgressBar, "on_train_batch_end", "logging")
    update = watch.timed("clipping and optimiser", torch.optim.AdamW.step)

    def step(self: Any, closure: Callable[[], Any] | None = None) -> Any:
        # Lightning does the forward and the backward pass in the optimizer's closure.
        return update(self, closure and watch.timed("Lightning", closure))

    torch.optim.AdamW.step = step
    starts: list[tuple[float, dict[str, float]]] = []
    advance = _TrainingEpochLoop.advance

    def noted(self: Any, *args: Any) -> None:
        starts.append((watch.turn(), dict(watch.seconds)))
        advance(self, *args)

    _TrainingEpochLoop.advance = noted
    if code := translate_fit(["fit", "--config", settings["config"], "--runs", settings["runs"]]):
        sys.exit(code)
    first, last = starts[settings["warmup"]], starts[settings["warmup"] + settings["steps"]]
    steps = settings["steps"]
    parts = {part: (last[1][part] - first[1].get(part, 0)) / steps for part in last[1]}
    return {"seconds": (last[0] - first[0]) / steps, "parts": parts}


def bare(settings: dict[str, Any]) -> dict[str, Any]:
    """The same batches in a plain loop, some with a stopwatch only, some under the profiler.

    The profiler sees one thread's operations, so its steps are not in parts.
    """
    from lightning.pytorch import Trainer, seed_everything

    from translate.text.corpus import ParallelFiles
    from translate.training.data import TranslationData
    from translate.training.module import TranslationModule
    from translate.training.parts import loss_in_parts

    config = yaml.safe_load(Path(settings["config"]).read_text("utf-8"))
    seed_everything(config["seed_everything"], verbose=False)
    data = config["data"]
    files = {
        name: ParallelFiles(*(Path(data[name][side]) for side in ("source", "target")))
        for name in ("train", "valid")
    }
    datamodule = TranslationData(
        **files, tokenizer=Path(data["tokenizer"]), batch_tokens=data["batch_tokens"]
    )
    trainer = Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    datamodule.trainer = trainer
    trainer.datamodule = datamodule
    datamodule.setup("fit")
    module = TranslationModule(**config["model"])
    module.trainer = trainer
    module.setup("fit")
    module.train()
    optimizer = module.configure_optimizers()
    for group in optimizer.param_groups:
        group["lr"] = 1e-5
    count = settings["warmup"] + settings["steps"]
    batches = [batch for batch, _ in zip(datamodule.train_dataloader(), range(count), strict=False)]

    def step(batch: Any, loss: Callable[[Any], Any] = module.loss) -> None:
        summed = loss(batch)
        (summed.loss / max(1, summed.count)).backward()
        with torch.profiler.record_function("clipping and optimiser"):
            torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    def in_parts(batch: Any) -> Any:
        parameters = list(module.parameters())
        return loss_in_parts(module.loss, batch, module.model.config.pad_id, parameters)

    for batch in batches[: settings["warmup"]]:
        step(batch, in_parts)
    started = time.perf_counter()
    for batch in batches[settings["warmup"] :]:
        step(batch, in_parts)
    seconds = (time.perf_counter() - started) / settings["steps"]
    from benchmark_parts.blocks import shares

    profiled = batches[settings["warmup"] :][: settings["profiled"]]
    blocks, profiled_seconds = shares(step, profiled)
    return {"seconds": seconds, "shares": blocks, "profiled_seconds": profiled_seconds}


def main() -> None:
    settings = json.loads(sys.argv[1])
    torch.set_num_threads(settings["threads"])
    answer = {"translate fit": fit, "bare loop": bare}[settings["way"]](settings)
    Path(settings["answer"]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
