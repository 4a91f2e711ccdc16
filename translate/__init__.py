"""Small English-German translation, one word at a time.

    from translate import Translator
    Translator.load("runs/tiny/version_0").translate(["This is an example"])

Importing the package itself loads no torch; the first use of `Translator` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from translate.decoding.translator import Translator

__version__ = "0.1.0"
__all__ = ["Translator", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Translator":
        from translate.decoding.translator import Translator

        return Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
