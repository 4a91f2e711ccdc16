"""The plugin through which Lightning writes checkpoints."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins.io import TorchCheckpointIO

from translate.errors import WriteError
from translate.io import write_atomically


class AtomicCheckpointIO(TorchCheckpointIO):
    """Write each checkpoint beside the file that it replaces, and rename it when it is complete.

    Lightning's own plugin writes to the temporary folder. If this folder is on another file system,
    moving the file is a copy, of which a killed process or a full disk leaves a part.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write `checkpoint` to `path`.

        Raises:
            WriteError: the file cannot be written; an earlier checkpoint there is unchanged.
        """
        content = io.BytesIO()
        torch.save(checkpoint, content)
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror or error}") from None
        write_atomically(Path(path), content.getbuffer())
