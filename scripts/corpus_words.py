"""Inflect English and German words by rule from their entries in data/lexicon.yaml.

Each class of words that can fill a slot of a pattern has `english(form, person)`,
`german(form, person)` and `lemmas`. data/grammar.yaml lists the forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# German endings in the order masculine, feminine, neuter, plural; "-" means no ending.
THE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den"}
STRONG = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en"}
EIN_WORD = {"nom": "- e - e", "acc": "en e - e", "dat": "em er em en"}
WEAK = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en"}
MIXED = {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en"}

# determiner: (English singular, English plural, German stem)
EIN_WORDS = {
    "a": ("a", "", "ein"),
    "no": ("no", "no", "kein"),
    "no_a": ("a", "any", "kein"),
    "my": ("my", "my", "mein"),
    "your": ("your", "your", "dein"),
    "his": ("his", "his", "sein"),
    "her": ("her", "her", "ihr"),
    "our": ("our", "our", "unser"),
}
ALWAYS_FIT = ("no", "no_a", "which", "none")
DER_WORDS = {"this": ("this", "these", "dies"), "which": ("which", "which", "welch")}
IT = {"nom": "er sie es sie", "acc": "ihn sie es sie"}
AUXILIARIES = {
    "haben": ["habe", "hast", "hat", "haben", "haben"],
    "sein": ["bin", "bist", "ist", "sind", "sind"],
}
THIRD_SINGULAR, THIRD_PLURAL = 2, 4


def ending(table: dict[str, str], case: str, column: int) -> str:
    """Return the ending (or word) in a table above for a case and a column from 0 to 3."""
    return table[case].split()[column].replace("-", "")


@dataclass
class NounPhrase:
    """A noun with determiner, adjective and number, or a personal pronoun."""

    noun: dict[str, Any]
    det: str = "the"
    plural: bool = False
    adjective: dict[str, Any] | None = None
    count: dict[str, Any] | None = None

    @property
    def is_pronoun(self) -> bool:
        return "person" in self.noun

    @property
    def person(self) -> int:
        """Column of a verb table: 0 I, 1 you, 2 he/she/it, 3 we, 4 they."""
        if self.is_pronoun:
            return self.noun["person"]
        return THIRD_PLURAL if self.plural else THIRD_SINGULAR

    @property
    def column(self) -> int:
        return 3 if self.plural else "mfn".index(self.noun["gender"])

    @property
    def lemmas(self) -> list[str]:
        words = [self.noun["en" if self.is_pronoun else "de"]]
        return [*words, self.adjective["de"]] if self.adjective else words

    def english(self, form: str = "", person: int = THIRD_SINGULAR) -> str:
        """Forms: "" subject; "obj" object; "ref", "ref_acc" the pronoun that refers to the noun."""
        if form in ("ref", "ref_acc"):
            return self._english_reference(form)
        if self.is_pronoun:
            return self.noun["en_object"] if form == "obj" else self.noun["en"]
        words = [self.adjective["en"]] if self.adjective else []
        singular = self.noun["en"]
        words.append(self.noun.get("en_plural", f"{singular}s") if self.plural else singular)
        if self.count:
            return " ".join([self.count["en"], *words])
        if self.det == "the":
            words.insert(0, "the")
        elif self.det in EIN_WORDS or self.det in DER_WORDS:
            determiner = {**EIN_WORDS, **DER_WORDS}[self.det][self.plural]
            if determiner == "a" and words[0][0] in "aeiou":
                determiner = "an"
            words.insert(0, determiner)
        return " ".join(word for word in words if word)

    def german(self, case: str, person: int = THIRD_SINGULAR) -> str:
        """Cases: nom, acc, dat; "ref" and "ref_acc" are the pronoun that refers to the noun."""
        if case in ("ref", "ref_acc"):
            return self._german_reference("acc" if case == "ref_acc" else "nom")
        if self.is_pronoun:
            return self.noun["de" if case == "nom" else case]
        determiner, endings = self._german_determiner(case)
        words = [determiner] if determiner else []
        if self.adjective:
            stem = self.adjective.get("stem", self.adjective["de"]).removesuffix("e")
            words.append(stem + ending(endings, case, self.column))
        return " ".join([*words, self._german_noun(case)])

    def _german_determiner(self, case: str) -> tuple[str, dict[str, str]]:
        """Return the determiner and the table of the adjective endings that follow it."""
        if self.count:
            return self.count["de"], STRONG
        if self.det == "the":
            return ending(THE, case, self.column), WEAK
        if self.det in DER_WORDS:
            return DER_WORDS[self.det][2] + ending(STRONG, case, self.column), WEAK
        if self.det in EIN_WORDS and not (self.det == "a" and self.plural):
            return EIN_WORDS[self.det][2] + ending(EIN_WORD, case, self.column), MIXED
        return "", STRONG

    def _german_noun(self, case: str) -> str:
        if not self.plural:
            weak = self.noun.get("weak") and case != "nom"
            return self.noun["plural"] if weak else self.noun["de"]
        plural = self.noun["plural"]
        return plural + "n" if case == "dat" and plural[-1] not in "ns" else plural

    def _english_reference(self, form: str) -> str:
        if self.is_pronoun:
            return self.noun["en"]
        if self.plural:
            return "them" if form == "ref_acc" else "they"
        return self.noun.get("pronoun", "it")

    def _german_reference(self, case: str) -> str:
        return self.noun["de"] if self.is_pronoun else ending(IT, case, self.column)


class Verb:
    """A verb or modal verb; `person` is the column of a verb table, 0 to 4."""

    def __init__(self, entry: dict[str, Any]):
        self.entry = entry
        particle, bar, base = entry["de"].rpartition("|")
        self.particle, self.base = (particle, base) if bar else ("", entry["de"])
        self.stem = self.base.removesuffix("en")

    @property
    def lemmas(self) -> list[str]:
        return [self.entry["de"]]

    def english(self, form: str, person: int) -> str:
        forms = self.entry["en"]  # base, third person, past, participle; modals have the first two
        if form == "pres":
            return forms[1] if person == THIRD_SINGULAR else forms[0]
        return forms[{"base": 0, "past": 2, "participle": 3}[form]]

    def german(self, form: str, person: int) -> str:
        if form == "inf":
            return self.particle + self.base
        if form == "particle":
            return self.particle
        if form == "participle":
            return self.entry.get("participle", f"ge{self.stem}t")
        if form == "aux":
            return AUXILIARIES[self.entry.get("aux", "haben")][person]
        if form.endswith("_last"):
            return self.particle + self.german(form.removesuffix("_last"), person)
        return self._present(person) if form == "pres" else self._past(person)

    def _present(self, person: int) -> str:
        if "forms" in self.entry:
            return self.entry["forms"][person]
        link = "e" if self.stem[-1] in "td" else ""
        third = self.entry.get("present", f"{self.stem}{link}t")
        if "present" in self.entry:
            changed = third.removesuffix("t")
            second = changed + ("t" if changed[-1] in "sßz" else "st")
        else:
            second = self.stem + (link + "st" if self.stem[-1] not in "sßz" else "t")
        return [f"{self.stem}e", second, third, self.base, self.base][person]

    def _past(self, person: int) -> str:
        link = "e" if self.stem[-1] in "td" else ""
        first = self.entry.get("past", f"{self.stem}{link}te")
        if person >= 3:
            return first + ("n" if first.endswith("e") else "en")
        return first


@dataclass
class Word:
    """A word or fixed phrase with a single form: adverb, predicate adjective, question word."""

    entry: dict[str, Any]

    @property
    def lemmas(self) -> list[str]:
        return [self.entry["de"]]

    def english(self, form: str, person: int) -> str:
        return self.entry["en"]

    def german(self, form: str, person: int) -> str:
        return self.entry["de"]


@dataclass
class PrepositionPhrase:
    """A preposition with its noun phrase; some German prepositions contract with the article."""

    entry: dict[str, Any]
    phrase: NounPhrase
    contractions: dict[str, str]

    @property
    def lemmas(self) -> list[str]:
        return [self.entry["de"], *self.phrase.lemmas]

    def english(self, form: str, person: int) -> str:
        return f"{self.entry['en']} {self.phrase.english('obj')}"

    def german(self, form: str, person: int) -> str:
        text = f"{self.entry['de']} {self.phrase.german(self.entry['case'])}"
        first_two = " ".join(text.split(" ")[:2])
        return self.contractions.get(first_two, first_two) + text[len(first_two) :]
