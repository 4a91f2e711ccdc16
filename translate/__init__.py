"""A small English-German translation model, with an API of one class.

    from translate import Translator
    Translator.load("runs/tiny/version_0").translate(["This is an example"])

Importing this package does not import torch; the first use of `Translator` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from translate.version import __version__

if TYPE_CHECKING:
    from translate.decoding.translator import Translator

__all__ = ["Translator", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Translator":
        from translate.decoding.translator import Translator

        return Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
