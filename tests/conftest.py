"""Small models and settings that all tests share."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from translate.decoding.checkpoint import checkpoint_entry
from translate.decoding.translator import Translator
from translate.model.transformer import Transformer, TransformerConfig
from translate.text.corpus import Pair
from translate.text.tokenizer import Tokenizer
from translate.training.batching import collate, encode_pairs

PAD = 0


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """With models this small, several threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Accept SIGINT, which a shell lets background processes (and their children) ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """Return an empty folder of a user without privileges, and be that user during the test.

    Root may read and write everything, whatever the permissions are.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        if os.name == "posix" and os.geteuid() == 0:
            os.chown(name, 65534, -1)
            os.seteuid(65534)
            yield Path(name)
            os.seteuid(0)
        else:
            yield Path(name)


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
    """Return `small_config`, for tests that change a setting."""
    return small_config


@pytest.fixture
def model() -> Transformer:
    return louder(Transformer(small_config()))


def louder(model: Transformer) -> Transformer:
    """The same model with larger embeddings, so that every input visibly matters."""
    with torch.no_grad():
        model.embedding.weight.mul_(20)
    return model.eval()


PAIRS = [
    Pair("This is an example", "Das ist ein Beispiel"),
    Pair("This is an example.", "Das ist ein Beispiel."),
    Pair("This is a cat.", "Das ist eine Katze."),
    Pair("Good morning", "Guten Morgen"),
    Pair("Where is the station?", "Wo ist der Bahnhof?"),
    Pair("I am tired because I worked.", "Ich bin müde, weil ich gearbeitet habe."),
    Pair("We are going home today.", "Heute gehen wir nach Hause."),
    Pair('She says: "Yes!"', "Sie sagt: „Ja!“"),
    Pair("Thank you very much!", "Vielen Dank!"),
    Pair("The example is good.", "Dieses Beispiel ist gut."),
    Pair("My house has a big garden.", "Mein Haus hat einen großen Garten."),
    Pair("No", "Nein"),
]


class Scripted(Transformer):
    """Writes the pieces of a script, whatever the input is, and counts the calls of `logits`.

    The script gives each position a piece that is certain, or pieces with their probabilities.
    """

    def __init__(self, config, script: list[int | dict[int, float]]) -> None:
        super().__init__(config)
        self.eval()
        self.script, self.calls, self.position = script, 0, 0

    def embed(self, ids, start=0):
        self.position = start + ids.shape[1]
        return super().embed(ids, start)

    def logits(self, hidden):
        self.calls += 1
        now = self.script[self.position - 1]
        logits = torch.full((*hidden.shape[:-1], self.config.vocab_size), -30.0)
        logits[..., :3] = 9.0  # pad, unk, bos: never to be chosen
        for piece, probability in (now if isinstance(now, dict) else {now: 1.0}).items():
            logits[..., piece] = torch.tensor(probability).log()
        return logits


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


def trained(pairs, tokenizer: Tokenizer, steps: int, **settings) -> Transformer:
    """Fit a small model to the pairs until it knows them."""
    torch.manual_seed(0)
    config = TransformerConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, dropout=0.0, **settings
    )
    model = Transformer(config)
    examples = encode_pairs(tokenizer, pairs)
    batch = collate(examples, tokenizer)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        logits = model(batch.src, batch.tgt_in)
        loss = F.cross_entropy(
            logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=tokenizer.pad_id
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    return PAIRS


@pytest.fixture(scope="session")
def memorised_tokenizer() -> Tokenizer:
    return Tokenizer.train([side for pair in PAIRS for side in pair], vocab_size=140)[0]


@pytest.fixture(scope="session")
def tokenizer(memorised_tokenizer) -> Tokenizer:
    return memorised_tokenizer


@pytest.fixture(scope="session")
def translator(memorised_tokenizer) -> Translator:
    """A model that knows a dozen sentence pairs by heart, trained in a few seconds."""
    settings = {"d_model": 48, "n_heads": 4, "d_ff": 96, "max_length": 48}
    return Translator(trained(PAIRS, memorised_tokenizer, 150, **settings), memorised_tokenizer)


@pytest.fixture(scope="session")
def checkpoint(translator) -> dict:
    """What training would write for that model."""
    state = {f"model.{name}": tensor for name, tensor in translator.model.state_dict().items()}
    entry = checkpoint_entry(translator.model.config, translator.tokenizer, state)
    return {"state_dict": state, "translate": entry}


@pytest.fixture(scope="session")
def checkpoint_file(checkpoint, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "best.ckpt"
    torch.save(checkpoint, path)
    return path
