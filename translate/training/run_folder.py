"""The folder that a training run writes.

runs/NAME/version_N/
    run.json                 id, seed, versions, SHA-256 of the data: what made this run
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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from translate.decoding.find_model import version_number
from translate.errors import UsageError, UserError
from translate.io import check_can_create, remove_partial_files, write_atomically


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run. Creating this object creates nothing on disk."""

    path: Path  # runs/NAME/version_N, or wherever the user has moved it
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
        """Return the run folder that holds `checkpoint`, or None if the file is elsewhere."""
        folder = checkpoint.resolve().parent
        path = folder.parent
        is_run = path.name.startswith("version_") or (path / "run.json").is_file()
        return cls(path, resumed=True) if folder.name == "checkpoints" and is_run else None

    @property
    def run_id(self) -> str | None:
        """The id in run.json; None for a run of an earlier version of this program."""
        try:
            return json.loads((self.path / "run.json").read_text(encoding="utf-8"))["id"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return ""  # damaged: the id of no checkpoint

    def is_finished(self, updates: int) -> bool:
        """Return whether the run wrote its result after so many updates or more."""
        try:
            result = json.loads((self.path / "result.json").read_text(encoding="utf-8"))
            return result["steps"] >= updates
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def other_place(self, name: str | None, runs: Path | None) -> str:
        """Return why `name` and `runs` ask for another run than this one, or "".

        They do not if they name the place of this run, or the place in its own config: the folder
        may have been moved since.
        """
        names, folders = {self.path.parent.name}, {self.path.parent.parent.resolve()}
        for file in self.path.glob("config*.yaml"):
            try:
                stored = yaml.safe_load(file.read_text(encoding="utf-8"))
                name_then, runs_then = stored["name"], Path(stored["runs"])
            except (OSError, ValueError, yaml.YAMLError, TypeError, KeyError):
                continue  # changed by hand
            names.add(name_then)
            folders.add(runs_then.resolve())
        if name is not None and name not in names:
            return f"the name {name!r} is not the name of that run"
        if runs is not None and runs.resolve() not in folders:
            return f"that run is not in {runs}"
        return ""

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

    def save_config(self, text: str, record: Mapping[str, Any]) -> None:
        """Create the folder and write the config and the `record` of the run.

        A resumed run keeps its record and the earlier configs, and removes incomplete files.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=self.resumed)
        except FileExistsError:
            raise UserError(
                f"another run has just created {self.path}: start this one again"
            ) from None
        except OSError as error:
            raise UserError(f"cannot write the run folder {self.path}: {error.strerror}") from None
        if self.resumed:
            remove_partial_files(self.path)
            remove_partial_files(self.checkpoints)
        if self.run_id is None:
            save_json(self.path / "run.json", record)
        count = len(list(self.path.glob("config*.yaml")))
        name = f"config_resumed_{count}.yaml" if count else "config.yaml"
        write_atomically(self.path / name, text.encode())

    def save_result(self, result: dict[str, Any]) -> None:
        """Mark the run as finished."""
        save_json(self.path / "result.json", result)

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


def save_json(path: Path, values: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode())


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
