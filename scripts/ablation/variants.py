"""The model with one part removed, one subclass per part.

Only the named part changes; all other weights start with the same values as in the whole model.
Variants that need no code, only other settings, are YAML files in configs/ablation/.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from translate.model.attention import MultiHeadAttention
from translate.model.layers import Residual
from translate.model.transformer import Transformer, TransformerConfig


class WithoutScaling(Transformer):
    """The scores are not divided by √d_k: weights = softmax(queries · keysᵀ).

    A score is a sum of d_k products and has √d_k times the standard deviation of one product. With
    such large scores, the softmax gives almost all weight to one key and passes little gradient.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        for module in self.modules():
            if isinstance(module, MultiHeadAttention):
                module.scale = 1.0


class WithoutLayerNorm(Transformer):
    """No LayerNorm anywhere: the residual stream grows with every layer, and so do the scores."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.encoder_norm = nn.Identity()
        self.decoder_norm = nn.Identity()
        for module in self.modules():
            if isinstance(module, Residual):
                module.norm = nn.Identity()


class WithoutCausalMask(Transformer):
    """The decoder may attend to later target positions, also to the piece that it has to predict.

    In training the decoder then sees the correct piece and learns to copy it. In a translation
    this piece does not exist yet.
    """

    def target_mask(self, tgt_in: Tensor) -> Tensor:
        return torch.ones_like(super().target_mask(tgt_in))


class WithoutPaddingMask(Transformer):
    """Tokens may attend to padding, whose length depends on the other sentences of the batch."""

    def source_mask(self, src: Tensor) -> Tensor:
        return torch.ones_like(super().source_mask(src))


class WithoutPositions(Transformer):
    """No position codes: to attention, the source is a set of words without an order."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.positions.zero_()


class SublayerOnly(Residual):
    """A sublayer with LayerNorm and dropout, but without the sum: dropout(sublayer(norm(x)))."""

    def around(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.dropout(sublayer(self.norm(x)))


class WithoutResidual(Transformer):
    """No residual connections: each sublayer replaces its input.

    The signal and the gradient have to pass through every sublayer.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        for block in (*self.encoder, *self.decoder):
            for name, residual in list(block.named_children()):
                around = (config.d_model, config.dropout, config.norm)
                setattr(block, name, SublayerOnly(residual.sublayer, *around))


class LargeInitialisation(Transformer):
    """All matrices start with ten times the variance: activations and scores are far too large."""

    @torch.no_grad()
    def initialise(self) -> None:
        super().initialise()
        for parameter in self.parameters():
            if parameter.ndim == 2:
                parameter.mul_(math.sqrt(10))


MODELS: dict[str, type[Transformer]] = {
    "no_scaling": WithoutScaling,
    "no_norm": WithoutLayerNorm,
    "no_causal_mask": WithoutCausalMask,
    "no_padding_mask": WithoutPaddingMask,
    "no_positions": WithoutPositions,
    "no_residual": WithoutResidual,
    "large_init": LargeInitialisation,
}
