"""Train one variant and measure it."""

from __future__ import annotations

import logging
import math
import operator
import random
import re
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from pronouns import correct_by_distance
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from ablation.variants import MODELS
from translate.decoding.translator import Translator
from translate.errors import UserError
from translate.insight.measure import inspect
from translate.model.transformer import Transformer, TransformerConfig
from translate.training.batching import Batch, collate
from translate.training.cli import TranslationCLI
from translate.training.module import TranslationModule

CONFIGS = Path(__file__).resolve().parents[2] / "configs/ablation"
TAGS = ("train/nll", "val/nll", "val/bleu")
EXAMPLES = 64  # validation pairs for all measurements


class WarningList(logging.Handler):
    """Stores the warnings of a training as (update, text)."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.warnings: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if match := re.search(r"step (\d+): ([^:]+)", record.getMessage()):
            self.warnings.append((int(match[1]), match[2]))


def train_variant(name: str, runs: Path, configs: Path = CONFIGS) -> dict[str, Any]:
    """Train `name` on one thread in a new run of the folder `runs`, and measure it.

    Returns:
        diverged: why training stopped early, or "".
        warnings: (update, text) of each warning.
        series: (update, value) of each logged value, by TensorBoard tag.
        measured: the measured numbers by name.
        correct_pronouns: see `correct_by_distance`.
    """
    torch.set_num_threads(1)

    class VariantModule(TranslationModule):
        def build_model(self, config: TransformerConfig) -> Transformer:
            return MODELS.get(name, Transformer)(config)

    arguments = ["--runs", str(runs), "--name", name, "--config", str(configs / "baseline.yaml")]
    if (config := configs / f"{name}.yaml").is_file():
        arguments += ["--config", str(config)]
    handler = WarningList()
    logging.getLogger("translate").addHandler(handler)
    try:
        cli = TranslationCLI("fit", arguments, VariantModule)
        cli.fit()
    except UserError as error:
        reason = str(error).partition(": ")[2].partition(";")[0]
        found = {"diverged": reason, "measured": {"validation loss": math.inf, "BLEU": 0.0}}
    else:
        found = {"diverged": "", **measure(cli)}
    finally:
        logging.getLogger("translate").removeHandler(handler)
    events = EventAccumulator(str(runs / name / "version_0"), {"scalars": 0}).Reload()
    logged = [tag for tag in TAGS if tag in events.Tags()["scalars"]]
    series = {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in logged}
    if not found["diverged"]:
        found["measured"] |= {
            "training loss": median(value for _, value in series["train/nll"][-5:]),
            "validation loss": series["val/nll"][-1][1],
            "BLEU": series["val/bleu"][-1][1],
        }
    return {**found, "warnings": handler.warnings, "series": series}


def measure(cli: TranslationCLI) -> dict[str, Any]:
    """Measure the trained model. Measure scores, entropy and RMS also before training."""
    model, tokenizer = cli.model.model, cli.model.tokenizer
    translator = Translator(model, tokenizer)
    batch = collate(cli.datamodule.valid_examples[:EXAMPLES], tokenizer)
    torch.manual_seed(1)
    initial = statistics(type(model)(model.config), batch)
    measured = {f"initial {name}": value for name, value in initial.items()}
    measured |= statistics(model, batch)
    sources = [pair.source for pair in cli.datamodule.valid_pairs]
    measured |= compare_translations(translator, sources)
    return {"measured": measured, "correct_pronouns": correct_by_distance(translator)}


def statistics(model: Transformer, batch: Batch) -> dict[str, float]:
    """Return the maximum of scores and of RMS over all layers, and the mean of the entropy."""
    found = inspect(model, batch.src, batch.tgt_in, batch.tgt_out)
    layers = found.attention.values()
    return {
        "largest score": max(layer.max_score for layer in layers),
        "attention entropy / maximum": fmean(layer.relative_entropy for layer in layers),
        "RMS of the residual stream": max(found.residual_rms.values()),
    }


def compare_translations(translator: Translator, sources: list[str]) -> dict[str, float]:
    """Translate sentences of all lengths alone, in a batch, and with their words shuffled."""
    by_length = sorted(sources, key=len)
    chosen = [by_length[i * len(by_length) // EXAMPLES] for i in range(EXAMPLES)]
    draw = random.Random(1)
    shuffled = [" ".join(draw.sample(words := source.split(), len(words))) for source in chosen]
    alone = translator.translate(chosen, batch_size=1)
    together = translator.translate(chosen, batch_size=EXAMPLES)
    reordered = translator.translate(shuffled, batch_size=1)
    return {
        "share of translations that change in a batch": fmean(map(operator.ne, alone, together)),
        "share of translations that stay when words are shuffled": fmean(
            map(operator.eq, alone, reordered)
        ),
    }
