"""SentencePiece tokenizer: one vocabulary for both languages (Kudo and Richardson, 2018)."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from translate.errors import UserError
from translate.text.normalize import normalize
from translate.text.split import shuffled

WORD_START = "▁"
# SentencePiece uses this character itself, and silently leaves out training lines that have it.
_RESERVED = "▅"
MAX_BYTES = 4192  # SentencePiece does not train on longer lines
_SPECIALS: dict[str, Any] = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}


class Tokenizer:
    """Converts text to ids and back. Every text is normalised by `normalize` first.

    `pad_id`, `unk_id`, `bos_id` and `eos_id` come from the SentencePiece model: four different
    ids, none negative. No text encodes to pad, bos or eos, not even "</s>".
    """

    def __init__(self, model: bytes) -> None:
        """Load a serialised SentencePiece model.

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
        if missing := [name for name in _SPECIALS if getattr(self, name) < 0]:
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
        max_bytes: int = MAX_BYTES,
        max_sentences: int = 1_000_000,
    ) -> tuple[Tokenizer, list[str]]:
        """Train on sentences of both languages; return the tokenizer and one-line notes.

        Args:
            sentences: in any order; blank ones are ignored.
            vocab_size: number of pieces, including the four special ones. A small corpus may
                support fewer; a note says so.
            seed: decides which sentences are used if there are more than `max_sentences`.
            max_bytes: longer sentences (in UTF-8) are left out, with a note.
            max_sentences: if there are more sentences, the tokenizer is trained on a random sample
                of this size. The vocabulary still has the characters of all sentences.

        Raises:
            UserError: no text, only lines that are too long, or fewer pieces than characters.
        """
        texts, too_long = _training_texts(sentences, max_bytes)
        notes = []
        if too_long:
            notes.append(f"tokenizer: {too_long:,} lines longer than {max_bytes:,} bytes not used")
        characters = set().union(*texts) - {" "}
        cls.smallest(characters, vocab_size)
        if len(texts) > max_sentences:
            notes.append(f"tokenizer: trained on {max_sentences:,} random lines of {len(texts):,}")
            sample = sorted(shuffled(len(texts), f"tokenizer {seed}")[:max_sentences])
            texts = [texts[index] for index in sample]
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=model,
                vocab_size=vocab_size,
                # BPE (Sennrich et al., 2016), not unigram: it counts with integers, so the same
                # text gives the same model on every machine; it trains ten times faster; and it
                # learns whole words, not only letters, even from three sentence pairs.
                model_type="bpe",
                hard_vocab_limit=False,
                # All characters: otherwise a corpus with the text "</s>" would lose the characters
                # of this text.
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
        if (size := len(tokenizer)) < vocab_size:
            notes.append(f"vocabulary {vocab_size} reduced to {size}: the corpus supports no more")
        return tokenizer, notes

    @staticmethod
    def smallest(characters: set[str], vocab_size: int) -> int:
        """Return the size of the smallest vocabulary: the characters and the special pieces.

        Raises:
            UserError: `vocab_size` is smaller.
        """
        minimum = len(characters | {WORD_START}) + len(_SPECIALS)
        if vocab_size < minimum:
            raise UserError(
                f"vocab_size {vocab_size:,} is too small: the text has "
                f"{len(characters):,} different characters, so set it to at least {minimum:,}"
            )
        return minimum

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Read a SentencePiece .model file.

        Raises:
            UserError: the file cannot be read or used; the message names it.
        """
        place = Path(path).expanduser().absolute()
        try:
            return cls(place.read_bytes())
        except OSError as error:
            raise UserError(f"cannot read the tokenizer {place}: {error.strerror}") from None
        except UserError as error:
            raise UserError(f"{place}: {error}") from None

    def to_bytes(self) -> bytes:
        """Return the serialised SentencePiece model, the content of a .model file."""
        return self._model

    def fingerprint(self) -> str:
        """Return the SHA-256 of the serialised model in hex: equal only for equal tokenizers."""
        return hashlib.sha256(self._model).hexdigest()

    def __len__(self) -> int:
        return len(self._processor)

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes]]:
        return Tokenizer, (self._model,)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the normalised text, without bos and eos; unseen characters are unk."""
        return self._processor.encode(normalize(text))

    def unknown(self, text: str) -> list[str]:
        """Return the characters that `encode` turns into unk, each once, in order."""
        pieces = self._processor.encode(normalize(text), out_type=str)
        ids = self.encode(text)
        unknown = "".join(p for p, index in zip(pieces, ids, strict=True) if index == self.unk_id)
        return list(dict.fromkeys(unknown.replace(WORD_START, "")))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; pad, bos and eos are skipped, unk becomes "⁇"."""
        return self._processor.decode([index for index in ids if index not in self._control])

    def piece(self, index: int) -> str:
        """Return a piece as SentencePiece writes it: "▁" marks the start of a word."""
        return self._processor.id_to_piece(index)


def _training_texts(sentences: Iterable[str], max_bytes: int) -> tuple[list[str], int]:
    """Return the normalised sentences without blank and too long ones; count the too long ones.

    Raises:
        UserError: there are none.
    """
    texts = [normalize(sentence.replace(_RESERVED, " ")) for sentence in sentences]
    texts = [text for text in texts if text]
    fitting = [text for text in texts if len(text.encode()) <= max_bytes]
    if not fitting:
        reason = "every sentence is blank"
        if texts:
            reason = f"all {len(texts):,} lines are longer than {max_bytes:,} bytes; split them"
        raise UserError(f"no text to train the tokenizer on: {reason}")
    return fitting, len(texts) - len(fitting)
