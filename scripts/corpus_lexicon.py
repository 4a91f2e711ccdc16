"""Load data/lexicon.yaml and look up its nouns, verbs and adjectives by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml


@dataclass
class Lexicon:
    """The words of data/lexicon.yaml, and its nouns by class."""

    data: dict[str, Any]
    nouns: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    fitting: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Lexicon:
        lexicon = cls(yaml.safe_load(path.read_text(encoding="utf-8")))
        for name, nouns in lexicon.data["nouns"].items():
            for noun in nouns:
                noun["class"] = name
                for tag in (name, noun["en"], *noun.get("also", [])):
                    lexicon.nouns.setdefault(tag, []).append(noun)
                if "pronoun" in noun:
                    lexicon.nouns.setdefault("he_or_she", []).append(noun)
        return lexicon

    def nouns_of(self, classes: Sequence[str]) -> list[dict[str, Any]]:
        """Return the nouns of these classes, groups of classes or English lemmas, each once."""
        found: list[dict[str, Any]] = []
        for name in classes:
            if name in self.data["groups"]:
                members = self.nouns_of(self.data["groups"][name])
            elif name in self.nouns:
                members = self.nouns[name]
            else:
                raise ValueError(f"no noun class or noun is called {name!r}")
            found.extend(noun for noun in members if noun not in found)
        return found

    def verbs_of(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return the verbs of these groups, English base forms or German infinitives."""
        found: list[dict[str, Any]] = []
        for name in names:
            members = self.data["verbs"].get(name) or [
                verb
                for group in self.data["verbs"].values()
                for verb in group
                if name in (verb["en"][0], verb["de"])
            ]
            if not members:
                raise ValueError(f"no verb group or verb is called {name!r}")
            found.extend(members)
        return found

    def adjectives_for(self, noun: dict[str, Any], *, state: bool = False) -> list[dict[str, Any]]:
        """Return adjectives that fit a noun; with `state` only passing states (tired, hungry)."""
        adjectives = self.data["adjectives"]
        if "person" in noun:
            return [entry for entry in adjectives if "people" in entry.get("state", [])]
        key = ("state" if state else "for", noun["de"])
        if key not in self.fitting:
            self.fitting[key] = [
                entry for entry in adjectives if noun in self.nouns_of(entry.get(key[0], []))
            ]
        return self.fitting[key]

    def lemmas(self) -> set[tuple[str, str]]:
        """Return every lemma of the corpus as (kind, German)."""
        found = {("noun", n["de"]) for group in self.data["nouns"].values() for n in group}
        found |= {("verb", v["de"]) for group in self.data["verbs"].values() for v in group}
        for group in (*self.data["prepositions"].values(), *self.data["adverbs"].values()):
            found |= {("particle", entry["de"]) for entry in group}
        for kind in ("modals", "pronouns", "adjectives", "numbers", "question_words"):
            found |= {(kind, f"{entry['de']} {entry['en']}") for entry in self.data[kind]}
        return found
