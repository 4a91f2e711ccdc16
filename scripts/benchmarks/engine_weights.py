"""Load the weights of this program into other engines, so that all decode with the same model.

`export` runs in this program's environment. The other functions run in the environment of the
peers and do not import this program.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Ids of the special pieces: the same in every model of this program and in the peers.
PAD, BOS, EOS = 0, 2, 3
MARIAN_IDS = {
    "pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS,
    "forced_eos_token_id": None,
}  # fmt: skip
# Part of a parameter name of this program -> the same part in MarianMTModel.
MARIAN_NAMES = {
    "encoder.": "model.encoder.layers.", "decoder.": "model.decoder.layers.",
    "self_attention.norm": "self_attn_layer_norm", "self_attention.sublayer": "self_attn",
    "cross_attention.norm": "encoder_attn_layer_norm", "cross_attention.sublayer": "encoder_attn",
    "feed_forward.norm": "final_layer_norm", "feed_forward.sublayer.0": "fc1",
    "feed_forward.sublayer.2": "fc2", "W_query": "q_proj", "W_key": "k_proj", "W_value": "v_proj",
}  # fmt: skip


def export(checkpoint: Path, file: Path, tokenizer: Path) -> None:
    """Write the config, weights and positions of a checkpoint, and its tokenizer."""
    import torch

    from translate.decoding.checkpoint import load_checkpoint

    trained = load_checkpoint(checkpoint)
    model = trained.model
    stored = {"config": vars(model.config), "weights": model.state_dict()}
    torch.save({**stored, "positions": model.positions}, file)
    tokenizer.write_bytes(trained.tokenizer.to_bytes())


def marian_config(shape: dict[str, Any], vocab_size: int, max_length: int) -> Any:
    """Return the MarianConfig of a model shape, with ReLU and embeddings times √d_model."""
    from transformers import MarianConfig

    heads, d_ff = shape["n_heads"], shape["d_ff"]
    return MarianConfig(
        vocab_size=vocab_size, d_model=shape["d_model"], max_position_embeddings=max_length,
        encoder_layers=shape["encoder_layers"], decoder_layers=shape["decoder_layers"],
        encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=d_ff,
        decoder_ffn_dim=d_ff, dropout=shape["dropout"], activation_function="relu",
        scale_embedding=True, **MARIAN_IDS,
    )  # fmt: skip


def marian_model(stored: dict[str, Any]) -> Any:
    """Return a MarianMTModel with these weights; raise a ValueError for a pre-norm model."""
    import torch
    from transformers import GenerationConfig, MarianMTModel

    config = stored["config"]
    if config["norm"] != "post":
        raise ValueError("MarianMTModel is post-norm: give a model trained with --model.norm post")
    model = MarianMTModel(marian_config(config, config["vocab_size"], config["max_length"]))
    model.generation_config = GenerationConfig(**MARIAN_IDS)
    weights = dict(stored["weights"])
    named = {"model.shared.weight": weights.pop("embedding.weight")}
    for name, tensor in weights.items():
        for ours, theirs in MARIAN_NAMES.items():
            name = name.replace(ours, theirs)
        named[name] = tensor
    left = model.load_state_dict(named, strict=False)
    # These names may be missing: the embedding table has three more names, the positions are copied
    # below, and the biases of logits, queries, keys and values are initially zero.
    expected = ("embed_tokens", "lm_head", "embed_positions", "bias")
    missing = [name for name in left.missing_keys if not any(part in name for part in expected)]
    if missing or left.unexpected_keys:
        raise ValueError(f"weights do not fit: {missing}, {left.unexpected_keys}")
    with torch.no_grad():
        for stack in (model.model.encoder, model.model.decoder):
            # Marian puts all sines before all cosines; this program alternates sines and cosines.
            stack.embed_positions.weight.copy_(stored["positions"])
    model.tie_weights()
    return model.eval()


def save_ctranslate2(stored: dict[str, Any], pieces: list[str], folder: Path) -> None:
    """Write a CTranslate2 model with these weights, float32, into `folder`.

    CTranslate2's own converter for Marian models is not used, because with it every translation
    starts from a zero vector. In this program a translation starts from the embedding of bos.
    """
    import numpy as np
    from ctranslate2.specs import TransformerSpec

    config = stored["config"]
    weights = {name: tensor.numpy() for name, tensor in stored["weights"].items()}

    def linear(spec: Any, module: str, *names: str) -> None:
        spec.weight = np.concatenate([weights[f"{module}.{name}.weight"] for name in names])
        if f"{module}.{names[0]}.bias" in weights:
            spec.bias = weights[f"{module}.{names[0]}.bias"]

    def norm(spec: Any, module: str) -> None:
        spec.gamma, spec.beta = weights[f"{module}.weight"], weights[f"{module}.bias"]

    pre_norm = config["norm"] == "pre"
    layers = config["encoder_layers"], config["decoder_layers"]
    spec = TransformerSpec.from_config(layers, config["n_heads"], pre_norm=pre_norm)
    for side in ("encoder", "decoder"):
        stack = getattr(spec, side)
        stack.position_encodings.encodings = stored["positions"].numpy()
        if pre_norm:
            norm(stack.layer_norm, f"{side}_norm")
        for index, layer in enumerate(stack.layer):
            block = f"{side}.{index}"
            queries_keys_values, out = layer.self_attention.linear
            attention = f"{block}.self_attention.sublayer"
            linear(queries_keys_values, attention, "W_query", "W_key", "W_value")
            linear(out, attention, "out_proj")
            norm(layer.self_attention.layer_norm, f"{block}.self_attention.norm")
            if side == "decoder":
                queries, keys_values, out = layer.attention.linear
                attention = f"{block}.cross_attention.sublayer"
                linear(queries, attention, "W_query")
                linear(keys_values, attention, "W_key", "W_value")
                linear(out, attention, "out_proj")
                norm(layer.attention.layer_norm, f"{block}.cross_attention.norm")
            linear(layer.ffn.linear_0, f"{block}.feed_forward.sublayer", "0")
            linear(layer.ffn.linear_1, f"{block}.feed_forward.sublayer", "2")
            norm(layer.ffn.layer_norm, f"{block}.feed_forward.norm")
    for table in (spec.encoder.embeddings[0], spec.decoder.embeddings, spec.decoder.projection):
        table.weight = weights["embedding.weight"]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.decoder_start_token = "<s>"
    folder.mkdir(parents=True, exist_ok=True)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))
