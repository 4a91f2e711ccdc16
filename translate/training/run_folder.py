"""The folder that a training run writes.

runs/NAME/version_N/
    config.yaml              every setting as used; `fit --config` with it repeats the run
    checkpoints/best.ckpt    best validation BLEU: weights, settings and tokenizer in one file
    checkpoints/last.ckpt    after the latest validation or epoch; `fit --ckpt_path` resumes it
    events.out.tfevents...   TensorBoard
    result.json              written at the very end: only a finished run has one
    test.greedy.txt, .json   results of `translate test` for best.ckpt; test.beam5.txt, ...
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from translate.decoding.find_model import version_number
from translate.errors import UsageError, UserError
from translate.io import check_can_create, write_atomically


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run. Creating this object creates nothing on disk."""

    path: Path  # runs/NAME/version_N
    resumed: bool = False  # the folder exists: it is the run that wrote the checkpoint

    @classmethod
    def new(cls, runs: Path, name: str) -> RunFolder:
        """Return the next unused version of `name`.

        Raises:
            UsageError: `name` is not the name of one folder.
        """
        if name in (".", "..") or Path(name).name != name:
            raise UsageError(f"name must be the name of one folder, not {name!r}")
        used = [version_number(path) for path in (runs / name).glob("version_*")]
        return cls(runs / name / f"version_{max(used, default=-1) + 1}")

    @classmethod
    def of_checkpoint(cls, checkpoint: Path) -> RunFolder | None:
        """Return the run that wrote `checkpoint`, or None if the file is elsewhere."""
        folder = checkpoint.resolve().parent
        if folder.name != "checkpoints" or not folder.parent.name.startswith("version_"):
            return None
        return cls(folder.parent, resumed=True)

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def check_writable(self) -> None:
        """Refuse a folder that cannot be created or written to, before the data is read.

        Raises:
            UserError: with the file or folder that is in the way.
        """
        existing = next(path for path in (self.path, *self.path.parents) if os.path.lexists(path))
        new = self.path.relative_to(existing).parts  # folders to create
        try:
            for name in new or ("config.yaml", "checkpoints/last.ckpt"):
                check_can_create(existing / name)
            with contextlib.suppress(FileNotFoundError):
                (self.checkpoints / ("x" * 64)).lstat()  # fails if the path is too long
        except UserError as error:
            raise UserError(f"cannot write the run folder {self.path}: {error}") from None
        except OSError as error:
            raise UserError(f"cannot write the run folder {self.path}: {error.strerror}") from None

    def save_config(self, text: str) -> None:
        """Create the folder and write the config; a resumed run keeps the earlier configs."""
        try:
            self.path.mkdir(parents=True, exist_ok=self.resumed)
        except FileExistsError:
            raise UserError(
                f"another run has just created {self.path}: start this one again"
            ) from None
        except OSError as error:
            raise UserError(f"cannot write the run folder {self.path}: {error.strerror}") from None
        count = len(list(self.path.glob("config*.yaml")))
        name = f"config_resumed_{count}.yaml" if count else "config.yaml"
        write_atomically(self.path / name, text.encode())

    def save_result(self, result: dict[str, Any]) -> None:
        """Mark the run as finished."""
        text = json.dumps(result, indent=2) + "\n"
        write_atomically(self.path / "result.json", text.encode())

    # Commands for the next step, with absolute, quoted paths: they work from any folder.

    def tensorboard_command(self) -> str:
        return f"tensorboard --logdir {_quoted(self.path.resolve().parent)}"

    def decode_command(self, example: str) -> str:
        return f"translate decode --model {_quoted(self.path.resolve())} {_quoted(example)}"

    def resume_command(self) -> str:
        path = self.path.resolve()
        checkpoint = path / "checkpoints" / "last.ckpt"
        config = max(path.glob("config*.yaml"), key=lambda file: file.stat().st_mtime_ns)
        return f"translate fit --config {_quoted(config)} --ckpt_path {_quoted(checkpoint)}"


def results_path(checkpoint: Path, name: str) -> Path:
    """Return the path, without suffix, where `translate test` writes the results `name`.

    Results are in the run's folder, or beside a checkpoint outside run folders. Unless the
    checkpoint is best.ckpt of a run, the file name begins with the name of the checkpoint, so that
    two checkpoints in one folder have different results.
    """
    run = RunFolder.of_checkpoint(checkpoint)
    if run is not None and checkpoint.stem == "best":
        return run.path / name
    return (checkpoint.parent if run is None else run.path) / f"{checkpoint.stem}.{name}"


def _quoted(text: object) -> str:
    """Quote `text` for a shell, in any case, so that a reader sees where the path ends."""
    quoted = shlex.quote(str(text))
    return quoted if quoted.startswith("'") else f'"{quoted}"'
