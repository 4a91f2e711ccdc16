"""Construct sentence pairs from the patterns of data/grammar.yaml, which explains their syntax.

The slots of a pattern are filled with random words. Then the words are put into an English and a
German template.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from corpus_lexicon import Lexicon
from corpus_words import ALWAYS_FIT, THIRD_SINGULAR, NounPhrase, PrepositionPhrase, Verb, Word

FIELD = re.compile(r"\{(\w+)(?::(\w+))?(?::(\w+))?\}")
Entry = dict[str, Any]
Filled = NounPhrase | PrepositionPhrase | Verb | Word


class Draft(NamedTuple):
    """A sentence pair. Its key is the pattern and the lemmas of its words."""

    source: str
    target: str
    key: tuple[str, ...]

    @property
    def pair(self) -> tuple[str, str]:
        return self.source, self.target


class NoChoiceError(Exception):
    """No word fits a slot of the pattern; another random choice may work."""


class Grammar:
    """Constructs sentence pairs; the same seed and the same calls give the same sentences."""

    def __init__(self, lexicon: Lexicon, constructions: Entry, seed: int):
        self.lexicon = lexicon
        self.constructions = constructions
        self.random = random.Random(seed)
        self.used: Counter[tuple[str, str]] = Counter()

    def draft(self, construction: str) -> Draft:
        """Return a sentence pair of this construction."""
        patterns = self.constructions[construction]["patterns"]
        weighted = [pattern for pattern in patterns for _ in range(pattern["weight"])]
        while True:
            pattern = weighted[int(self.random.random() * len(weighted))]
            try:
                slots = self._fill(pattern)
            except NoChoiceError:
                continue
            source, target = (self._write(pattern, slots, side) for side in ("en", "de"))
            words = [lemma for filled in slots.values() for lemma in filled.lemmas]
            return Draft(source, target, (construction, str(patterns.index(pattern)), *words))

    def _pick(self, items: Sequence[Any], role: str = "", name: str = "en") -> Any:
        """Draw three items and return the item that was used least so far in this role."""
        if not items:
            raise NoChoiceError
        # Only random() is guaranteed to be the same in all Python versions.
        drawn = [items[int(self.random.random() * len(items))] for _ in range(3)]
        if not role:
            return drawn[0]
        best = min(drawn, key=lambda item: self.used[role, str(item[name])])
        self.used[role, str(best[name])] += 1
        return best

    def _fill(self, pattern: Entry) -> dict[str, Filled]:
        """Choose words for all slots of a pattern; NoChoiceError if they do not fit together."""
        slots: dict[str, Filled] = {}
        for name, wish in pattern["slots"].items():
            slots[name] = self._choose(name, wish, slots, pattern)
        genders = [slots[name].noun["gender"] for name in pattern.get("different_gender", [])]
        words = [lemma for filled in slots.values() for lemma in filled.lemmas]
        if len(set(genders)) < len(genders) or len(set(words)) < len(words):
            raise NoChoiceError
        return slots

    def _choose(self, name: str, wish: Entry, slots: dict[str, Filled], pattern: Entry) -> Filled:
        data = self.lexicon.data
        if "noun" in wish:
            case = re.search(rf"\{{{name}:(\w+)", pattern["de"])[1]
            return self._noun_phrase(wish, case, slots, pattern)
        if "verb" in wish:
            verbs = self._verbs(name, wish, pattern)
            return Verb(self._pick(verbs, "verb" + pattern["en"], "de"))
        if "modal" in wish:
            modals = data["modals"]
            if isinstance(wish["modal"], list):
                modals = [modal for modal in modals if modal["en"][0] in wish["modal"]]
            return Verb(self._pick(modals, "modal"))
        if "adjective" in wish:
            phrase = slots[wish["adjective"]]
            fitting = self.lexicon.adjectives_for(phrase.noun, state=wish.get("state", False))
            if "degree" in wish:
                passing = slots[wish["degree"]].entry.get("passing")  # "still"
                fitting = [
                    a for a in fitting if (a.get("passing") if passing else a.get("degree", True))
                ]
            if phrase.adjective:
                fitting = [a for a in fitting if kind(a) != kind(phrase.adjective)]
            return Word(self._pick(fitting, "predicate"))
        if "adverb" in wish:
            return Word(self._pick(self._adverbs(wish["adverb"], slots), "adverb"))
        if "prep" in wish:
            entry = self._pick(data["prepositions"][wish["prep"]], wish["prep"])
            inner = {**wish, "noun": entry["nouns"]}
            phrase = self._noun_phrase(inner, entry["case"], slots, pattern)
            return PrepositionPhrase(entry, phrase, data["contractions"])
        if "phrase" in wish:
            english, german = self._pick(wish["phrase"])
            return Word({"en": english, "de": german})
        if "question" in wish:
            return Word(self._pick(data["question_words"], "question"))
        raise ValueError(f"slot {name!r} has no known kind of word: {wish}")

    def _verbs(self, name: str, wish: Entry, pattern: Entry) -> list[Entry]:
        """Return the verbs whose forms and meaning suit the pattern."""
        verbs = self.lexicon.verbs_of(wish["verb"])
        if f"{{{name}:past" in pattern["en"]:
            verbs = [verb for verb in verbs if verb["en"][2]]
        flags = ["no_perfect"] if f"{{{name}:participle" in pattern["en"] else []
        if "{m:" in pattern["en"]:
            flags.append("no_modal")
        if pattern["en"].startswith("{t}"):
            flags.append("stative")  # no "Today I like her", "In summer I have a bed"
        if pattern["en"].startswith("Who "):
            flags.append("no_pronoun")
        return [verb for verb in verbs if not any(verb.get(flag) for flag in flags)]

    def _adverbs(self, wish: str | list[str], slots: dict[str, Filled]) -> list[Entry]:
        adverbs = self.lexicon.data["adverbs"]
        if isinstance(wish, list):
            return [entry for group in wish for entry in adverbs[group]]
        return [a for a in adverbs["with_verb"] if a["en"] in slots[wish].entry["adverbs"]]

    # Noun phrases

    def _noun_phrase(
        self, wish: Entry, case: str, slots: dict[str, Filled], pattern: Entry
    ) -> NounPhrase:
        verbs = [filled.entry for filled in slots.values() if isinstance(filled, Verb)]
        verb = next((entry for entry in verbs if "subjects" in entry), {})
        of_verb = isinstance(wish["noun"], str)  # "subject of v"
        classes = verb[wish["noun"].split()[0] + "s"] if of_verb else wish["noun"]
        if self.random.random() < wish.get("pronoun", 0):
            if not classes and case == "nom":
                classes = verb.get("subjects", ["people"])
            if case == "nom" and (verb.get("no_pronoun") or not fits_people(classes)):
                raise NoChoiceError
            return self._pronoun(case, verb, slots, pattern)
        return self._full_noun_phrase(wish, self._nouns(classes, wish), case, verb)

    def _pronoun(
        self, case: str, verb: Entry, slots: dict[str, Filled], pattern: Entry
    ) -> NounPhrase:
        if any(isinstance(filled, NounPhrase) and filled.is_pronoun for filled in slots.values()):
            raise NoChoiceError  # no "I see me"
        pronouns = self.lexicon.data["pronouns"]
        if "{v:past" in pattern["en"] and case == "nom":
            # Forms such as "du lasest" and "du aßest" are not used today.
            pronouns = [pronoun for pronoun in pronouns if pronoun["en"] != "you"]
        if case == "nom" and any(speaks_of_self(filled) for filled in slots.values()):
            pronouns = [pronoun for pronoun in pronouns if pronoun["en"] not in ("I", "we")]
        return NounPhrase(self._pick(pronouns, f"{case} {verb.get('de')}"))

    def _nouns(self, classes: list[str], wish: Entry) -> list[Entry]:
        nouns = self.lexicon.nouns_of(classes)
        if "only" in wish:
            allowed = self.lexicon.nouns_of(wish["only"])
            nouns = [noun for noun in nouns if noun in allowed]
        if "without" in wish:
            refused = self.lexicon.nouns_of(wish["without"])
            nouns = [noun for noun in nouns if noun not in refused]
        if wish.get("number", "sg") != "sg":
            nouns = [noun for noun in nouns if "plural" in noun]
        if wish.get("number") == "counted":
            nouns = [noun for noun in nouns if noun["class"] != "kin"]  # no "five daughters"
        return nouns

    def _full_noun_phrase(
        self, wish: Entry, nouns: list[Entry], case: str, verb: Entry
    ) -> NounPhrase:
        number = wish.get("number", "sg")
        plural = number in ("pl", "counted") or (number == "any" and self.random.random() < 0.5)
        noun = self._pick(nouns, f"{case} {'pl' if plural else 'sg'}")
        determiners = self.lexicon.data["determiners"]
        usual = noun.get("dets") or determiners.get(noun["class"], determiners["other"])
        if case == "acc":
            usual = verb.get("object_dets", usual)
        elif plural:
            usual = [det for det in usual if det != "a"]  # "Kings paint" would mean all kings
        wanted = wish.get("det", usual)
        det = self._pick([det for det in wanted if det in usual or det in ALWAYS_FIT])
        phrase = NounPhrase(noun, det, plural)
        if number == "counted":
            phrase.count = self._pick(self.lexicon.data["numbers"], "number")
        if self.random.random() < wish.get("adj", 0):
            role = f"{case} {phrase.column} {det}"
            phrase.adjective = self._pick(self.lexicon.adjectives_for(noun), role)
        return phrase

    # Templates

    def _write(self, pattern: Entry, slots: dict[str, Filled], side: str) -> str:
        """Fill the template of one side, "en" or "de"."""

        def person(name: str | None) -> int:
            return slots[name].person if name in slots else THIRD_SINGULAR

        def form_of(match: re.Match[str]) -> str:
            name, form, subject = match.groups()
            if name not in slots:
                return self.lexicon.data["agreeing"][name][person(form)]
            inflect = slots[name].english if side == "en" else slots[name].german
            return inflect(form or "", person(subject))

        return tidy(FIELD.sub(form_of, pattern[side]))


def fits_people(classes: Sequence[str]) -> bool:
    """Return whether a personal pronoun (I, you, he, ...) may replace nouns of these classes."""
    return any(name in ("people", "person", "kin", "countable") for name in classes)


def kind(adjective: Entry) -> str:
    """Return the kind of an adjective, such as colour; two of one kind contradict each other."""
    return adjective.get("kind", adjective["de"])


def speaks_of_self(filled: Filled) -> bool:
    """Return whether this is "I know", "we think" or similar: "I know that I swim" is odd."""
    return isinstance(filled, Word) and filled.entry["en"].split()[0] in ("I", "we")


def tidy(text: str) -> str:
    """Return the text with single spaces, no space before punctuation, and capitals at the start
    of sentences."""
    text = re.sub(r" +", " ", text).strip()
    text = re.sub(r" ([.?,])", r"\1", text)
    return re.sub(r"(^|[.?] )(\w)", lambda match: match[1] + match[2].upper(), text)
