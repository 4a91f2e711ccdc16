"""One trained model on disk: weights, tokenizer and config in one file, read without lightning.

The file is the checkpoint that training writes. Decoding needs two of its entries:

    checkpoint["state_dict"]   the weights, each name with "model." in front
    checkpoint["translate"]    what `checkpoint_entry` returns
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch import Tensor

from translate.errors import UserError
from translate.model.transformer import Transformer, TransformerConfig
from translate.text.tokenizer import Tokenizer
from translate.version import __version__

FORMAT = 3  # 2 has no checksum, 1 has other names of weights
_WEIGHT_TYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64}

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
    entry: dict[str, Any]  # the checkpoint's entry "translate", which training extends


def checkpoint_entry(
    config: TransformerConfig, tokenizer: Tokenizer, state_dict: dict[str, Tensor]
) -> dict[str, Any]:
    """Return the entry "translate" of a checkpoint: plain values and a tensor, no code.

    Args:
        state_dict: the weights as the checkpoint stores them.
    """
    entry = {
        "format": FORMAT,
        "config": asdict(config),
        "tokenizer": torch.frombuffer(bytearray(tokenizer.to_bytes()), dtype=torch.uint8),
        "tokenizer_sha256": tokenizer.fingerprint(),
        "translate_version": __version__,
    }
    return {**entry, "sha256": checksum(state_dict, entry)}


def checksum(state_dict: dict[str, Tensor], entry: dict[str, Any]) -> str:
    """Return the SHA-256 in hex of the config, the tokenizer and the weights.

    Args:
        state_dict: the weights; parts of names that wrappers insert do not matter.
        entry: the entry "translate" of the checkpoint.
    """
    digest = hashlib.sha256(json.dumps(entry["config"], sort_keys=True).encode())
    digest.update(entry["tokenizer"].numpy())
    for name, tensor in sorted(_without_wrappers(state_dict).items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        content = tensor.detach().cpu().contiguous().flatten()
        digest.update(content.view(torch.uint8).numpy())
    return digest.hexdigest()


def load_checkpoint(path: str | Path) -> TrainedModel:
    """Read a checkpoint onto the CPU, whatever device wrote it; nothing in it is executed.

    The file may come from a stranger: the model is built only when the stored weights are known to
    fit it, so that a small file cannot make the program use much RAM.

    Raises:
        UserError: the file is damaged or not a checkpoint of `translate fit`, or its weights,
            config and tokenizer do not belong together.
    """
    path = Path(path)
    checkpoint = _read(path)
    try:
        entry, state_dict = _entries(checkpoint)
        config = _config(entry.get("config"))
        tokenizer = _tokenizer(entry, config)
        weights = _weights(state_dict, config)
        if entry["format"] >= 3 and checksum(weights, entry) != entry.get("sha256"):
            raise UserError("damaged: the checksum of weights, config and tokenizer is wrong")
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    if entry["format"] < 3:
        check_undamaged(path)
    model = Transformer(config)
    model.load_state_dict({name.removeprefix("model."): weights[name] for name in weights})
    return TrainedModel(model.eval(), tokenizer, path, entry)


def check_undamaged(path: Path) -> None:
    """Compare each entry of the file, a zip archive, with its CRC-32, which torch does not do.

    `load_checkpoint` checks weights, config and tokenizer; resuming needs the rest too.

    Raises:
        UserError: the content of an entry differs from what was written.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip() is not None
    except Exception:  # a damaged directory makes zipfile raise nearly anything
        damaged = True
    if damaged:
        raise UserError(f"{path}: damaged: its content has changed since it was written")


def _read(path: Path) -> Any:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
        if sum(max(e.file_size, e.compress_size) for e in entries) > path.stat().st_size:
            raise ValueError("compressed or overlapping entries, which torch.save does not write")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unusual pickles, which are refused anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise UserError(f"cannot read the model {path}: {error.strerror or error}") from None
    except Exception:  # a damaged file makes zipfile, torch and pickle raise nearly anything
        raise UserError(
            f"{path}: not a checkpoint, damaged, or containing more than numbers and text; nothing "
            "in it was executed. Give a .ckpt file that `translate fit` wrote"
        ) from None


def _entries(checkpoint: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entries "translate" and "state_dict", the latter with the names of today."""
    entry = checkpoint.get("translate") if isinstance(checkpoint, dict) else None
    stored = checkpoint.get("state_dict") if isinstance(checkpoint, dict) else None
    if not isinstance(entry, dict) or not isinstance(stored, dict):
        raise UserError("a PyTorch file, but no checkpoint written by `translate fit`")
    if type(entry.get("format")) is not int or not 1 <= entry["format"] <= FORMAT:
        raise UserError(
            f"checkpoint format {_shown(entry.get('format'))}, but this version of translate "
            f"({__version__}) reads formats 1 to {FORMAT}; "
            f"use the version that wrote it ({_shown(entry.get('translate_version'))})"
        )
    if not all(isinstance(name, str) for name in stored):
        raise UserError("the name of a weight is not text")
    stored = _without_wrappers(stored)
    if entry["format"] == 1:
        stored = {_renamed(name): tensor for name, tensor in stored.items()}
    return entry, stored


def _without_wrappers(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Remove the parts that torch.compile and data-parallel wrappers insert into every name."""
    wrappers = {"_orig_mod", "module"}
    return {
        ".".join(part for part in name.split(".") if part not in wrappers): tensor
        for name, tensor in state_dict.items()
    }


def _renamed(name: str) -> str:
    """Return the new name of a weight of format 1."""
    for old, new in _FORMAT_1_NAMES:
        name = re.sub(old, new, name)
    return name


def _config(stored: Any) -> TransformerConfig:
    """Return the stored config; UserError unless every value has the right type and range."""
    if not isinstance(stored, dict):
        raise UserError("the model's config is unusable: there is none")
    types = get_type_hints(TransformerConfig)
    for name, value in stored.items():
        if name not in types:
            raise UserError(f"the model's config is unusable: unknown setting {_shown(name)}")
        # A bool is not an int here; the only Literal is one of texts.
        if type(value) not in {int: (int,), float: (int, float)}.get(types[name], (str,)):
            raise UserError(f"the model's config is unusable: {name} has the wrong type")
    try:
        return TransformerConfig(**stored)
    except (TypeError, ValueError) as error:
        raise UserError(f"the model's config is unusable: {_shown(str(error), 300)}") from None


def _tokenizer(entry: dict[str, Any], config: TransformerConfig) -> Tokenizer:
    """Return the stored tokenizer; UserError unless the model was trained with it."""
    stored: Any = entry.get("tokenizer")
    if not _is_plain(stored) or stored.dtype != torch.uint8:
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
            f"{tokenizer.fingerprint()[:12]}..., expected {_shown(entry.get('tokenizer_sha256'))})"
        )
    if tokenizer.pad_id != config.pad_id:
        raise UserError(
            f"padding is piece {tokenizer.pad_id} in the tokenizer but {config.pad_id} in the model"
        )
    return tokenizer


def _weights(stored: dict[str, Any], config: TransformerConfig) -> dict[str, Tensor]:
    """Return `stored`; UserError unless these are finite weights for a model of `config`."""
    with torch.device("meta"):  # shapes without memory
        expected = Transformer(config).state_dict()
    shapes = {f"model.{name}": tuple(tensor.shape) for name, tensor in expected.items()}
    faults = []
    if missing := [name for name in shapes if name not in stored]:
        faults.append(f"missing {_some(missing)}")
    if extra := [_shown(name) for name in stored if name not in shapes]:
        faults.append(f"unexpected {_some(extra)}")
    for name, shape in shapes.items():
        tensor = stored.get(name)
        if name not in stored:
            continue
        if not isinstance(tensor, Tensor):
            faults.append(f"{name} is no tensor")
        elif not _is_plain(tensor) or tensor.dtype not in _WEIGHT_TYPES:
            faults.append(f"{name} is not a dense tensor of floating-point numbers")
        elif tuple(tensor.shape) != shape:
            faults.append(f"{name} is {tuple(tensor.shape)} instead of {shape}")
    if faults:
        raise UserError(f"the weights do not fit the model: {_some(faults, '; ')}")
    if infinite := [name for name in shapes if not stored[name].float().isfinite().all()]:
        raise UserError(f"NaN or infinite numbers in {_some(infinite)}; use another checkpoint")
    return stored


def _is_plain(value: Any) -> bool:
    """Whether this is a dense tensor on the CPU that stores each of its numbers, in order."""
    return (
        isinstance(value, Tensor)
        and value.layout is torch.strided
        and not value.is_nested
        and value.device.type == "cpu"
        and value.is_contiguous()
    )


def _shown(value: object, longest: int = 80) -> str:
    """Return text from a checkpoint for a message: shortened, control characters escaped."""
    if not isinstance(value, str):
        return str(value) if type(value) is int and abs(value) < 2**63 else type(value).__name__
    text = value if len(value) <= longest else f"{value[:longest]}…"
    return text if text.isprintable() else repr(text)


def _some(texts: list[str], separator: str = ", ") -> str:
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return separator.join(texts[:3]) + more
