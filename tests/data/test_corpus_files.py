"""The included corpus: reproducible, one translation per sentence, properly held out."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
SPLITS = ("train", "valid", "test")
CHALLENGES = [
    "this_is",
    "gender",
    "accusative",
    "dative",
    "prepositions",
    "adjectives",
    "plurals",
    "agreement",
    "verb_second",
    "verb_final",
    "separable",
    "modals",
    "perfect",
    "negation",
    "questions",
    "pronouns",
]

sys.path.insert(0, str(ROOT / "scripts"))
import build_corpus  # noqa: E402
from corpus_lexicon import Lexicon  # noqa: E402
from corpus_words import NounPhrase, Verb  # noqa: E402

Pair = tuple[str, str]


def lines(path: Path) -> list[str]:
    text = path.read_bytes().decode("utf-8")
    assert text.endswith("\n") and "\r" not in text
    return text[:-1].split("\n")


@cache
def pairs(name: str) -> list[Pair]:
    """The pairs of a split, of a challenge file, or of the everyday sentences."""
    if name in SPLITS:
        return list(
            zip(lines(DATA / f"tiny/{name}.en"), lines(DATA / f"tiny/{name}.de"), strict=True)
        )
    path = DATA / ("everyday.tsv" if name == "everyday" else f"challenge/{name}.tsv")
    rows = [line.split("\t") for line in lines(path)]
    assert all(len(row) == 2 for row in rows), path
    return [(row[0], row[1]) for row in rows]


def fold(text: str) -> str:
    """Independent of the builder's own function, which these tests check."""
    kept = "".join(c if c.isalnum() else " " for c in text.casefold())
    return " ".join(kept.split())


def words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text).split()


@pytest.fixture(scope="session")
def built() -> build_corpus.BuiltCorpus:
    return build_corpus.build()


@pytest.fixture(scope="session")
def keys(built) -> dict[str, tuple[str, ...]]:
    """Pattern and lemmas of every constructed sentence, by its folded source."""
    return {fold(source): key for source, key in built.keys.items()}


@cache
def lexicon() -> Lexicon:
    return Lexicon.load(DATA / "lexicon.yaml")


@pytest.fixture(scope="session")
def train() -> list[Pair]:
    return pairs("train")


@pytest.fixture(scope="session")
def train_words(train) -> list[tuple[Counter[str], Counter[str]]]:
    """For each side, how often each word occurs as written and in any case."""
    texts = [[pair[side] for pair in train] for side in (0, 1)]
    return [
        (
            Counter(word for text in side for word in words(text)),
            Counter(word for text in side for word in words(text.casefold())),
        )
        for side in texts
    ]


HELD_OUT = ("valid", "test", *CHALLENGES)
EVERYTHING = (*SPLITS, *CHALLENGES)


# the build


def test_the_committed_files_are_what_the_builder_builds(built):
    """Python's hash seed differs in each test session, so this also shows that it has no effect."""
    texts = built.files
    assert {name for name in texts if (DATA / name).read_bytes() != texts[name].encode()} == set()


def test_no_other_files_lie_beside_the_built_ones(built):
    found = [path for folder in ("tiny", "challenge") for path in (DATA / folder).iterdir()]
    assert {path.relative_to(DATA).as_posix() for path in found} == set(built.files)


def test_files_are_written_only_without_check(tmp_path, capsys):
    corpus = build_corpus.BuiltCorpus({"tiny/train.en": "One\n"}, {}, {})
    assert build_corpus.save(corpus, tmp_path, check=True) == 1
    assert "tiny/train.en" in capsys.readouterr().err
    assert not (tmp_path / "tiny").exists()
    for check in (False, True):
        assert build_corpus.save(corpus, tmp_path, check=check) == 0
        assert (tmp_path / "tiny/train.en").read_text() == "One\n"


def test_the_readme_states_the_counts(built):
    text = (DATA / "README.md").read_text(encoding="utf-8")
    for name in CHALLENGES:
        assert f"| `{name}` | {built.counts[name]:,} |" in text, (name, built.counts[name])
    for name in ("train", "everyday"):
        assert f" {built.counts[name]:,}" in text
    assert f" {len(pairs('everyday')):,} everyday sentences" in text
    assert f"{built.counts['lemmas']} lemmas" in text


def test_everyday_sentences_are_all_in_train(train):
    known = {(fold(source), fold(target)) for source, target in train}
    assert [p for p in pairs("everyday") if (fold(p[0]), fold(p[1])) not in known] == []


# the mapping


def test_one_english_sentence_has_one_german_sentence():
    meanings: dict[str, set[str]] = {}
    for name in (*EVERYTHING, "everyday"):
        for source, target in pairs(name):
            meanings.setdefault(fold(source), set()).add(fold(target))
    assert {s: t for s, t in meanings.items() if len(t) > 1} == {}


def test_everyday_pairs_occur_twice_and_all_others_once():
    everyday = {(fold(source), fold(target)) for source, target in pairs("everyday")}
    assert len({source for source, _ in everyday}) == len(everyday) == len(pairs("everyday"))
    counts = Counter((fold(s), fold(t)) for name in EVERYTHING for s, t in pairs(name))
    assert {p: n for p, n in counts.items() if n != (2 if p in everyday else 1)} == {}
    assert everyday <= counts.keys()


@pytest.mark.parametrize("name", HELD_OUT)
def test_held_out_sentences_are_not_in_train_on_either_side(name, train):
    sources, targets = ({fold(pair[side]) for pair in train} for side in (0, 1))
    assert [p for p in pairs(name) if fold(p[0]) in sources or fold(p[1]) in targets] == []


@pytest.mark.parametrize("name", HELD_OUT)
def test_every_word_of_held_out_sentences_is_known_from_train(name, train_words):
    for side, (seen, folded) in enumerate(train_words):
        used = {word for pair in pairs(name) for word in words(pair[side])}
        assert {w for w in used if seen[w] < 3 or folded[w.casefold()] < 5} == set()


@pytest.mark.parametrize("name", HELD_OUT)
def test_pattern_and_words_of_a_held_out_sentence_are_not_together_in_train(name, train, keys):
    """The combination is new, also with other articles, persons or numbers."""
    known = {keys[fold(source)] for source, _ in train if fold(source) in keys}
    assert [source for source, _ in pairs(name) if keys[fold(source)] in known] == []


# the example


def test_the_example_must_be_composed(train):
    for name in (*EVERYTHING, "everyday"):
        for source, target in pairs(name):
            assert fold(source) != "this is an example" and fold(target) != "das ist ein beispiel"


def test_the_words_of_the_example_are_well_known(train):
    known = [p for p in train if "example" in words(p[0]) and "Beispiel" in words(p[1])]
    assert len(known) >= 15
    this_is = [p for p in train if re.fullmatch(r"This is an? \w+\.?", p[0])]
    assert len(this_is) >= 50
    assert sum(p[0].startswith("This is an ") for p in train) >= 10
    assert sum(" ein " in p[1] for p in this_is) >= 30


# punctuation and text


@pytest.mark.parametrize("name", [n for n in EVERYTHING if n != "questions"])
def test_one_sentence_in_eight_has_no_final_full_stop(name):
    bare = [source for source, _ in pairs(name) if source[-1].isalnum()]
    assert 0.10 <= len(bare) / len(pairs(name)) <= 0.15


@pytest.mark.parametrize("name", [*EVERYTHING, "everyday"])
def test_final_punctuation_is_the_same_on_both_sides(name):
    def end(text: str) -> str:
        return "" if text[-1].isalnum() else text[-1]

    assert [p for p in pairs(name) if end(p[0]) != end(p[1])] == []


@pytest.mark.parametrize("name", [*EVERYTHING, "everyday"])
def test_text_is_clean(name):
    for source, target in pairs(name):
        for text in (source, target):
            assert text and text == text.strip() and "  " not in text and "\t" not in text
            assert unicodedata.is_normalized("NFC", text)
            assert re.fullmatch(r"[A-Za-zÄÖÜäöüß ,.?!'\-]+", text), text
            assert text[0].isupper()


# the phenomena

MARKS = {
    "this_is": r"^This is .*\tDas ist ",
    "gender": r"\t(Der|Die|Das|Dieser?|Dieses|Meine?|Deine?|Seine?|Unsere?|Ihre?) ",
    "dative": r"\b(dem|der|\w+em|\w+er|mir|dir|ihm|ihr|uns|ihnen)\b",
    "verb_second": (
        r"^(Today|Now|Then|Yesterday|Sometimes|Every day|Last week|On|In|Before|After) "
        r".*\t(?!Der|Die|Das|Ich|Du|Er|Sie|Wir)"
    ),
    "verb_final": r"\t[^,]+, (weil|dass) ",
    "modals": r"\b(can|must|wants? to|may|should|would like to)\b",
    "perfect": r"\b(have|has) .*\t.*\b(habe|hast|hat|haben|bin|bist|ist|sind)\b",
    "negation": r"\b(not|no)\b.*\t.*\b(nicht|kein\w*)\b",
    "questions": r"\?\t.*\?$",
    "pronouns": r"\b([Ii]t|him|her|they|them|he|she|I|you|we)\b",
}


@pytest.mark.parametrize("name", MARKS)
def test_challenge_files_show_their_phenomenon(name):
    rows = ["\t".join(pair) for pair in pairs(name)]
    assert [row for row in rows if not re.search(MARKS[name], row)] == []


def test_pronouns_refer_back_in_every_pair_of_genders(train):
    """Either noun can be meant, for all pairs of genders; no gender is always right."""
    because = re.compile(r" because it .*\t.*, weil (er|sie|es) ")
    for name, least in (("train", 60), ("pronouns", 6)):
        rows = ["\t".join(pair) for pair in pairs(name)]
        found = Counter(match[1] for row in rows if (match := because.search(row)))
        assert min(found[p] for p in ("er", "sie", "es")) >= least, found
    nouns = lexicon().nouns
    gender = {n["de"]: n["gender"] for group in nouns.values() for n in group}
    gender |= {n["plural"]: n["gender"] for n in nouns["animal"] if n.get("weak")}
    seen: Counter[tuple[str, str, str]] = Counter()
    for _, target in [*train, *pairs("pronouns")]:
        clause, weil, reason = target.partition(", weil ")
        nouns = [gender[w] for w in words(clause) if w in gender]
        if weil and len(nouns) == 2 and reason.split()[0] in ("er", "sie", "es"):
            seen[(nouns[0], nouns[1], reason.split()[0])] += 1
    pronoun = {"m": "er", "f": "sie", "n": "es"}
    for first in "mfn":
        for second in "mfn":
            if first != second:
                assert seen[first, second, pronoun[first]] >= 10
                assert seen[first, second, pronoun[second]] >= 10


def test_the_pronoun_sentences_are_made_of_known_words(train):
    english = "The cat chased the ball because it rolled away. The dog was hungry."
    german = "Die Katze jagte den Ball, weil er wegrollte, weil sie hungrig war. Der Hund"
    for side, text in ((0, english), (1, german)):
        seen = Counter(word for pair in train for word in words(pair[side]))
        assert {w: seen[w] for w in words(text) if seen[w] < 10} == {}


# the German


def noun(german: str) -> dict:
    groups = lexicon().data["nouns"].values()
    return next(n for group in groups for n in group if n["de"] == german)


def adjective(german: str) -> dict:
    adjectives = lexicon().data["adjectives"]
    return next(a for a in adjectives if a["de"] == german)


@pytest.mark.parametrize(
    ("german", "det", "plural", "adj", "case", "expected"),
    [
        ("Hund", "the", False, "alt", "nom", "der alte Hund"),
        ("Hund", "a", False, "alt", "nom", "ein alter Hund"),
        ("Hund", "a", False, "alt", "acc", "einen alten Hund"),
        ("Hund", "the", True, "alt", "dat", "den alten Hunden"),
        ("Hund", "a", True, "alt", "acc", "alte Hunde"),
        ("Katze", "my", False, "klein", "dat", "meiner kleinen Katze"),
        ("Pferd", "a", False, "jung", "nom", "ein junges Pferd"),
        ("Pferd", "this", False, "jung", "acc", "dieses junge Pferd"),
        ("Bär", "our", False, "müde", "acc", "unseren müden Bären"),
        ("Junge", "the", False, None, "dat", "dem Jungen"),
        ("Auto", "no", True, "teuer", "nom", "keine teuren Autos"),
        ("Sofa", "the", True, None, "dat", "den Sofas"),
        ("Wasser", "none", False, "kalt", "acc", "kaltes Wasser"),
        ("Saft", "none", False, "kalt", "nom", "kalter Saft"),
    ],
)
def test_noun_phrases(german, det, plural, adj, case, expected):
    phrase = NounPhrase(noun(german), det, plural, adjective(adj) if adj else None)
    assert phrase.german(case) == expected


@pytest.mark.parametrize(
    ("german", "form", "person", "expected"),
    [
        ("lesen", "pres", 1, "liest"),
        ("geben", "pres", 1, "gibst"),
        ("arbeiten", "pres", 1, "arbeitest"),
        ("arbeiten", "past", 3, "arbeiteten"),
        ("tanzen", "pres", 1, "tanzt"),
        ("finden", "pres", 2, "findet"),
        ("vergessen", "pres", 1, "vergisst"),
        ("waschen", "pres", 1, "wäschst"),
        ("ein|laden", "pres", 1, "lädst"),
        ("auf|stehen", "pres_last", 2, "aufsteht"),
        ("auf|stehen", "participle", 0, "aufgestanden"),
        ("weg|rollen", "past_last", 2, "wegrollte"),
        ("an|rufen", "inf", 0, "anrufen"),
        ("bringen", "past", 4, "brachten"),
        ("kaufen", "participle", 0, "gekauft"),
    ],
)
def test_verb_forms(german, form, person, expected):
    groups = lexicon().data["verbs"].values()
    entry = next(v for group in groups for v in group if v["de"] == german)
    assert Verb(entry).german(form, person) == expected


@pytest.mark.parametrize(
    "nonsense",
    [
        r"^(I|We) (know|think) that (I|we) ",
        r"\b(two|three|four|five|six|ten|many) (sisters|brothers|daughters|sons|aunts|uncles)\b",
        r"^(Today|Now|Then|Yesterday|Sometimes|Every day|Last week|In \w+|On \w+) .*\bneeds?\b",
        r"\b(puts? on|takes? off|took off) (my|your|his|her|our)\b",
        r"\bcarr(y|ies|ied) .*\b(ring|coin|key)s?\b",
        r"\bstill (old|heavy|cheap|expensive|big|long)\b",
        r"^(Before|After) the \w+ .*\b(rolled away|fell down)\b",
    ],
)
def test_constructed_sentences_make_sense(nonsense, keys):
    rows = {fold(s): s for name in EVERYTHING for s, _ in pairs(name) if fold(s) in keys}
    assert [s for s in rows.values() if re.search(nonsense, s)] == []


def test_no_noun_has_two_adjectives_of_one_kind():
    adjectives = lexicon().data["adjectives"]
    kinds = {a["en"]: a.get("kind", a["en"]) for a in adjectives}
    said = re.compile(r"(\w+) (?:\w+|alarm clocks?)(?: are|\. It is)(?: not)? (\w+)\.?$")
    found = [m.groups() for name in EVERYTHING for s, _ in pairs(name) if (m := said.search(s))]
    both = [(a, b) for a, b in found if a in kinds and b in kinds]
    assert len(both) > 50
    assert [(a, b) for a, b in both if kinds[a] == kinds[b]] == []


def test_german_contracts_prepositions_and_articles():
    targets = [target for name in EVERYTHING for _, target in pairs(name)]
    loose = re.compile(r"\b(in dem|in das|an dem|an das|zu dem|zu der|von dem)\b")
    assert [t for t in targets if loose.search(t)] == []
    seen = {word for target in targets for word in words(target)}
    assert {"im", "ins", "am", "zum", "zur", "vom"} <= seen
