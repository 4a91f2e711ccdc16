"""Turn data/lexicon.yaml and data/grammar.yaml into sentence pairs.

A pattern draws words into its slots and fills an English and a German template with them; everything either language
inflects (articles, adjectives, nouns, verbs, pronouns) is worked out here from the lexicon. grammar.yaml explains slots
and templates.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

# --- German endings, in the order masculine, feminine, neuter, plural ---------------------------------------------

CASES = ("nom", "acc", "dat")
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
THIRD_SINGULAR, THIRD_PLURAL = 2, 4


def ending(table: dict[str, str], case: str, column: int) -> str:
    """The ending (or word) of a table above for a case and a column 0..3; "-" stands for none."""
    return table[case].split()[column].replace("-", "")


@dataclass
class NounPhrase:
    """A noun with determiner, adjective and number, or a personal pronoun (then noun is that pronoun's entry)."""

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
        """The column of a verb table: 0 I, 1 you, 2 he/she/it, 3 we, 4 they."""
        if self.is_pronoun:
            return self.noun["person"]
        return THIRD_PLURAL if self.plural else THIRD_SINGULAR

    @property
    def column(self) -> int:
        return 3 if self.plural else "mfn".index(self.noun["gender"])

    def english(self, form: str = "") -> str:
        if form in ("ref", "ref_acc"):
            return self._english_reference(form)
        if self.is_pronoun:
            return self.noun["en_object"] if form == "obj" else self.noun["en"]
        words = [self.adjective["en"]] if self.adjective else []
        words.append(
            self.noun.get("en_plural", self.noun["en"] + "s") if self.plural else self.noun["en"]
        )
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

    def german(self, case: str) -> str:
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
        """The determiner, and the table of the adjective endings that follow it."""
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
    """One verb or modal of the lexicon and its forms; person is the column 0..4 of a verb table."""

    def __init__(self, entry: dict[str, Any]):
        self.entry = entry
        particle, bar, base = entry["de"].rpartition("|")
        self.particle, self.base = (particle, base) if bar else ("", entry["de"])
        self.stem = self.base.removesuffix("en")

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


class Draft(NamedTuple):
    """A sentence pair and what it is made of: key is the construction with its words, whatever their forms."""

    source: str
    target: str
    key: tuple[str, ...]

    @property
    def pair(self) -> tuple[str, str]:
        return self.source, self.target


@dataclass
class Lexicon:
    """The lexicon with its nouns, verbs and adjectives found by class."""

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
        """The nouns of these classes, groups of classes or English lemmas, each once, in lexicon order."""
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
        """The verbs of these groups with these English base forms or German infinitives."""
        found: list[dict[str, Any]] = []
        for name in names:
            members = self.data["verbs"].get(name) or [
                verb for group in self.data["verbs"].values() for verb in group if name in (verb["en"][0], verb["de"])
            ]
            if not members:
                raise ValueError(f"no verb group or verb is called {name!r}")
            found.extend(members)
        return found

    def adjectives_for(self, noun: dict[str, Any], *, state: bool = False) -> list[dict[str, Any]]:
        """The adjectives that go with a noun; with state, those that say how somebody feels just now."""
        if "person" in noun:
            return [entry for entry in self.data["adjectives"] if "people" in entry.get("state", [])]
        key = ("state" if state else "for", noun["de"])
        if key not in self.fitting:
            self.fitting[key] = [
                entry
                for entry in self.data["adjectives"]
                if noun in self.nouns_of(entry.get(key[0], []))
            ]
        return self.fitting[key]

    def lemmas(self) -> set[tuple[str, str]]:
        """Every lemma as (kind, German): what a reader of the corpus has to know."""
        found = {("noun", n["de"]) for group in self.data["nouns"].values() for n in group}
        found |= {("verb", v["de"]) for group in self.data["verbs"].values() for v in group}
        for group in (*self.data["prepositions"].values(), *self.data["adverbs"].values()):
            found |= {("particle", entry["de"]) for entry in group}
        for kind in ("modals", "pronouns", "adjectives", "numbers", "question_words"):
            found |= {(kind, f"{entry['de']} {entry['en']}") for entry in self.data[kind]}
        return found


FIELD = re.compile(r"\{(\w+)(?::(\w+))?(?::(\w+))?\}")


class Grammar:
    """Writes sentence pairs of a construction; the same seed and number of calls give the same sentences."""

    def __init__(self, lexicon: Lexicon, constructions: dict[str, Any], seed: int):
        self.lexicon = lexicon
        self.constructions = constructions
        self.random = random.Random(seed)
        self.used: Counter[tuple[str, ...]] = Counter()

    def pick(self, items: Sequence[Any], role: str = "", name: str = "en") -> Any:
        """One of items: of three drawn, the one so far least used in this role, so that all are practised."""
        if not items:
            raise NoChoice
        # random() alone is promised to stay the same in every Python version
        drawn = [items[int(self.random.random() * len(items))] for _ in range(3)]
        if isinstance(drawn[0], dict):
            best = min(drawn, key=lambda item: self.used[role, str(item[name])])
            self.used[role, str(best[name])] += 1
            return best
        return drawn[0]

    def draft(self, construction: str) -> Draft:
        """A sentence pair of this construction."""
        patterns = self.constructions[construction]["patterns"]
        weighted = [p for p in patterns for _ in range(p["weight"])]
        while True:
            pattern = weighted[int(self.random.random() * len(weighted))]
            try:
                return self._fill(construction, patterns.index(pattern), pattern)
            except NoChoice:
                continue

    def _fill(self, construction: str, number: int, pattern: dict[str, Any]) -> Draft:
        slots: dict[str, Any] = {}
        for name, wish in pattern["slots"].items():
            slots[name] = self._choose(name, wish, slots, pattern)
        nouns = [slots[name] for name in pattern.get("different_gender", [])]
        if len({phrase.noun["gender"] for phrase in nouns}) < len(nouns):
            raise NoChoice
        words = [lemma for value in slots.values() for lemma in _lemmas(value)]
        if len([w for w in words if w]) != len({w for w in words if w}):
            raise NoChoice  # no word twice in a sentence
        source = _tidy(FIELD.sub(lambda m: self._english(m, slots), pattern["en"]))
        target = _tidy(FIELD.sub(lambda m: self._german(m, slots), pattern["de"]))
        key = (construction, str(number), *words)
        return Draft(source, target, key)

    # --- slots --------------------------------------------------------------------------------------------------

    def _choose(self, name: str, wish: dict[str, Any], slots: dict[str, Any], pattern: dict[str, Any]) -> Any:
        data = self.lexicon.data
        if "noun" in wish:
            return self._noun_phrase(name, wish, slots, pattern)
        if "verb" in wish:
            return Verb(self.pick(self._verbs(name, wish, pattern), "verb" + pattern["en"], "de"))
        if "modal" in wish:
            allowed = wish["modal"]
            return Verb(self.pick([m for m in data["modals"] if allowed is True or m["en"][0] in allowed], "modal"))
        if "adjective" in wish:
            noun = slots[wish["adjective"]].noun
            phrase = slots[wish["adjective"]]
            fitting = self.lexicon.adjectives_for(noun, state=wish.get("state", False))
            if wish.get("degree"):
                fitting = [a for a in fitting if a.get("degree", True)]
            return self.pick([a for a in fitting if a is not phrase.adjective], "predicate")
        if "adverb" in wish:
            if isinstance(wish["adverb"], str):
                likes = slots[wish["adverb"]].entry["adverbs"]
                return self.pick([a for a in data["adverbs"]["with_verb"] if a["en"] in likes], "adverb")
            return self.pick([a for group in wish["adverb"] for a in data["adverbs"][group]], "adverb")
        if "prep" in wish:
            preposition = self.pick(data["prepositions"][wish["prep"]], wish["prep"])
            inner = {**wish, "noun": preposition["nouns"]}
            return preposition, self._noun_phrase(name, inner, slots, pattern, preposition["case"])
        if "phrase" in wish:
            return tuple(self.pick(wish["phrase"]))
        if "question" in wish:
            return self.pick(data["question_words"], "question")
        raise ValueError(f"slot {name!r} asks for nothing known: {wish}")

    def _verbs(self, name: str, wish: dict[str, Any], pattern: dict[str, Any]) -> list[dict[str, Any]]:
        verbs = self.lexicon.verbs_of(wish["verb"])
        if f"{{{name}:past" in pattern["en"]:
            verbs = [verb for verb in verbs if verb["en"][2]]
        if f"{{{name}:participle" in pattern["en"]:
            verbs = [verb for verb in verbs if not verb.get("no_perfect")]
        if pattern["en"].startswith("{t}"):
            verbs = [verb for verb in verbs if not verb.get("stative")]  # no "Today I like her"
        if pattern["en"].startswith("Who "):
            verbs = [verb for verb in verbs if not verb.get("no_pronoun")]
        if f"{{{name}:inf" in pattern["de"]:
            verbs = [verb for verb in verbs if not verb.get("no_modal")]
        return verbs

    def _noun_phrase(
        self, name: str, wish: dict[str, Any], slots: dict[str, Any], pattern: dict[str, Any], case: str = ""
    ) -> NounPhrase:
        case = case or re.search(rf"\{{{name}:(\w+)", pattern["de"])[1]
        verb = next((v.entry for v in slots.values() if isinstance(v, Verb) and "subjects" in v.entry), {})
        taken = [v for v in slots.values() if isinstance(v, NounPhrase) and v.is_pronoun]
        of_verb = isinstance(wish["noun"], str)
        classes = verb[wish["noun"].split()[0] + "s"] if of_verb else wish["noun"]
        may_be_pronoun = not taken and not (case == "nom" and verb.get("no_pronoun"))
        if case == "nom" and verb and not of_verb and not classes:
            may_be_pronoun = may_be_pronoun and "people" in verb["subjects"]
        if of_verb and case == "nom":
            may_be_pronoun = may_be_pronoun and "people" in classes
        if self.random.random() < wish.get("pronoun", 0):
            if not may_be_pronoun:
                raise NoChoice
            people = self.lexicon.data["pronouns"]
            if "{v:past" in pattern["en"] and case == "nom":
                people = [p for p in people if p["person"] != 1]  # du lasest, du aßest: nobody says it
            return NounPhrase(self.pick(people, f"{case} {verb.get('de')}"))
        return self._plain_noun_phrase(wish, self._nouns(classes, wish), case, verb)

    def _nouns(self, classes: list[str], wish: dict[str, Any]) -> list[dict[str, Any]]:
        nouns = self.lexicon.nouns_of(classes)
        if "only" in wish:
            allowed = self.lexicon.nouns_of(wish["only"])
            nouns = [noun for noun in nouns if noun in allowed]
        if "without" in wish:
            refused = self.lexicon.nouns_of(wish["without"])
            nouns = [noun for noun in nouns if noun not in refused]
        if wish.get("number", "sg") != "sg":
            nouns = [noun for noun in nouns if "plural" in noun]
        return nouns

    def _plain_noun_phrase(
        self, wish: dict[str, Any], nouns: list[dict[str, Any]], case: str, verb: dict[str, Any]
    ) -> NounPhrase:
        number = wish.get("number", "sg")
        plural = number in ("pl", "counted") or (number == "any" and self.random.random() < 0.5)
        noun = self.pick(nouns, f"{case} {'pl' if plural else 'sg'}")
        dets = self.lexicon.data["determiners"]
        usual = noun.get("dets") or dets.get(noun["class"], dets["other"])
        usual = verb.get("object_dets", usual) if case == "acc" else usual
        if plural and case != "acc":
            usual = [det for det in usual if det != "a"]  # "Kings paint": right, but of all kings
        wanted = wish.get("det", usual)
        det = self.pick([d for d in wanted if d in usual or d in ALWAYS_FIT])
        phrase = NounPhrase(noun, det, plural)
        if number == "counted":
            phrase.count = self.pick(self.lexicon.data["numbers"], "number")
        if self.random.random() < wish.get("adj", 0):
            phrase.adjective = self.pick(self.lexicon.adjectives_for(noun), f"{case} {phrase.column} {det}")
        return phrase

    # --- templates ----------------------------------------------------------------------------------------------

    def _english(self, match: re.Match[str], slots: dict[str, Any]) -> str:
        name, form, subject = match.groups()
        person = _person(slots, subject)
        if name not in slots:
            return self.lexicon.data["agreeing"][name][_person(slots, form)]
        value = slots[name]
        if isinstance(value, NounPhrase):
            return value.english(form or "")
        if isinstance(value, Verb):
            return value.english(form, person)
        if isinstance(value, dict):
            return value["en"]
        if isinstance(value[0], dict):
            return f"{value[0]['en']} {value[1].english('obj')}"
        return value[0]

    def _german(self, match: re.Match[str], slots: dict[str, Any]) -> str:
        name, form, subject = match.groups()
        person = _person(slots, subject)
        if name not in slots:
            return self.lexicon.data["agreeing"][name][_person(slots, form)]
        value = slots[name]
        if isinstance(value, NounPhrase):
            return value.german(form)
        if isinstance(value, Verb):
            if form == "aux":
                return self.lexicon.data["agreeing"][value.entry.get("aux", "haben")][person]
            return value.german(form, person)
        if isinstance(value, dict):
            return value["de"]
        if isinstance(value[0], dict):
            return self._contract(f"{value[0]['de']} {value[1].german(value[0]['case'])}")
        return value[1]

    def _contract(self, text: str) -> str:
        first, second, rest = text.split(" ", 2) if text.count(" ") > 1 else (*text.split(" "), "")
        short = self.lexicon.data["contractions"].get(f"{first} {second}")
        return f"{short} {rest}" if short else text


class NoChoice(Exception):
    """A pattern found no fitting word for a slot; another draw may."""


def _person(slots: dict[str, Any], subject: str | None) -> int:
    return slots[subject].person if subject in slots else THIRD_SINGULAR


def _lemmas(value: Any) -> list[str]:
    """What a slot's value adds to the key of a sentence: its lemmas, without their forms."""
    if isinstance(value, NounPhrase):
        return [value.noun["de" if not value.is_pronoun else "en"]] + (
            [value.adjective["de"]] if value.adjective else []
        )
    if isinstance(value, Verb):
        return [value.entry["de"]]
    if isinstance(value, dict):
        return [value["de"]]
    if isinstance(value[0], dict):
        return [value[0]["de"], *_lemmas(value[1])]
    return [value[1]]


def _tidy(text: str) -> str:
    """Single spaces, none before punctuation, a capital after every sentence end."""
    text = re.sub(r" +", " ", text).strip()
    text = re.sub(r" ([.?,])", r"\1", text)
    return re.sub(r"(^|[.?] )(\w)", lambda m: m[1] + m[2].upper(), text)
