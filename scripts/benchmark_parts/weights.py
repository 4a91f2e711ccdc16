"""This program's weights in other engines, so that all decode with the same model.

`export` runs with this program; the rest runs in the peers' environment and needs nothing of it.

B batch, V vocabulary, D width.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

# Special pieces: the same in every model of this program, and in the peers that train.
PAD, BOS, EOS = 0, 2, 3
MARIAN_IDS = {
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "decoder_start_token_id": BOS,
    "forced_eos_token_id": None,
}


def export(checkpoint: Path, file: Path, tokenizer: Path) -> dict[str, Any]:
    """Write config, weights and position codes of a checkpoint, and its tokenizer.

    Returns the config. Raises the program's UserError for a file that is no checkpoint.
    """
    import torch

    from translate.decoding.checkpoint import load_checkpoint
    from translate.model.layers import sinusoidal_positions

    bundle = load_checkpoint(checkpoint)
    config = vars(bundle.model.config)
    positions = sinusoidal_positions(config["max_length"], config["d_model"])
    weights = {name: tensor.clone() for name, tensor in bundle.model.state_dict().items()}
    torch.save({"config": dict(config), "weights": weights, "positions": positions}, file)
    tokenizer.write_bytes(bundle.tokenizer.to_bytes())
    return dict(config)


def load_weights(file: str) -> dict[str, Any]:
    import torch

    return torch.load(file)


# Sublayers: this program's name of the sublayer and of the residual around it, whose norm the
# others keep beside the sublayer.
_ATTENTIONS = {
    "encoder": [("attention", "attention_residual")],
    "decoder": [("self_attention", "self_residual"), ("cross_attention", "cross_residual")],
}


def marian_config(shape: dict[str, Any], vocab_size: int, max_length: int) -> Any:
    """The MarianConfig of our shape: ReLU, embeddings times √d_model."""
    from transformers import MarianConfig

    return MarianConfig(
        vocab_size=vocab_size,
        max_position_embeddings=max_length,
        d_model=shape["d_model"],
        encoder_layers=shape["encoder_layers"],
        decoder_layers=shape["decoder_layers"],
        encoder_attention_heads=shape["n_heads"],
        decoder_attention_heads=shape["n_heads"],
        encoder_ffn_dim=shape["d_ff"],
        decoder_ffn_dim=shape["d_ff"],
        dropout=shape["dropout"],
        activation_function="relu",
        scale_embedding=True,
        **MARIAN_IDS,
    )


def marian_model(stored: dict[str, Any]) -> Any:
    """A MarianMTModel with these weights; ValueError for a pre-norm model."""
    import torch
    from transformers import GenerationConfig, MarianMTModel

    config, weights = stored["config"], stored["weights"]
    if config["norm"] != "post":
        raise ValueError("MarianMTModel is post-norm: give a model trained with --model.norm post")
    model = MarianMTModel(marian_config(config, config["vocab_size"], config["max_length"]))
    model.generation_config = GenerationConfig(**MARIAN_IDS)
    named = {"model.shared.weight": weights["embedding.weight"]}
    for side, attentions in _ATTENTIONS.items():
        for layer in range(config[f"{side}_layers"]):
            ours, theirs = f"{side}.{layer}", f"model.{side}.layers.{layer}"
            for (attention, residual), their in zip(
                attentions, ("self_attn", "encoder_attn"), strict=False
            ):
                for our_name, their_name in (
                    ("W_query", "q_proj"), ("W_key", "k_proj"), ("W_value", "v_proj"),
                ):  # fmt: skip
                    matrix = weights[f"{ours}.{attention}.{our_name}.weight"]
                    named[f"{theirs}.{their}.{their_name}.weight"] = matrix
                    named[f"{theirs}.{their}.{their_name}.bias"] = torch.zeros(len(matrix))
                for part in ("weight", "bias"):
                    out = weights[f"{ours}.{attention}.out_proj.{part}"]
                    named[f"{theirs}.{their}.out_proj.{part}"] = out
                    norm = weights[f"{ours}.{residual}.norm.{part}"]
                    named[f"{theirs}.{their}_layer_norm.{part}"] = norm
            for part in ("weight", "bias"):
                for our_name, their_name in (
                    ("feed_forward.0", "fc1"),
                    ("feed_forward.2", "fc2"),
                    ("feed_forward_residual.norm", "final_layer_norm"),
                ):
                    named[f"{theirs}.{their_name}.{part}"] = weights[f"{ours}.{our_name}.{part}"]
    left = model.load_state_dict(named, strict=False)
    # The shared table stands under four names, the codes are set below, the bias is zero.
    expected = ("embed_tokens", "lm_head", "embed_positions", "final_logits_bias")
    missing = [name for name in left.missing_keys if not any(part in name for part in expected)]
    if missing or left.unexpected_keys:
        raise ValueError(f"weights do not fit: {missing}, {left.unexpected_keys}")
    with torch.no_grad():
        for stack in (model.model.encoder, model.model.decoder):
            # Ours has sines and cosines in turns, Marian one half each.
            stack.embed_positions.weight.copy_(stored["positions"])
    model.tie_weights()
    return model.eval()


def save_ctranslate2(stored: dict[str, Any], pieces: list[str], folder: Path) -> None:
    """A CTranslate2 model with these weights, float32, in `folder`.

    Its own converter takes a Marian model, but starts every translation from a zero vector; this
    program, like most, starts from the embedding of bos.
    """
    import numpy as np
    from ctranslate2.specs import TransformerSpec

    config, weights = stored["config"], stored["weights"]
    weights = {name: tensor.numpy() for name, tensor in weights.items()}

    def linear(spec: Any, *names: str) -> None:
        spec.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
        if f"{names[0]}.bias" in weights:
            spec.bias = np.concatenate([weights[f"{name}.bias"] for name in names])

    def norm(spec: Any, name: str) -> None:
        spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    def projections(name: str, *parts: str) -> list[str]:
        return [f"{name}.W_{part}" for part in parts]

    pre_norm = config["norm"] == "pre"
    layers = config["encoder_layers"], config["decoder_layers"]
    spec = TransformerSpec.from_config(layers, config["n_heads"], pre_norm=pre_norm)
    for side in ("encoder", "decoder"):
        stack = getattr(spec, side)
        stack.position_encodings.encodings = stored["positions"].numpy()
        if pre_norm:
            norm(stack.layer_norm, f"{side}_norm")
        for index, layer in enumerate(stack.layer):
            ours = f"{side}.{index}"
            (name, residual), *cross = _ATTENTIONS[side]
            own = layer.self_attention
            linear(own.linear[0], *projections(f"{ours}.{name}", "query", "key", "value"))
            linear(own.linear[1], f"{ours}.{name}.out_proj")
            norm(own.layer_norm, f"{ours}.{residual}.norm")
            for name, residual in cross:
                linear(layer.attention.linear[0], *projections(f"{ours}.{name}", "query"))
                linear(layer.attention.linear[1], *projections(f"{ours}.{name}", "key", "value"))
                linear(layer.attention.linear[2], f"{ours}.{name}.out_proj")
                norm(layer.attention.layer_norm, f"{ours}.{residual}.norm")
            linear(layer.ffn.linear_0, f"{ours}.feed_forward.0")
            linear(layer.ffn.linear_1, f"{ours}.feed_forward.2")
            norm(layer.ffn.layer_norm, f"{ours}.feed_forward_residual.norm")
    spec.encoder.embeddings[0].weight = weights["embedding.weight"]
    spec.decoder.embeddings.weight = weights["embedding.weight"]
    spec.decoder.projection.weight = weights["embedding.weight"]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.decoder_start_token = "<s>"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))
