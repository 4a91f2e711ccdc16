"""SentencePiece: one joint vocabulary for both languages (Kudo and Richardson, 2018)."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import sentencepiece

from translate.errors import UserError
from translate.text.normalize import normalize
from translate.text.split import shuffled

WORD_START = "▁"
# SentencePiece's own mark: it leaves out a training line that holds it, without a word.
_RESERVED = "▅"
_SPECIALS = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}


class Tokenizer:
    """Text to ids and back. Every text is normalised by `normalize` first.

    `pad_id`, `unk_id`, `bos_id` and `eos_id` come from the model: four different ids, none
    negative. No text, whatever it says, encodes to pad, bos or eos.
    """

    def __init__(self, model: bytes) -> None:
        """`model` is a serialised SentencePiece model.

        Raises:
            UserError: not a SentencePiece model, or one without pad, unk, bos and eos.
        """
        self._model = model
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise UserError("the tokenizer is not a SentencePiece model") from None
        if not len(self._processor):
            raise UserError("the tokenizer is an empty SentencePiece model")
        self.pad_id: int = self._processor.pad_id()
        self.unk_id: int = self._processor.unk_id()
        self.bos_id: int = self._processor.bos_id()
        self.eos_id: int = self._processor.eos_id()
        missing = [name for name in _SPECIALS if getattr(self, name) < 0]
        if missing:
            raise UserError(
                f"the SentencePiece model has no {', '.join(missing)}: train it with "
                "--pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3, or let the run train its own"
            )
        self._control = frozenset(
            index for index in range(len(self._processor)) if self._processor.is_control(index)
        )

    @classmethod
    def train(
        cls,
        sentences: Iterable[str],
        *,
        vocab_size: int,
        seed: int = 0,
        max_bytes: int = 4192,
        max_sentences: int = 1_000_000,
    ) -> tuple[Tokenizer, list[str]]:
        """Train on sentences of both languages; return the tokenizer and one-line notes.

        Args:
            sentences: any order; blank ones do not count.
            vocab_size: number of pieces, the four special ones counted in. A corpus that
                supports no more gets fewer, with a note.
            seed: decides which sentences are used if there are more than `max_sentences`.
            max_bytes: longer sentences (in UTF-8) are left out, with a note.
            max_sentences: the sample is drawn from all of the text, so from both languages;
                characters outside it are in the vocabulary all the same.

        Raises:
            UserError: no text, only over-long lines, or a vocabulary too small for the characters.
        """
        texts, notes = _training_texts(sentences, max_bytes)
        characters = set().union(*texts) - {" "}
        minimum = len(characters | {WORD_START}) + len(_SPECIALS)
        if vocab_size < minimum:
            raise UserError(
                f"vocab_size {vocab_size:,} is too small: the text has "
                f"{len(characters):,} different characters, so set it to at least {minimum:,}"
            )
        if len(texts) > max_sentences:
            sample = sorted(shuffled(len(texts), f"tokenizer {seed}")[:max_sentences])
            notes.append(
                f"tokenizer: trained on {max_sentences:,} of {len(texts):,} sentences, "
                "drawn at random"
            )
            texts = [texts[index] for index in sample]
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=model,
                vocab_size=vocab_size,
                # BPE (Sennrich et al., 2016) and not unigram: it counts in integers, so the
                # same text gives the same model on every machine; it trains ten times faster;
                # and a corpus of three pairs still gets whole words instead of letters.
                model_type="bpe",
                hard_vocab_limit=False,
                # Each character is named, because a corpus that spells out "</s>" would
                # otherwise lose the characters of it.
                required_chars="".join(sorted(characters)),
                character_coverage=1.0,
                normalization_rule_name="identity",
                unk_surface="⁇",
                max_sentence_length=max_bytes,
                minloglevel=3,
                **_SPECIALS,
            )
        except RuntimeError as error:
            raise UserError(f"SentencePiece cannot train on this text: {error}") from None
        tokenizer = cls(model.getvalue())
        if len(tokenizer) < vocab_size:
            notes.append(
                f"vocabulary {vocab_size} reduced to {len(tokenizer)}: the corpus supports no more"
            )
        return tokenizer, notes

    @classmethod
    def from_bytes(cls, data: bytes) -> Tokenizer:
        """The inverse of `to_bytes`."""
        return cls(data)

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Read a SentencePiece .model file; UserError names the file."""
        place = Path(path).expanduser().absolute()
        try:
            return cls(place.read_bytes())
        except OSError as error:
            raise UserError(f"cannot read the tokenizer {place}: {error.strerror}") from None
        except UserError as error:
            raise UserError(f"{place}: {error}") from None

    def to_bytes(self) -> bytes:
        """The SentencePiece model, serialised: what a .model file holds."""
        return self._model

    def fingerprint(self) -> str:
        """SHA-256 of the serialised model in hex, to tell two tokenizers of one size apart."""
        return hashlib.sha256(self._model).hexdigest()

    def __len__(self) -> int:
        return len(self._processor)

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes]]:
        return Tokenizer, (self._model,)

    def encode(self, text: str) -> list[int]:
        """Ids of the normalised text, without bos and eos; a character never seen is unk."""
        return self._processor.encode(normalize(text))

    def unknown(self, text: str) -> list[str]:
        """The characters that `encode` makes unk of, each once, in order."""
        ids = self.encode(text)
        if self.unk_id not in ids:
            return []
        spelled = self._processor.encode(normalize(text), out_type=str)
        parts = [part for part, index in zip(spelled, ids, strict=True) if index == self.unk_id]
        return list(dict.fromkeys("".join(parts).replace(WORD_START, "")))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; pad, bos and eos are skipped, unk becomes "⁇", no "▁" is left."""
        return self._processor.decode([index for index in ids if index not in self._control])

    def piece(self, index: int) -> str:
        """One id as SentencePiece writes it: "▁" marks the start of a word."""
        return self._processor.id_to_piece(index)


def _training_texts(sentences: Iterable[str], max_bytes: int) -> tuple[list[str], list[str]]:
    """Normalised sentences that are neither blank nor over-long, and a note if some were."""
    texts = []
    too_long = 0
    for sentence in sentences:
        text = normalize(sentence.replace(_RESERVED, " "))
        if len(text.encode("utf-8")) > max_bytes:
            too_long += 1
        elif text:
            texts.append(text)
    if not texts:
        if too_long:
            raise UserError(
                f"no text to train the tokenizer on: all {too_long:,} lines are longer than "
                f"{max_bytes:,} bytes; put one sentence on a line"
            )
        raise UserError("no text to train the tokenizer on: every sentence is blank")
    if not too_long:
        return texts, []
    return texts, [f"tokenizer: {too_long:,} lines longer than {max_bytes:,} bytes not trained on"]
