"""Train one variant in a process of its own, and write what came of it as JSON.

python child.py NAME RUNS RESULT
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import time
from pathlib import Path
from statistics import fmean

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from translate.decoding.translator import Translator
from translate.errors import UserError
from translate.insight.measure import inspect
from translate.model.transformer import Transformer
from translate.text.corpus import Pair
from translate.text.tokenizer import Tokenizer
from translate.training.batching import Example, collate
from translate.training.cli import TranslationCLI
from translate.training.config_errors import silence_lightning

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs/ablation"
CURVES = ("train/nll", "val/nll", "val/bleu", "train/gradient_norm")


def main(name: str, runs: Path, result: Path) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from pronouns import by_distance

    from ablation_parts.surgery import operate

    torch.set_num_threads(1)
    operate(name)
    built = _remember_models()
    configs = [CONFIGS / "baseline.yaml"]
    if name != "baseline":
        configs.append(CONFIGS / f"{name}.yaml")
    arguments = [part for config in configs for part in ("--config", str(config))]
    said, stopped, tokenizer, pairs, examples = io.StringIO(), "", None, [], []
    silence_lightning()
    start = time.monotonic()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            cli = TranslationCLI(["fit", *arguments, "--runs", str(runs), "--name", name])
            tokenizer, pairs = cli.model.tokenizer, cli.datamodule.valid_pairs
            examples = cli.datamodule.valid_examples[:64]
        except UserError as error:
            stopped = str(error)
    events = EventAccumulator(str(runs / name / "version_0"), {"scalars": 0})
    events.Reload()
    found = {
        "seconds": time.monotonic() - start,
        "stopped": stopped,
        "alarms": [line for line in said.getvalue().splitlines() if line.startswith("health: ")],
        "curves": {
            tag: [(event.step, event.value) for event in events.Scalars(tag)]
            for tag in CURVES
            if tag in events.Tags()["scalars"]
        },
    }
    if tokenizer is not None:
        trained = built[-1]
        translator = Translator(trained, tokenizer)
        found |= _compared(translator, pairs)
        torch.manual_seed(1)
        found["start"] = _inside(Transformer(trained.config), tokenizer, examples)
        found["end"] = _inside(trained, tokenizer, examples)
        if name == "baseline":
            found["pronouns"] = by_distance(translator)
    result.write_text(json.dumps(found))


def _remember_models() -> list[Transformer]:
    built: list[Transformer] = []
    build = Transformer.__init__

    def remember(self, config):
        build(self, config)
        built.append(self)

    Transformer.__init__ = remember
    return built


def _compared(translator: Translator, pairs: list[Pair], count: int = 64) -> dict[str, int]:
    """How many sentences of all lengths are translated otherwise alone than all together, and how
    many as before although their words are shuffled."""
    by_length = sorted((pair.source for pair in pairs), key=len)
    sources = [by_length[i * len(by_length) // count] for i in range(count)]
    draw = random.Random(1)
    shuffled = [" ".join(draw.sample(words := source.split(), len(words))) for source in sources]
    alone, together, again = (
        translator.translate(texts, batch_size=size)
        for texts, size in ((sources, 1), (sources, count), (shuffled, 1))
    )
    return {
        "compared": count,
        "changed_by_neighbours": sum(a != b for a, b in zip(alone, together, strict=True)),
        "unchanged_by_order": sum(a == b for a, b in zip(alone, again, strict=True)),
    }


def _inside(model: Transformer, ids: Tokenizer, examples: list[Example]) -> dict[str, float]:
    """Of all layers: the largest score and residual path, and how even the weights are."""
    batch = collate(examples, pad_id=ids.pad_id, bos_id=ids.bos_id, eos_id=ids.eos_id)
    seen = inspect(model, batch.src, batch.tgt_in, batch.tgt_out)
    figures = seen.attention.values()
    return {
        "largest_score": max(each.largest_score for each in figures),
        "evenness": fmean(each.evenness for each in figures),
        "residual": max(seen.residual.values()),
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
