"""Small runs: a few dozen pairs, a few thousand weights, about one second per run."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import yaml
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import Timer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from translate.cli import main
from translate.training.cli import TranslationCLI

WORDS = [("cat", "Katze"), ("house", "Haus"), ("tree", "Baum"), ("day", "Tag"), ("man", "Mann")]
PLACES = [("here", "hier"), ("there", "dort"), ("at home", "zu Hause"), ("in the sun", "im Licht")]


@dataclass
class Outcome:
    """The results of one command."""

    code: int
    out: str
    err: str
    runs: Path

    @property
    def folder(self) -> Path:
        """The newest version folder."""
        return max(self.runs.glob("*/version_*"), key=lambda path: int(path.name[8:]))

    @property
    def files(self) -> list[str]:
        """The files of the run; the name of the event file is shortened."""
        names = [path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file()]
        short = [str(name).partition(".tfevents")[0] for name in names]
        return sorted(
            {re.sub(r"^\d+/pieces/.*|^projector_.*", "projector", name) for name in short}
        )

    def checkpoint(self, name: str = "last") -> dict:
        path = self.folder / "checkpoints" / f"{name}.ckpt"
        return torch.load(path, map_location="cpu", weights_only=True)

    def weights(self) -> torch.Tensor:
        """All weights of last.ckpt in one vector."""
        state = self.checkpoint()["state_dict"]
        return torch.cat([tensor.flatten() for tensor in state.values()])

    def events(self) -> EventAccumulator:
        return EventAccumulator(str(self.folder), {"images": 0, "tensors": 0}).Reload()

    def curve(self, tag: str) -> list[tuple[int, float]]:
        """(update, value) pairs."""
        return [(event.step, event.value) for event in self.events().Scalars(tag)]

    def steps(self, tag: str) -> list[int]:
        return [step for step, _ in self.curve(tag)]


@contextlib.contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _wait_until_files_sort_by_time(runs: Path) -> None:
    """Wait until the second is over in which the newest event file was made.

    TensorBoard reads event files in the order of their names. A name has the second, the host,
    the process and the number of the file. Within one second, file 10 would come before file 9.
    """
    seconds = [int(path.name.split(".")[3]) for path in runs.rglob("events.out.tfevents.*")]
    while time.time() < max(seconds, default=0) + 1:
        time.sleep(0.05)


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def command(
    folder: Path, name: str, config: dict | Path | None, *args: object, terminal: bool = False
) -> Outcome:
    """Run a command in this process with `folder` as the working directory."""
    arguments = [name]
    if isinstance(config, dict):
        path = folder / "my.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        config = path
    if config is not None:
        arguments += ["--config", str(config)]
    if "--ckpt_path" in args:
        _wait_until_files_sort_by_time(folder / "runs")
    out, err = io.StringIO(), Terminal() if terminal else io.StringIO()
    with _working_in(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*arguments, *map(str, args)])
    return Outcome(code, out.getvalue(), err.getvalue(), folder / "runs")


@pytest.fixture
def run(tmp_path) -> Callable[..., Outcome]:
    """run("fit", config, "--trainer.max_epochs", 2) in an empty folder."""
    return functools.partial(command, tmp_path)


def tiny_settings(folder: Path) -> dict:
    """The settings of the smallest run: 4 batches per epoch."""
    pairs = [
        (f"The {word} and the {other} are {place}.", f"{wort} und {anderes} sind {ort}.")
        for word, wort in WORDS
        for other, anderes in WORDS[:2]
        for place, ort in PLACES
    ]
    pairs = random.Random(0).sample(pairs, len(pairs))
    for name, part in {"train": pairs[:30], "valid": pairs[30:36], "test": pairs[36:]}.items():
        text = "".join(f"{source}\t{target}\n" for source, target in part)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    return {
        "data": {
            **{name: {"tsv": str(folder / f"{name}.tsv")} for name in ("train", "valid", "test")},
            "vocab_size": 120,
            "batch_tokens": 160,
        },
        "model": {
            "d_model": 16,
            "n_heads": 2,
            "d_ff": 32,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "dropout": 0.0,
            "max_length": 40,
            "warmup_steps": 2,
        },
        "trainer": {
            "max_epochs": 1,
            "accelerator": "cpu",
            "enable_progress_bar": False,
            "log_every_n_steps": 1,
        },
        "translations": {"heatmaps": []},  # drawing takes as long as all the rest
    }


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> dict:
    return tiny_settings(tmp_path_factory.mktemp("data"))


@pytest.fixture
def settings(tiny) -> dict:
    """A config of the smallest run, for a test to change before it is written."""
    return copy.deepcopy(tiny)


@pytest.fixture(scope="session")
def finished(tiny, tmp_path_factory) -> Outcome:
    """A run of two epochs that tests read but do not change."""
    config = copy.deepcopy(tiny)
    config["trainer"]["max_epochs"] = 2
    del config["translations"]
    return command(tmp_path_factory.mktemp("finished"), "fit", config)


@pytest.fixture
def trained(finished, tmp_path) -> Path:
    """The folder of a copy of that run, for a command that writes into it."""
    return shutil.copytree(finished.folder, tmp_path / "trained" / "version_0")


class Watcher(Callback):
    """Records each batch and its learning rate, and calls a function at a given update."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[tuple]]] = []  # (epoch, sources)
        self.rates: list[float] = []
        self.gradients: list[torch.Tensor] = []
        self.training: list[bool] = []
        self.at: dict[int | str, Callable[[], None]] = {}  # 3, "validation 3", "end 3"

    def weights(self) -> torch.Tensor:
        """All weights of the model in training in one vector."""
        return torch.cat([tensor.flatten().clone() for tensor in self.module.state_dict().values()])

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx) -> None:
        self.module = pl_module
        self.timer = next((each for each in trainer.callbacks if isinstance(each, Timer)), None)
        self.training.append(pl_module.training and pl_module.model.training)
        if action := self.at.get(trainer.global_step):
            action()
        sources = [tuple(filter(None, row)) for row in batch.src.tolist()]  # without padding
        self.batches.append((trainer.current_epoch, sources))

    def on_validation_start(self, trainer, pl_module) -> None:
        self.at.get(f"validation {trainer.global_step}", lambda: None)()

    def on_fit_end(self, trainer, pl_module) -> None:
        self.at.get(f"end {trainer.global_step}", lambda: None)()

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])
        gradients = [p.grad.flatten() for p in pl_module.parameters() if p.grad is not None]
        self.gradients.append(torch.cat(gradients).clone())


@pytest.fixture
def watcher(monkeypatch) -> Watcher:
    """Return a watcher that is attached to every run of this test."""
    watcher = Watcher()
    make = TranslationCLI.make_trainer

    def make_watched(self, *args):
        trainer = make(self, *args)
        trainer.callbacks.append(watcher)
        return trainer

    monkeypatch.setattr(TranslationCLI, "make_trainer", make_watched)
    return watcher
