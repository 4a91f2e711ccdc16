"""Evaluate a run on the pairs that it held out, and warn if it may have been trained on others.

A run without `data.valid` or `data.test` holds out pairs of `data.train`. Which ones depends on the
seed, on `data.held_out` and on the corpus. Checkpoints store the first two, and a hash of the pairs
that were left to train on.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from translate.decoding.checkpoint import TrainedModel
from translate.decoding.find_model import find_model
from translate.errors import UserError
from translate.text.corpus import Pair
from translate.text.normalize import fold
from translate.training.data import TranslationData

logger = logging.getLogger(__name__)


def run_config(args: Sequence[str]) -> list[str]:
    """Return `--config FILE` with the settings of the run that `--ckpt_path` names.

    Returns:
        An empty list if the command line has a config or --input, or if no run is named or the run
        has no config.

    Raises:
        UserError: there is no such run.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for names in (("--config", "-c"), ("--input",), ("--ckpt_path",)):
        parser.add_argument(*names)
    try:
        given, _ = parser.parse_known_args(args)
    except argparse.ArgumentError:
        return []  # an option without a value, about which the command's own parser complains
    if given.config or given.input or not given.ckpt_path:
        return []
    config = config_of(find_model(given.ckpt_path))
    if config is None:
        return []
    logger.info("settings of the run: %s", config)
    return ["--config", str(config)]


def config_of(checkpoint: Path) -> Path | None:
    """Return the newest config in the run folder of `checkpoint`; None if there is none."""
    folder = checkpoint.absolute().parent
    run = folder.parent if folder.name == "checkpoints" else folder
    configs = sorted(run.glob("config*.yaml"), key=lambda path: path.stat().st_mtime_ns)
    return configs[-1] if configs else None


def use_split(data: TranslationData, trained: TrainedModel) -> None:
    """Let `data` hold out the pairs that the run of `trained` held out."""
    seed, held_out = trained.entry.get("seed"), trained.entry.get("held_out")
    if type(seed) is not int or type(held_out) is not int or held_out < 1:
        return  # an older version wrote the checkpoint
    if (seed, held_out) != (data.seed, data.held_out) and data.valid is None:
        text = "seed_everything %s and data.held_out %s are those of the run, not of the config"
        logger.info(text, seed, held_out)
    data.seed, data.held_out = seed, held_out


def check_split(
    data: TranslationData,
    name: str,
    pairs: Sequence[Pair],
    trained: TrainedModel,
    read_config: Callable[[Path], TranslationData],
) -> None:
    """Warn if the model may have been trained on some of the `pairs` that `data` held out.

    Args:
        name: "valid" or "test".
        read_config: returns the data that a config file describes.
    """
    stored = trained.entry.get("train_sha256")
    if data.files[name] is not None or stored == data.sha256["train"]:
        return
    if stored is None:
        logger.warning(
            "%s does not say which pairs were held out (an older version wrote it): the model may "
            "have been trained on some of the %s pairs",
            trained.path,
            name,
        )
        return
    what = "data.train is not the corpus of the run"
    try:
        train = _trained_on(trained, read_config)
    except UserError as error:
        unknown = f"whether the model was trained on {name} pairs cannot be checked"
        logger.warning("%s; %s: %s", what, unknown, error)
        return
    known = {(fold(source), fold(target)) for source, target in train}
    sources = {source for source, _ in known}
    found = [(fold(source), fold(target)) for source, target in pairs]
    count = sum(pair in known for pair in found)
    others = sum(pair[0] in sources for pair in found) - count
    logger.warning(
        f"{what}: the model was trained on {count:,} of the {len(found):,} {name} pairs, and on "
        f"other translations of {others:,} more"
    )


def _trained_on(
    trained: TrainedModel, read_config: Callable[[Path], TranslationData]
) -> list[Pair]:
    """Return the pairs that the model was trained on.

    Raises:
        UserError: they cannot be read, or they have changed.
    """
    config = config_of(trained.path)
    if config is None:
        raise UserError(f"there is no config.yaml beside {trained.path}")
    data = read_config(config)
    use_split(data, trained)
    train = data.read("train")
    if data.sha256["train"] != trained.entry["train_sha256"]:
        raise UserError(f"the files that {config} names have changed")
    return train
