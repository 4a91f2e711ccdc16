"""The folder that a training run leaves behind.

runs/NAME/version_N/
    config.yaml              every setting as used; `fit --config` on it repeats the run
    checkpoints/best.ckpt    best validation BLEU: weights, shape and tokenizer in one file
    checkpoints/last.ckpt    after the latest validation or epoch; `fit --ckpt_path` goes on from it
    events.out.tfevents...   TensorBoard
    result.json              written at the very end: only a finished run has one
    test.greedy.txt, .json   what `translate test` made of the best checkpoint; test.beam5.txt, ...
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from translate.decoding.checkpoint import version_number
from translate.errors import UsageError, UserError


@dataclass(frozen=True)
class RunFolder:
    """Where one run writes. Making the object creates nothing on disk."""

    runs: Path
    name: str
    version: str
    resumed: bool = False  # goes on in the folder of the run that wrote its checkpoint

    @classmethod
    def new(cls, runs: Path, name: str) -> RunFolder:
        """The next free version of `name`; existing ones are never touched.

        Raises:
            UsageError: a name that is no folder's name.
        """
        if name in (".", "..") or Path(name).name != name:
            raise UsageError(f"name must be that of one folder, not {name!r}")
        taken = [version_number(path) for path in (runs / name).glob("version_*")]
        return cls(runs, name, f"version_{max(taken, default=-1) + 1}")

    @classmethod
    def of_checkpoint(cls, checkpoint: Path) -> RunFolder | None:
        """The run that wrote `checkpoint`, or None if the file lies elsewhere."""
        folder = checkpoint.resolve().parent
        if folder.name != "checkpoints" or not folder.parent.name.startswith("version_"):
            return None
        return cls(folder.parents[2], folder.parents[1].name, folder.parent.name, resumed=True)

    @property
    def path(self) -> Path:
        return self.runs / self.name / self.version

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def save_config(self, text: str) -> None:
        """Create the folder and write the config; a resumed run keeps the earlier ones."""
        try:
            self.path.mkdir(parents=True, exist_ok=self.resumed)
            count = len(list(self.path.glob("config*.yaml")))
            name = f"config_resumed_{count}.yaml" if count else "config.yaml"
            (self.path / name).write_text(text, encoding="utf-8")
        except OSError as error:
            if isinstance(error, FileExistsError) and self.path.is_dir():
                raise UserError(
                    f"another run has just taken {self.path}: start this one again"
                ) from None
            raise UserError(f"cannot write the run folder {self.path}: {error.strerror}") from None

    def save_result(self, result: dict) -> None:
        """Mark the run as finished. Written whole or not at all."""
        unfinished = self.path / "result.json.part"
        unfinished.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(self.path / "result.json")

    # What to type next, with absolute, quoted paths: it works from any folder.

    def tensorboard_command(self) -> str:
        return f"tensorboard --logdir {_quoted(self.path.resolve().parent)}"

    def decode_command(self, example: str) -> str:
        return f"translate decode --model {_quoted(self.path.resolve())} {_quoted(example)}"

    def resume_command(self) -> str:
        path = self.path.resolve()
        checkpoint = path / "checkpoints" / "last.ckpt"
        config = max(path.glob("config*.yaml"), key=lambda file: file.stat().st_mtime_ns)
        return f"translate fit --config {_quoted(config)} --ckpt_path {_quoted(checkpoint)}"


def _quoted(text: object) -> str:
    """Always in quotes, so that a reader sees where the path ends."""
    quoted = shlex.quote(str(text))
    return quoted if quoted.startswith("'") else f'"{quoted}"'
