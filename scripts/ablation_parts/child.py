"""Train one variant in a process of its own, and write what came of it as JSON.

python child.py NAME RUNS RESULT
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from pathlib import Path

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from translate.decoding.translator import Translator
from translate.errors import UserError
from translate.model.transformer import Transformer
from translate.text.corpus import Pair
from translate.training.fit import TranslationCLI
from translate.training.messages import silence_lightning

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
    said, stopped, tokenizer, pairs = io.StringIO(), "", None, []
    silence_lightning()
    start = time.monotonic()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            cli = TranslationCLI(["fit", *arguments, "--runs", str(runs), "--name", name])
            tokenizer, pairs = cli.model.tokenizer, cli.datamodule.valid_pairs
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
        translator = Translator(built[-1], tokenizer)
        found |= _with_neighbours(translator, pairs)
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


def _with_neighbours(
    translator: Translator, pairs: list[Pair], count: int = 64
) -> dict[str, object]:
    """How many sentences of all lengths are translated otherwise alone than all together."""
    by_length = sorted((pair.source for pair in pairs), key=len)
    sources = [by_length[i * len(by_length) // count] for i in range(count)]
    alone = translator.translate(sources, batch_size=1)
    together = translator.translate(sources, batch_size=count)
    return {
        "compared": count,
        "changed_by_neighbours": sum(a != b for a, b in zip(alone, together, strict=True)),
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
