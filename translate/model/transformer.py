"""The encoder-decoder transformer: integers in, logits out (Vaswani et al. 2017).

B batch, S source length, T target length, D d_model, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from translate.model.attention import AttentionRecord
from translate.model.dropout import Dropout
from translate.model.layers import DecoderBlock, EncoderBlock, Residual, sinusoidal_positions
from translate.model.masks import causal_mask, padding_mask

# The smallest and the largest value of each size. The largest ones are far above any use: a model
# that comes from a stranger must not be able to take all memory or hours to build.
LIMITS = {
    "vocab_size": (1, 2**20),
    "d_model": (1, 2**20),
    "n_heads": (1, 2**20),
    "d_ff": (1, 2**20),
    "encoder_layers": (1, 100),
    "decoder_layers": (1, 100),
    "max_length": (2, 2**16),
}


@dataclass(frozen=True)
class TransformerConfig:
    """All settings that determine the shape of the model.

    Args:
        vocab_size: V, number of pieces of the tokenizer.
        pad_id: id of the piece that fills up short rows of a batch.
        d_model: D, width of every token's vector.
        n_heads: attention heads; must divide d_model. A narrow head distinguishes keys poorly.
        d_ff: width of the hidden layer in each feed-forward network.
        encoder_layers: number of encoder blocks, which read the source.
        decoder_layers: number of decoder blocks, which write the target.
        dropout: share of each sublayer's output that is set to zero in training.
        norm: LayerNorm before each sublayer ("pre") or after each residual sum ("post").
        max_length: maximum number of pieces in a source or target, including bos or eos.

    Raises:
        ValueError: invalid settings; the message lists *all* of them.
    """

    vocab_size: int
    pad_id: int
    d_model: int = 128
    n_heads: int = 4
    d_ff: int = 256
    encoder_layers: int = 2
    decoder_layers: int = 2
    dropout: float = 0.1
    norm: Literal["pre", "post"] = "pre"
    max_length: int = 256

    def __post_init__(self) -> None:
        faults = []
        for name, (least, most) in LIMITS.items():
            if (value := getattr(self, name)) < least:
                faults.append(f"{name} must be at least {least}, not {value}")
            elif value > most:
                faults.append(f"{name} must be at most {most:,}, not {value:,}")
        if self.n_heads >= 1 and self.d_model % self.n_heads:
            faults.append(f"n_heads {self.n_heads} does not divide d_model {self.d_model}")
        if self.d_model % 2:
            faults.append(f"d_model {self.d_model} must be even: sines and cosines come in pairs")
        if not 0 <= self.dropout < 1:
            faults.append(f"dropout must lie in [0, 1), not {self.dropout}")
        if self.norm not in ("pre", "post"):
            faults.append(f'norm must be "pre" or "post", not "{self.norm}"')
        if not 0 <= self.pad_id < self.vocab_size:
            faults.append(f"pad_id {self.pad_id} must be below vocab_size {self.vocab_size}")
        if faults:
            raise ValueError("; ".join(faults))


class Transformer(nn.Module):
    """Encoder, decoder, and one embedding table for source, target and output layer.

    The table is shared because English and German share one vocabulary of pieces: names, numbers
    and punctuation are the same in both, and a small corpus trains one table better than three
    (Press and Wolf 2017).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_id)
        positions = sinusoidal_positions(config.max_length, config.d_model)
        self.register_buffer("positions", positions, persistent=False)
        self.dropout = Dropout(config.dropout)
        shape = (config.d_model, config.n_heads, config.d_ff, config.dropout, config.norm)
        self.encoder = nn.ModuleList(EncoderBlock(*shape) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderBlock(*shape) for _ in range(config.decoder_layers))
        # Pre-norm leaves the residual stream unnormalised; post-norm blocks end in a LayerNorm.
        final_norm = nn.LayerNorm if config.norm == "pre" else nn.Identity
        self.encoder_norm = final_norm(config.d_model)
        self.decoder_norm = final_norm(config.d_model)
        self.initialise()

    @torch.no_grad()
    def initialise(self) -> None:
        """Draw all weights so that signals neither vanish nor explode.

        * Embedding: normal, standard deviation 0.02. At the output the same table meets a
          normalised vector of length √D, so logits start near 0 and the loss near ln V; with the
          original D^-0.5, each piece would at first predict itself, with a loss 1 nat above ln V.
        * Matrices: Xavier uniform, which keeps the variance through a layer in both directions
          (Glorot and Bengio 2010). Biases: zero.
        * Pre-norm: the last matrix of each residual branch is divided by the square root of the
          number of branches, so that their sum does not grow with depth (Radford et al. 2019).
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.embedding.weight[self.config.pad_id].zero_()
        if self.config.norm == "pre":
            for blocks in (self.encoder, self.decoder):
                branches = [m.sublayer for m in blocks.modules() if isinstance(m, Residual)]
                for branch in branches:
                    last = [m for m in branch.modules() if isinstance(m, nn.Linear)][-1]
                    last.weight.div_(math.sqrt(len(branches)))

    def source_mask(self, src: Tensor) -> Tensor:
        """Return the mask that allows every token except padding: (B, S) -> (B, 1, 1, S)."""
        return padding_mask(src, self.config.pad_id)

    def target_mask(self, tgt_in: Tensor) -> Tensor:
        """Return the causal mask (1, 1, T, T). It also hides padding, which is at the end."""
        return causal_mask(tgt_in.shape[1], device=tgt_in.device)

    def embed(self, ids: Tensor, start: int = 0) -> Tensor:
        """Add embeddings and position codes, from position `start` on: (B, T) -> (B, T, D)."""
        end = start + ids.shape[1]
        if end > self.config.max_length:
            raise ValueError(f"{end} pieces, but max_length is {self.config.max_length}")
        scaled = self.embedding(ids) * math.sqrt(self.config.d_model)
        return self.dropout(scaled + self.positions[start:end])

    def encode(self, src: Tensor, record: AttentionRecord | None = None) -> tuple[Tensor, Tensor]:
        """Read the source: (B, S) -> memory (B, S, D) and src_mask (B, 1, 1, S)."""
        src_mask = self.source_mask(src)
        x = self.embed(src)
        for block in self.encoder:
            x = block(x, src_mask, record)
        return self.encoder_norm(x), src_mask

    def decode(
        self,
        tgt_in: Tensor,
        memory: Tensor,
        src_mask: Tensor | None,
        record: AttentionRecord | None = None,
    ) -> Tensor:
        """Return hidden states (B, T, D) that predict the piece after each one in `tgt_in` (B, T).

        Padding must be at the end. A `src_mask` of None means that no source is padded.
        """
        tgt_mask = self.target_mask(tgt_in)
        x = self.embed(tgt_in)
        for block in self.decoder:
            x = block(x, memory, src_mask, tgt_mask, record)
        return self.decoder_norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Compare each hidden state with the embedding of each piece: (B, T, D) -> (B, T, V)."""
        return F.linear(hidden, self.embedding.weight)  # (B, T, D) @ (D, V) -> (B, T, V)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Teacher forcing: return all logits (B, T, V), from src (B, S) and tgt_in (B, T)."""
        memory, src_mask = self.encode(src)
        return self.logits(self.decode(tgt_in, memory, src_mask))
