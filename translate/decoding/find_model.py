"""Find a trained model on disk: in a file, in a run folder, or in the newest finished run."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

from translate.decoding.checkpoint import TrainedModel, load_checkpoint
from translate.errors import UserError

logger = logging.getLogger(__name__)


def load_model(given: str | Path | None = None, runs: Path = Path("runs")) -> TrainedModel:
    """Load the model at `given` (see `find_model`), and log its path.

    Without `given`, the newest finished run under `runs` is chosen. If its checkpoint cannot be
    used, a warning says so and the next finished run is chosen.

    Raises:
        UserError: there is no checkpoint, or it cannot be used.
    """
    if given is not None:
        path = find_model(given)
        logger.info("model %s", path)
        return load_checkpoint(path)
    faults: list[UserError] = []
    for path in finished_models(runs):
        try:
            trained = load_checkpoint(path)
        except UserError as error:
            faults.append(error)
            continue
        if faults:
            count = f"{len(faults)} finished run{'s' * (len(faults) > 1)}"
            logger.warning("skipped %s, the newest because: %s", count, faults[0])
        logger.info("model %s", path)
        return trained
    if faults:
        raise UserError(f"no finished run under {runs}/ can be used; the newest: {faults[0]}")
    raise UserError(
        f"no finished run under {runs}/: train one with "
        "`translate fit --config configs/tiny.yaml`, or say where a model is with --model"
    )


def find_model(given: str | Path) -> Path:
    """Return the checkpoint at `given`: a file, or a checkpoints, version or run folder.

    In a folder, best.ckpt is preferred to last.ckpt. In a run folder, the newest finished version
    is chosen (result.json is written at the end), otherwise the newest version with a checkpoint.

    Raises:
        UserError: there is no checkpoint.
    """
    place = Path(given)
    with suppress(RuntimeError):  # there is no such user
        place = place.expanduser()
    if _changed(place) is not None:
        return place
    for folder in (place, place / "checkpoints"):
        if checkpoint := _checkpoint_in(folder):
            return checkpoint
    if finished := finished_models(place):
        return finished[0]
    versions = [
        (version_number(version), checkpoint)
        for version in _versions(place)
        if (checkpoint := _checkpoint_in(version / "checkpoints"))
    ]
    if versions:
        return max(versions)[1]
    try:
        os.listdir(place)  # noqa: PTH208 (iterdir opens the folder only when it is iterated)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"no such model: {place}; give a run folder (runs/NAME) or a .ckpt file"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read the model {place}: {error}") from None
    raise UserError(f"{place}: no best.ckpt or last.ckpt in this folder or its checkpoints/")


def finished_models(folder: Path) -> list[Path]:
    """Return the checkpoint of each finished version in `folder`, the newest first.

    The newest is the one whose result.json was written last; for equal times, the version with the
    highest number. Files and folders that disappear or cannot be read are passed over.
    """
    found = [
        (finished, version_number(version), checkpoint)
        for version in _versions(folder)
        if (finished := _changed(version / "result.json")) is not None
        and (checkpoint := _checkpoint_in(version / "checkpoints"))
    ]
    return [checkpoint for *_, checkpoint in sorted(found, reverse=True)]


def _versions(folder: Path) -> list[Path]:
    """Return the version folders in `folder` and in the folders there."""
    entries = [folder, *_entries(folder)]
    return [v for entry in entries for v in _entries(entry) if v.name.startswith("version_")]


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder; nothing if it is not a folder or cannot be read."""
    with suppress(OSError, ValueError):
        return list(folder.iterdir())
    return []


def _checkpoint_in(folder: Path) -> Path | None:
    candidates = (folder / "best.ckpt", folder / "last.ckpt")
    return next((path for path in candidates if _changed(path) is not None), None)


def _changed(path: Path) -> int | None:
    """Return when a file was changed, in nanoseconds; None if there is no such file."""
    with suppress(OSError, ValueError):
        status = path.stat()
        return status.st_mtime_ns if stat.S_ISREG(status.st_mode) else None
    return None


def version_number(path: Path) -> int:
    """Return the number of a version folder (version_10 follows version_9); -1 for other names."""
    digits = path.name.removeprefix("version_")
    return int(digits) if digits.isdecimal() else -1
