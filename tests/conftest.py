"""Small models, and one thread, that every room's tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import torch

from translate.model.transformer import Transformer, TransformerConfig

PAD = 0


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small only wait for each other on several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """A shell starts what runs in the background with SIGINT ignored, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def small_config(**changes) -> TransformerConfig:
    """A model of 23 pieces that runs in a millisecond."""
    settings = {
        "vocab_size": 23,
        "pad_id": PAD,
        "d_model": 16,
        "n_heads": 4,
        "d_ff": 32,
        "dropout": 0.0,
        "max_length": 32,
    }
    return TransformerConfig(**{**settings, **changes})


@pytest.fixture
def config():
    """The factory itself, for tests that change a setting."""
    return small_config


@pytest.fixture
def model() -> Transformer:
    return louder(Transformer(small_config()))


def louder(model: Transformer) -> Transformer:
    """The same model with larger embeddings, so that every input visibly matters."""
    with torch.no_grad():
        model.embedding.weight.mul_(20)
    return model.eval()
