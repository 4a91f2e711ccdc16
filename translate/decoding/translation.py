"""The result of translating one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Translation:
    """The translation of one sentence, and facts for its reader, such as unknown characters."""

    text: str  # begins with exactly the characters of the prefix
    ids: list[int]  # with the ids of the prefix; without bos and eos
    limit_reached: bool = False  # stopped at the limit: the sentence has no end
    prefix_finished: bool = False  # the model added nothing to the prefix
    dropped: str = ""  # the end of a source that is too long: the model did not read it
    unknown: Sequence[str] = ()  # characters of source or prefix that the vocabulary does not have
    score: float | None = None  # of beam search; blank sentence: 0, greedy search: None

    def notes(self) -> list[str]:
        """Return what a reader of `text` should know, one sentence each."""
        notes = []
        if self.dropped:
            notes.append(
                f"the source is too long for this model, so its last {len(self.dropped)} "
                f"characters were not translated: {shortened(self.dropped)!r}"
            )
        if self.unknown:
            more = ", ..." if len(self.unknown) > 8 else ""
            notes.append(
                f"the model has never seen {', '.join(map(repr, self.unknown[:8]))}{more}: "
                f"{'it was' if len(self.unknown) == 1 else 'they were'} read as unknown"
            )
        if self.limit_reached:
            notes.append("the limit of new pieces was reached before the sentence ended")
        if self.prefix_finished and self.text:
            notes.append("the prefix is already a finished translation: nothing to add")
        elif self.prefix_finished:
            notes.append("empty: the model ended the translation before the first word")
        return notes


def shortened(text: str, width: int = 40) -> str:
    """Return `text`, cut to `width` characters with "..." at the end if it is longer."""
    return text if len(text) <= width else text[: width - 3] + "..."
