"""The sentence and the attention weights that `attend` and `trace` show."""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from translate.commands.options import load_translator
from translate.errors import UsageError

if TYPE_CHECKING:
    from translate.decoding.translator import Translator
    from translate.insight.attention import Kind
    from translate.model.transformer import TransformerConfig

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Selection:
    """A sentence, its translation, and the attention weights to show."""

    translator: Translator
    source: list[int]  # pieces without eos
    target: list[int]  # pieces without bos and eos
    text: str  # the translation
    kind: Kind
    layer: int | None  # counted from 0
    head: int | None  # counted from 0


def select_attention(args: argparse.Namespace) -> Selection:
    """Load the model and translate the sentence, as the options of `add_attention` say.

    Raises:
        UsageError: the model does not have this layer or head.
        UserError: there is no such model, or it cannot be used.
    """
    translator = load_translator(args.model)
    config = translator.model.config
    _check_numbers(args, config)
    (translation,) = translator.translate_detailed([args.sentence], [args.prefix or ""])
    for note in translation.notes():
        logger.warning(note)
    return Selection(
        translator,
        # The encoder reads at most max_length pieces, eos included.
        translator.tokenizer.encode(args.sentence)[: config.max_length - 1],
        translation.ids,
        translation.text,
        args.kind,
        None if args.layer is None else args.layer - 1,
        None if args.head is None else args.head - 1,
    )


def _check_numbers(args: argparse.Namespace, config: TransformerConfig) -> None:
    layers, stack = config.decoder_layers, "decoder"
    if args.kind == "encoder":
        layers, stack = config.encoder_layers, "encoder"
    if args.layer is not None and args.layer > layers:
        raise UsageError(f"--layer {args.layer}: this model has only {layers} {stack} layers")
    if args.head is not None and args.head > config.n_heads:
        raise UsageError(f"--head {args.head}: this model has only {config.n_heads} heads")
