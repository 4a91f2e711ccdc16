from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from translate.model.transformer import Transformer, TransformerConfig
from translate.text.tokenizer import Tokenizer

TEXTS = ["This is an example.", "Das ist ein Beispiel.", "Wir \U0001f600 E-Mail, gut!", "a ▁ b"]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS * 3, vocab_size=60)[0]


@pytest.fixture(scope="session")
def build(tokenizer) -> Callable[..., Transformer]:
    def build(**settings) -> Transformer:
        torch.manual_seed(0)
        settings = {"d_model": 16, "n_heads": 4, "d_ff": 32, "max_length": 80, **settings}
        config = TransformerConfig(vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, **settings)
        return Transformer(config).eval()

    return build
