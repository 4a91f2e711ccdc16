"""JoeyNMT as a contestant in training."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from benchmarks.child_processes import run
from benchmarks.corpus import Corpus
from benchmarks.options import LEARNING_RATE, SEED, SHAPE, SMOOTHING, TOKENS_PER_SIDE, Options


def train(python: Path, corpus: Corpus, options: Options, interval: int, steps: int) -> list[float]:
    """Run the whole `joeynmt train`; return the tokens per second of each interval of steps."""
    folder = options.work / "joeynmt"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config(corpus, folder, interval, steps), sort_keys=False))
    command = [python, "-m", "joeynmt", "train", file, "--skip-test"]
    run(command, options, options.work / "logs" / "joeynmt.log")
    log = (folder / "model" / "train.log").read_text("utf-8")
    return [float(number) for number in re.findall(r"Tokens per Sec:\s+(\d+)", log)]


def config(corpus: Corpus, folder: Path, interval: int, steps: int) -> dict[str, Any]:
    """Return the common shape as JoeyNMT's config.

    Its budget is rows times the longer side, so it is half of this program's batch_tokens.
    """
    import sentencepiece

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
            "batch_size": TOKENS_PER_SIDE,
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
