"""The encoder-decoder transformer: integers in, logits out (Vaswani et al. 2017).

B batch, S source length, T target length, D d_model, V vocabulary, H heads, K head dim,
L decoder layers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from translate.decoding.incremental import DecoderCache
from translate.model.attention import Stages, project, side_by_side
from translate.model.layers import (
    DecoderBlock,
    Dropout,
    EncoderBlock,
    sinusoidal_positions,
)
from translate.model.masks import padding_mask


@dataclass(frozen=True)
class TransformerConfig:
    """Everything that fixes the shape of the model. Raises ValueError with *all* contradictions."""

    vocab_size: int
    pad_id: int
    d_model: int = 128
    n_heads: int = 4  # 4 heads of 32: narrower heads score too coarsely, fewer see too little
    d_ff: int = 256
    encoder_layers: int = 2
    decoder_layers: int = 2
    dropout: float = 0.1
    norm: str = "pre"
    max_length: int = 256  # pieces a side, bos or eos counted

    def __post_init__(self) -> None:
        faults = [
            f"{name} must be at least 1, not {getattr(self, name)}"
            for name in (
                "vocab_size", "d_model", "n_heads", "d_ff",
                "encoder_layers", "decoder_layers",
            )
            if getattr(self, name) < 1
        ]  # fmt: skip
        if self.max_length < 2:
            faults.append(f"max_length must be at least 2 (a piece and eos), not {self.max_length}")
        if self.n_heads >= 1 and self.d_model % self.n_heads:
            faults.append(f"n_heads {self.n_heads} does not divide d_model {self.d_model}")
        if self.d_model % 2:
            faults.append(f"d_model {self.d_model} must be even: sines and cosines come in pairs")
        if not 0 <= self.dropout < 1:
            faults.append(f"dropout must lie in [0, 1), not {self.dropout}")
        if self.norm not in ("pre", "post"):
            faults.append(f'norm must be "pre" or "post", not "{self.norm}"')
        if not 0 <= self.pad_id < self.vocab_size:
            faults.append(f"pad_id {self.pad_id} is no piece of a vocabulary of {self.vocab_size}")
        if faults:
            raise ValueError("; ".join(faults))


@dataclass
class AttentionRecord:
    """The stages of every attention of one pass, one entry a layer."""

    encoder: list[Stages] = field(default_factory=list)  # weights (B, H, S, S)
    decoder: list[Stages] = field(default_factory=list)  # weights (B, H, T, T)
    cross: list[Stages] = field(default_factory=list)  # weights (B, H, T, S)


class Transformer(nn.Module):
    """Encoder, decoder, and one embedding table for source, target and output layer.

    The table is shared because English and German share one vocabulary of pieces: names, numbers
    and punctuation are the same on both sides, and a small corpus trains one table better than
    three (Press and Wolf 2017).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_id)
        self.register_buffer(
            "positions", sinusoidal_positions(config.max_length, config.d_model), persistent=False
        )
        self.dropout = Dropout(config.dropout)
        shape = (config.d_model, config.n_heads, config.d_ff, config.dropout, config.norm)
        self.encoder = nn.ModuleList(EncoderBlock(*shape) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderBlock(*shape) for _ in range(config.decoder_layers))
        # Pre-norm leaves the residual sum itself unnormalised; post-norm blocks end in a norm.
        pre_norm = config.norm == "pre"
        self.encoder_norm = nn.LayerNorm(config.d_model) if pre_norm else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.d_model) if pre_norm else nn.Identity()
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Start every signal at a scale that neither dies nor explodes.

        * Embedding: normal, standard deviation 0.02. At the output the same table meets a
          normalised vector of length √D, so logits start near 0 and the loss near ln V; with the
          D^-0.5 of the original, a piece would start out predicting itself, 1 nat above ln V.
          At the input, times √D, a piece is a third as strong as its position code.
        * Matrices: Xavier uniform, which keeps the variance through a layer in both directions
          (Glorot and Bengio 2010). Biases: zero.
        * Pre-norm only: the last matrix of each residual branch is divided by the square root of
          the number of branches, so that their sum does not grow with depth (Radford et al. 2019).
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.embedding.weight[self.config.pad_id].zero_()
        if self.config.norm == "pre":
            for block in self.encoder:
                for last in (block.attention.out_proj, block.feed_forward[-1]):
                    last.weight.div_(math.sqrt(2 * self.config.encoder_layers))
            for block in self.decoder:
                attentions = (block.self_attention, block.cross_attention)
                for last in (*(a.out_proj for a in attentions), block.feed_forward[-1]):
                    last.weight.div_(math.sqrt(3 * self.config.decoder_layers))

    def _embed(self, ids: Tensor, start: int = 0) -> Tensor:
        """(B, T) -> (B, T, D): what the token is plus where it stands, counted from `start`."""
        end = start + ids.shape[1]
        if end > self.config.max_length:
            raise ValueError(
                f"{end} pieces, but the model's max_length is {self.config.max_length}"
            )
        scaled = self.embedding(ids) * math.sqrt(self.config.d_model)
        return self.dropout(scaled + self.positions[start:end])

    def encode(self, src: Tensor, record: AttentionRecord | None = None) -> tuple[Tensor, Tensor]:
        """Read the source: (B, S) -> memory (B, S, D) and src_mask (B, 1, 1, S)."""
        src_mask = padding_mask(src, self.config.pad_id)
        x = self._embed(src)
        for block in self.encoder:
            x = block(x, src_mask, None if record is None else record.encoder)
        return self.encoder_norm(x), src_mask

    def start_cache(self, memory: Tensor, max_length: int, beam: int = 1) -> DecoderCache:
        """An empty cache over `memory` (B, S, D), for up to `max_length` target positions of up
        to `beam` hypotheses a source."""
        shape = (len(self.decoder), 2, self.config.n_heads, self._head_dim)
        projected = F.linear(memory, self._memory_weight()).unflatten(-1, shape)
        keys_and_values = projected.permute(2, 3, 0, 4, 1, 5).contiguous()  # (L, 2, B, H, S, K)
        return DecoderCache(self.decoder, keys_and_values, max_length, beam)

    @property
    def _head_dim(self) -> int:
        return self.config.d_model // self.config.n_heads

    def _memory_weight(self) -> Tensor:
        """W_key and W_value of every layer's cross-attention, (L · 2 · D, D)."""
        attentions = [block.cross_attention for block in self.decoder]
        return side_by_side(*(matrix for a in attentions for matrix in (a.W_key, a.W_value)))

    def _keys_and_values(self, memory: Tensor) -> tuple[Tensor, ...]:
        """What the decoder's layers see of `memory` (B, S, D): keys of the first, values of the
        first, keys of the second and so on, 2 · L times (B, H, S, K)."""
        return project(memory, self._memory_weight(), self.config.n_heads, self._head_dim)

    def decode(
        self,
        tgt_in: Tensor,
        memory: Tensor,
        src_mask: Tensor | None,
        cache: DecoderCache | None = None,
        record: AttentionRecord | None = None,
    ) -> Tensor:
        """Hidden states (B, T, D) that predict the piece after each of `tgt_in` (B, T).

        Padding of `tgt_in` stands at the end; what comes out there means nothing.
        A `src_mask` of None means that no source is padded.

        With a cache, `tgt_in` holds only the new pieces, none of them padding; they see
        everything in the cache and one another causally.
        """
        x = self._embed(tgt_in, 0 if cache is None else cache.length)
        if cache is not None and tgt_in.shape[1] == 1 and record is None:
            x = cache.step(x[:, 0], src_mask)[:, None]
            return self.decoder_norm(x)
        if cache is None:
            projected = self._keys_and_values(memory)
            memory_layers = list(zip(projected[::2], projected[1::2], strict=True))
        else:
            memory_layers = [layer.memory for layer in cache.layers]
        for i, block in enumerate(self.decoder):
            x = block(
                x, memory_layers[i], src_mask,
                None if cache is None else cache.layers[i].extend,
                None if record is None else record.decoder,
                None if record is None else record.cross,
            )  # fmt: skip
        return self.decoder_norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, V): each hidden state · the embedding of each piece."""
        return F.linear(hidden, self.embedding.weight)  # (B, T, D) @ (D, V) -> (B, T, V)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Teacher forcing: (B, S), (B, T) -> logits (B, T, V), all target positions at once."""
        return self.logits(self.decode(tgt_in, *self.encode(src)))
