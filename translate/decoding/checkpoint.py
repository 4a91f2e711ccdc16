"""One trained model on disk: weights, tokenizer and config in one file, read without lightning.

The file is the checkpoint that training writes. Decoding needs two of its entries:

    checkpoint["state_dict"]   the weights, each name with "model." in front
    checkpoint["translate"]    what `checkpoint_entry` returns
"""

from __future__ import annotations

import re
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from translate.errors import UserError
from translate.model.transformer import Transformer, TransformerConfig
from translate.text.tokenizer import Tokenizer
from translate.version import __version__

FORMAT = 2

# Names of weights in format 1 and their new names.
_FORMAT_1_NAMES = (
    (r"(encoder\.\d+)\.attention\.", r"\1.self_attention.sublayer."),
    (r"(encoder\.\d+)\.attention_residual\.", r"\1.self_attention."),
    (r"(decoder\.\d+)\.(self|cross)_attention\.", r"\1.\2_attention.sublayer."),
    (r"(decoder\.\d+)\.(self|cross)_residual\.", r"\1.\2_attention."),
    (r"\.feed_forward\.(\d)", r".feed_forward.sublayer.\1"),
    (r"\.feed_forward_residual\.", r".feed_forward."),
)


@dataclass(frozen=True)
class TrainedModel:
    """A model in evaluation mode, the tokenizer it was trained with, and where both came from."""

    model: Transformer
    tokenizer: Tokenizer
    path: Path


def checkpoint_entry(config: TransformerConfig, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the entry "translate" of a checkpoint: plain values and a tensor, no code."""
    return {
        "format": FORMAT,
        "config": asdict(config),
        "tokenizer": torch.frombuffer(bytearray(tokenizer.to_bytes()), dtype=torch.uint8),
        "tokenizer_sha256": tokenizer.fingerprint(),
        "translate_version": __version__,
    }


def load_checkpoint(path: str | Path) -> TrainedModel:
    """Read a checkpoint onto the CPU, whatever device wrote it; nothing in it is executed.

    Raises:
        UserError: the file is damaged or not a checkpoint of `translate fit`, or its weights,
            config and tokenizer do not belong together.
    """
    path = Path(path)
    checkpoint = _read(path)
    try:
        return TrainedModel(*_model_and_tokenizer(checkpoint), path)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _read(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unusual pickles, which are refused anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise UserError(f"cannot read the model {path}: {error.strerror or error}") from None
    except Exception:  # a damaged file makes torch and pickle raise nearly anything
        raise UserError(
            f"{path}: not a checkpoint, damaged, or containing more than numbers and text; nothing "
            "in it was executed. Give a .ckpt file that `translate fit` wrote"
        ) from None


def _model_and_tokenizer(checkpoint: Any) -> tuple[Transformer, Tokenizer]:
    entry = checkpoint.get("translate") if isinstance(checkpoint, dict) else None
    if not isinstance(entry, dict) or not isinstance(checkpoint.get("state_dict"), dict):
        raise UserError("a PyTorch file, but no checkpoint written by `translate fit`")
    if entry.get("format") not in (1, FORMAT):
        raise UserError(
            f"checkpoint format {entry.get('format')}, but this version of translate "
            f"({__version__}) reads formats 1 to {FORMAT}; "
            f"use the version that wrote it ({entry.get('translate_version')})"
        )
    try:
        config = TransformerConfig(**entry["config"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the model's config is unusable: {error}") from None
    tokenizer = _tokenizer(entry, config)
    model = Transformer(config)
    stored = checkpoint["state_dict"]
    if entry["format"] == 1:
        stored = {_renamed(name): tensor for name, tensor in stored.items()}
    model.load_state_dict(_weights(stored, model))
    return model.eval(), tokenizer


def _tokenizer(entry: dict[str, Any], config: TransformerConfig) -> Tokenizer:
    """Return the stored tokenizer; UserError unless the model was trained with it."""
    stored = entry.get("tokenizer")
    if not isinstance(stored, Tensor) or stored.dtype != torch.uint8:
        raise UserError("the checkpoint holds no tokenizer")
    tokenizer = Tokenizer(stored.numpy().tobytes())
    if len(tokenizer) != config.vocab_size:
        raise UserError(
            f"the tokenizer has {len(tokenizer)} pieces but the model {config.vocab_size}: "
            "the model was trained with another tokenizer"
        )
    if tokenizer.fingerprint() != entry.get("tokenizer_sha256"):
        raise UserError(
            "the tokenizer is not the one the model was trained with (its SHA-256 is "
            f"{tokenizer.fingerprint()[:12]}..., expected {entry.get('tokenizer_sha256')!s:.12}...)"
        )
    if tokenizer.pad_id != config.pad_id:
        raise UserError(
            f"padding is piece {tokenizer.pad_id} in the tokenizer but {config.pad_id} in the model"
        )
    return tokenizer


def _renamed(name: str) -> str:
    """Return the new name of a weight of format 1."""
    for old, new in _FORMAT_1_NAMES:
        name = re.sub(old, new, name)
    return name


def _weights(stored: dict[str, Any], model: Transformer) -> dict[str, Tensor]:
    """Return the stored tensors by name; UserError unless names and shapes equal the model's."""
    # torch.compile and data-parallel wrappers insert their own part into every name.
    wrappers = {"_orig_mod", "module"}
    found = {
        ".".join(part for part in name.split(".") if part not in wrappers): tensor
        for name, tensor in stored.items()
    }
    shapes = {f"model.{name}": tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    faults = []
    if missing := [name for name in shapes if name not in found]:
        faults.append(f"missing {_some(missing)}")
    if extra := [name for name in found if name not in shapes]:
        faults.append(f"unexpected {_some(extra)}")
    for name, tensor in found.items():
        shape = tuple(tensor.shape) if isinstance(tensor, Tensor) else "no tensor"
        if shape != shapes.get(name, shape):
            faults.append(f"{name} is {shape} instead of {shapes[name]}")
    if faults:
        raise UserError(f"the weights do not fit the model: {'; '.join(faults)}")
    return {name.removeprefix("model."): tensor for name, tensor in found.items()}


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def find_model(given: str | Path | None = None, runs: Path = Path("runs")) -> Path:
    """Return the checkpoint at `given`: a file, or a checkpoints, version or run folder.

    In a folder, best.ckpt is preferred to last.ckpt. In a run folder, the newest finished version
    is chosen (result.json is written at the end), otherwise the newest version with a checkpoint.
    Without `given`, the newest finished run under `runs` is chosen.

    Raises:
        UserError: there is no checkpoint.
    """
    place = runs if given is None else Path(given).expanduser()
    if place.is_file():
        return place
    if checkpoint := _checkpoint_in(place):
        return checkpoint
    versions = {
        version: checkpoint
        for version in [*place.glob("version_*"), *place.glob("*/version_*")]
        if (checkpoint := _checkpoint_in(version))
    }
    finished = [version for version in versions if (version / "result.json").is_file()]
    if finished:
        return versions[max(finished, key=_when_finished)]
    if given is None:
        raise UserError(
            f"no finished run under {runs}/: train one with "
            "`translate fit --config configs/tiny.yaml`, or say where a model is with --model"
        )
    if versions:
        return versions[max(versions, key=version_number)]
    if place.exists():
        raise UserError(f"{place}: no best.ckpt or last.ckpt in this folder or its checkpoints/")
    raise UserError(f"no such model: {place}; give a run folder (runs/NAME) or a .ckpt file")


def _checkpoint_in(folder: Path) -> Path | None:
    """Return the best or else the last checkpoint in `folder` or its checkpoints/."""
    names = ("best.ckpt", "last.ckpt", "checkpoints/best.ckpt", "checkpoints/last.ckpt")
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _when_finished(version: Path) -> tuple[int, int]:
    """Return a sort key: the time, then the version number for equal times."""
    return (version / "result.json").stat().st_mtime_ns, version_number(version)


def version_number(path: Path) -> int:
    """Return the number of a version folder (version_10 follows version_9); -1 for other names."""
    digits = path.name.removeprefix("version_")
    return int(digits) if digits.isdecimal() else -1
