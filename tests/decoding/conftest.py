"""A model that knows a dozen sentence pairs by heart, trained in a few seconds."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from translate.decoding.bundle import checkpoint_entry
from translate.decoding.translator import Translator
from translate.model.transformer import Transformer, TransformerConfig
from translate.text.batching import collate, encode_pairs
from translate.text.corpus import Pair
from translate.text.tokenizer import Tokenizer

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
    """Writes from a script, whatever it reads, and counts the calls.

    The script gives each position a piece that is certain, or pieces with their probabilities.
    """

    def __init__(self, config, script: list[int | dict[int, float]]) -> None:
        super().__init__(config)
        self.script, self.calls, self.position = script, 0, 0

    def decode(self, tgt_in, *args, **kwargs):
        self.calls += 1
        self.position += tgt_in.shape[1]
        return super().decode(tgt_in, *args, **kwargs)

    def logits(self, hidden):
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
    batch = collate(
        examples,
        pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
    )  # fmt: skip
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
def tokenizer() -> Tokenizer:
    return Tokenizer.train([side for pair in PAIRS for side in pair], vocab_size=140)[0]


@pytest.fixture(scope="session")
def translator(tokenizer) -> Translator:
    model = trained(PAIRS, tokenizer, 150, d_model=48, n_heads=4, d_ff=96, max_length=48)
    return Translator(model, tokenizer)


@pytest.fixture(scope="session")
def checkpoint(translator) -> dict:
    """What training would write for that model."""
    state = {f"model.{name}": tensor for name, tensor in translator.model.state_dict().items()}
    entry = checkpoint_entry(translator.model.config, translator.tokenizer)
    return {"state_dict": state, "translate": entry}


@pytest.fixture(scope="session")
def checkpoint_file(checkpoint, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "best.ckpt"
    torch.save(checkpoint, path)
    return path
