"""Parts of the model taken out, in this process, for training and decoding alike.

The program itself has no switch for any of this: a model without its causal mask is of use to
nobody but a learner.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn

from translate.insight import measure
from translate.model import attention, transformer
from translate.model.layers import Residual
from translate.model.transformer import AttentionRecord, Transformer


def operate(name: str) -> None:
    """Take out what `name` says; a name without an operation leaves the model as it is."""
    _decode_through_the_blocks()
    OPERATIONS.get(name, lambda: None)()


def _decode_through_the_blocks() -> None:
    """Decoding has a fast path of its own, which would not know of the operation."""
    decode = Transformer.decode

    def slowly(self, tgt_in, memory, src_mask, cache=None, record=None):
        return decode(self, tgt_in, memory, src_mask, cache, record or AttentionRecord())

    Transformer.decode = slowly


def _no_scaling() -> None:
    scored = attention.score_pairs

    def undivided(queries, keys):  # so that the division by √K afterwards does nothing
        return scored(queries, keys) * math.sqrt(queries.shape[-1])

    attention.score_pairs = undivided


def _no_causal_mask() -> None:
    masked = attention.causal_mask
    for module in (attention, measure):
        module.causal_mask = lambda *args, **options: torch.ones_like(masked(*args, **options))


def _no_padding_mask() -> None:
    masked = transformer.padding_mask
    transformer.padding_mask = lambda ids, pad_id: torch.ones_like(masked(ids, pad_id))


def _no_residual() -> None:
    def forward(self, x, sublayer):
        return self.dropout(sublayer(self.norm(x) if self.norm_first else x))

    Residual.forward = forward


def _after_building(change: Callable[[Transformer], None]) -> Callable[[], None]:
    """An operation on every model right after its weights have been drawn."""

    def operation() -> None:
        initialise = Transformer._initialise

        @torch.no_grad()
        def changed(self):
            initialise(self)
            change(self)

        Transformer._initialise = changed

    return operation


def _without_norms(model: Transformer) -> None:
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.LayerNorm):
                setattr(module, name, nn.Identity())


def _louder(model: Transformer) -> None:
    for parameter in model.parameters():
        if parameter.ndim == 2:
            parameter.mul_(math.sqrt(10))


OPERATIONS: dict[str, Callable[[], None]] = {
    "no_scaling": _no_scaling,
    "no_norm": _after_building(_without_norms),
    "no_causal_mask": _no_causal_mask,
    "no_padding_mask": _no_padding_mask,
    "no_positions": _after_building(lambda model: model.positions.zero_()),
    "no_residual": _no_residual,
    "careless_init": _after_building(_louder),
}
