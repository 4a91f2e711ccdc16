"""The normalisation of all text that is read: corpora, source sentences and prefixes."""

from __future__ import annotations

import re
import unicodedata

# Invisible characters. They are removed, because words with and without them look the same: soft
# hyphen, zero-width space and joiners, direction marks, word joiner, byte order mark.
_INVISIBLE = "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\ufeff" + "".join(
    chr(code) for code in (*range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x206A))
)

_TABLE = {
    **dict.fromkeys(map(ord, _INVISIBLE)),
    # A lone surrogate stands for a byte that was not text; it cannot be encoded as UTF-8.
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    # SentencePiece writes a space as U+2581 and cannot tell the two apart.
    0x2581: " ",
}
# Most text has none of these, and this search takes a tenth of the time of str.translate.
_IN_TABLE = re.compile(f"[{_INVISIBLE}\ud800-\udfff\u2581]")


def normalize(text: str) -> str:
    """Return composed text (NFC) without invisible characters, words separated by one space.

    White space is defined by `str.isspace`: tab, carriage return, NBSP, narrow NBSP, U+0085,
    U+2028 and others. Both ends are stripped. NFC is used, not NFKC (Unicode Standard Annex 15), to
    keep compatibility characters (½ ™ m² …). Normalising twice gives the same text as once.
    """
    if not text.isascii():  # ASCII is already composed and has no invisible characters
        if _IN_TABLE.search(text):
            text = text.translate(_TABLE)
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


def fold(text: str) -> str:
    """Return the normalised text without case, for finding equal sentences."""
    text = normalize(text)
    return text.lower() if text.isascii() else normalize(text.casefold())
