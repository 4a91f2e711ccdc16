"""The training contest: target tokens a second, end signs counted, padding not."""

from __future__ import annotations

import re
import statistics
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmark_parts.children import Worker, run
from benchmark_parts.common import OURS, SHAPE, Bench, BenchmarkError
from benchmark_parts.data import LEARNING_RATE, SEED, SMOOTHING, fit, fit_config, save_batches
from benchmark_parts.rounds import Measure, figures, interleave

CONTESTANTS = (OURS, "JoeyNMT", "nn.Transformer", "MarianMTModel")
TOKENS_A_SIDE = 4096
NOTES = {
    OURS: "the whole `translate fit`: Lightning, data loading, logging",
    "JoeyNMT": "the whole `joeynmt train`; its own batches, which it does not sort by length",
    "nn.Transformer": "plain loop on this program's batches, ready in memory",
    "MarianMTModel": "plain loop on this program's batches, ready in memory",
}


def units(rounds: int) -> int:
    """Steps of the progress bar."""
    return 1 + len(CONTESTANTS) * rounds


def compete(bench: Bench, rounds: int) -> dict[str, Any]:
    """All contestants in turns; JSON-able."""
    options = bench.options
    # The first interval of every run is warm-up and does not count.
    interval, intervals = (1, 3) if options.quick else (10, 4)
    steps = interval * intervals
    bench.progress.now("training: data")
    batches = options.work / "data" / "batches.pt"
    shared = {
        "shape": SHAPE,
        "pieces": bench.corpus.pieces,
        "threads": options.threads,
        "interval": interval,
        "learning_rate": LEARNING_RATE,
        "smoothing": SMOOTHING,
    }
    about = save_batches(bench.corpus, batches, max_tokens=2 * TOKENS_A_SIDE, count=steps)
    bench.progress.done()
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}

        def loop(name: str, python: Path | None, _: int) -> dict[str, float]:
            if name not in workers:
                settings = {**shared, "contestant": name, "batches": batches}
                worker = Worker(python or bench.peers.require(), "train_worker", settings, options)
                workers[name] = stack.enter_context(worker)
                worker.wait()
            return _mean(workers[name].ask("train")["speeds"])

        contestants: dict[str, Measure] = {
            OURS: partial(_ours, bench, interval, steps),
            "JoeyNMT": partial(_joeynmt, bench, interval, steps),
            "nn.Transformer": partial(loop, "nn.Transformer", bench.our_python),
            "MarianMTModel": partial(loop, "MarianMTModel", None),
        }
        results, errors = interleave(bench, contestants, rounds)
    return {
        "settings": {
            **shared, **about, **bench.corpus.describe(), "steps": steps,
            "budget": f"{TOKENS_A_SIDE} padded tokens a side",
        },
        "figures": figures("training", "target tokens/s", "speed", results, errors, NOTES),
        "raw": results,
    }  # fmt: skip


def _mean(speeds: list[float]) -> dict[str, Any]:
    """Tokens over time of all intervals but the first (harmonic: intervals have equal steps)."""
    if len(speeds) < 2:
        raise BenchmarkError(f"{len(speeds)} measured intervals, expected 2 or more")
    return {"speed": statistics.harmonic_mean(speeds[1:]), "intervals": speeds}


def _ours(bench: Bench, interval: int, steps: int, _: int) -> dict[str, float]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    corpus = bench.corpus
    trainer = {"max_steps": steps, "max_epochs": -1, "log_every_n_steps": interval}
    config = fit_config(corpus, train=corpus.train, batch_tokens=2 * TOKENS_A_SIDE, trainer=trainer)
    folder = fit(config, bench.options.work / "training", bench.options)
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return _mean([event.value for event in events.Scalars("train/tokens_per_second")])


def _joeynmt(bench: Bench, interval: int, steps: int, round_: int) -> dict[str, float]:
    python = bench.peers.require()
    folder = bench.options.work / "joeynmt"
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(joeynmt_config(bench, interval, steps), sort_keys=False))
    log = bench.options.work / "logs" / "joeynmt.log"
    run([python, "-m", "joeynmt", "train", config, "--skip-test"], bench.options, log)
    lines = (folder / "model" / "train.log").read_text("utf-8")
    speeds = [float(number) for number in re.findall(r"Tokens per Sec:\s+(\d+)", lines)]
    return _mean(speeds)


def joeynmt_config(bench: Bench, interval: int, steps: int) -> dict[str, Any]:
    """The common shape in JoeyNMT's words. Its budget is rows x (longer side), as ours halved."""
    import sentencepiece

    corpus = bench.corpus
    folder = bench.options.work / "joeynmt"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(corpus.tokenizer))
    pieces = [processor.id_to_piece(index) for index in range(4, len(processor))]
    vocabulary = folder / "vocabulary.txt"
    specials = ["<unk>", "<pad>", "<s>", "</s>"]
    vocabulary.write_text("\n".join([*specials, *pieces]) + "\n", encoding="utf-8")

    def side(language: str) -> dict[str, Any]:
        return {
            "lang": language,
            "level": "bpe",
            "voc_file": str(vocabulary),
            "max_length": 255,
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(corpus.tokenizer)},
        }

    def stack(layers: int) -> dict[str, Any]:
        dropout, width = SHAPE["dropout"], SHAPE["d_model"]
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": SHAPE["n_heads"],
            "embeddings": {"embedding_dim": width, "scale": True, "dropout": dropout},
            "hidden_size": width,
            "ff_size": SHAPE["d_ff"],
            "dropout": dropout,
            "layer_norm": "pre",
        }

    return {
        "name": "benchmark",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "random_seed": SEED,
        "data": {
            "train": str(corpus.train[0].with_suffix("")),
            "dev": str(corpus.valid[0].with_suffix("")),
            "dataset_type": "plain",
            "src": side("en"),
            "trg": side("de"),
        },
        "training": {
            "optimizer": "adamw",
            "adam_betas": [0.9, 0.98],
            "learning_rate": LEARNING_RATE,
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": 200,
            "weight_decay": 0.01,
            "clip_grad_norm": 1.0,
            "label_smoothing": SMOOTHING,
            "loss": "crossentropy",
            "normalization": "tokens",
            "batch_size": TOKENS_A_SIDE,
            "batch_type": "token",
            "epochs": 100,
            "updates": steps,
            "logging_freq": interval,
            "validation_freq": 10**9,
            "shuffle": True,
            "overwrite": True,
        },
        "testing": {"batch_size": 128, "beam_size": 1},
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "normal",
            "embed_init_weight": 0.02,
            "bias_initializer": "zeros",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack(SHAPE["encoder_layers"]),
            "decoder": stack(SHAPE["decoder_layers"]),
        },
    }
