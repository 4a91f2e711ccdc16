"""One normalisation for everything that is read: corpus, source sentence and prefix."""

from __future__ import annotations

import unicodedata

# Characters that take no room on paper and that two spellings of one word may differ in: soft
# hyphen, zero-width space and joiners, direction marks, word joiner, byte order mark.
_INVISIBLE = "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\ufeff" + "".join(
    chr(code) for code in (*range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x206A))
)

_TABLE = {
    **dict.fromkeys(map(ord, _INVISIBLE)),
    # A lone surrogate stands for a byte that was no text; it has no UTF-8 form.
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    # SentencePiece writes a space as U+2581 and cannot tell a typed one from its own.
    0x2581: " ",
}


def normalize(text: str) -> str:
    """Compose (NFC), drop invisible characters, make every run of white space one plain space.

    White space is what `str.isspace` says: tab, carriage return, NBSP, narrow NBSP, U+0085,
    U+2028 and so on. Both ends are stripped. Compatibility characters (½ ™ m² …) stay as they
    are, which is why this is NFC and not NFKC (Unicode Standard Annex 15).
    `normalize(normalize(text)) == normalize(text)`.
    """
    if not text.isascii():  # ASCII is composed, and has nothing invisible but white space
        text = unicodedata.normalize("NFC", text.translate(_TABLE))
    return " ".join(text.split())


def fold(text: str) -> str:
    """The form in which two sentences count as the same: normalised, upper and lower case alike."""
    text = normalize(text)
    return text.lower() if text.isascii() else normalize(text.casefold())
