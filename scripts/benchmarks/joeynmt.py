"""Measure training with JoeyNMT."""

from __future__ import annotations

import re
from string import Template

from benchmarks.child_processes import run
from benchmarks.corpus import prepare
from benchmarks.options import SEED, SHAPE, TOKENS_PER_SIDE, TRAINING, Options
from benchmarks.peers import peer_python

# The config of JoeyNMT with the common shape. Its batch size is rows times the longer side.
CONFIG = """
name: benchmark
model_dir: $folder/model
use_cuda: False
random_seed: $seed
data:
  {train: $train, dev: $valid, dataset_type: plain, src: &side {
     lang: en, level: bpe, voc_file: $folder/vocabulary.txt, max_length: 255,
     tokenizer_type: sentencepiece, tokenizer_cfg: {model_file: $tokenizer}},
   trg: {<<: *side, lang: de}}
training:
  {optimizer: adamw, adam_betas: [0.9, 0.98], weight_decay: 0.01, clip_grad_norm: 1.0,
   learning_rate: $peak_learning_rate, scheduling: warmupinversesquareroot,
   learning_rate_warmup: 200, loss: crossentropy, label_smoothing: $label_smoothing,
   normalization: tokens, batch_size: $tokens, batch_type: token, epochs: 100, updates: $steps,
   logging_freq: $interval, validation_freq: 1000000000, overwrite: True}
testing: {batch_size: 128, beam_size: 1}
model:
  {initializer: xavier_uniform, embed_initializer: normal, embed_init_weight: 0.02,
   bias_initializer: zeros, tied_embeddings: True, tied_softmax: True, encoder: &stack {
     type: transformer, num_layers: $encoder_layers, num_heads: $n_heads, hidden_size: $d_model,
     ff_size: $d_ff, dropout: $dropout, layer_norm: pre,
     embeddings: {embedding_dim: $d_model, scale: True, dropout: $dropout}},
   decoder: {<<: *stack, num_layers: $decoder_layers}}
"""


def train(options: Options, interval: int, steps: int) -> list[float]:
    """Run the whole `joeynmt train`; return the tokens per second of each interval of steps."""
    import sentencepiece

    corpus, folder = prepare(options), options.work / "joeynmt"
    folder.mkdir(parents=True, exist_ok=True)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(corpus.tokenizer))
    pieces = [processor.id_to_piece(index) for index in range(4, len(processor))]
    pieces = ["<unk>", "<pad>", "<s>", "</s>", *pieces]
    (folder / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    config = Template(CONFIG).substitute(
        {**SHAPE, **TRAINING}, folder=folder, seed=SEED, tokenizer=corpus.tokenizer,
        train=corpus.train[0].with_suffix(""), valid=corpus.valid[0].with_suffix(""),
        tokens=TOKENS_PER_SIDE, interval=interval, steps=steps,
    )  # fmt: skip
    file = folder / "config.yaml"
    file.write_text(config, encoding="utf-8")
    command = [peer_python(options), "-m", "joeynmt", "train", file, "--skip-test"]
    run(command, options, "joeynmt")
    log = (folder / "model" / "train.log").read_text("utf-8")
    return [float(number) for number in re.findall(r"Tokens per Sec:\s+(\d+)", log)]
