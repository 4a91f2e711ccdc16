"""Load a trained model and translate one sentence, for `attend` and `trace`."""

from __future__ import annotations

import argparse
import logging

from translate.decoding.translation import Translation
from translate.decoding.translator import Translator
from translate.errors import UsageError

logger = logging.getLogger(__name__)


def translate_sentence(args: argparse.Namespace) -> tuple[Translator, list[int], Translation]:
    """Load the model and translate the sentence, as the options of `parse_attention` say.

    Returns:
        The model with its tokenizer, the pieces of the sentence, and its translation.

    Raises:
        UsageError: the model does not have this layer or head.
        UserError: there is no such model, or it cannot be used.
    """
    translator = Translator.load(args.model)
    config = translator.model.config
    layers, stack = config.decoder_layers, "decoder"
    if args.kind == "encoder":
        layers, stack = config.encoder_layers, "encoder"
    if args.layer is not None and args.layer >= layers:
        raise UsageError(f"--layer {args.layer + 1}: this model has only {layers} {stack} layers")
    if args.head is not None and args.head >= config.n_heads:
        raise UsageError(f"--head {args.head + 1}: this model has only {config.n_heads} heads")
    (translation,) = translator.translate_detailed([args.sentence], [args.prefix or ""])
    for note in translation.notes():
        logger.warning(note)
    return translator, translator.tokenizer.encode(args.sentence), translation
