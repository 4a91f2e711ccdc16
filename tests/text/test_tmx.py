"""Translation memories: units to pairs, languages by code, nothing expanded, nothing fetched."""

from __future__ import annotations

import gzip

import pytest

from translate.errors import UserError
from translate.text.corpus import Corpus, Pair, ParallelFiles
from translate.text.tmx import MAX_VARIANTS

XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def unit(**variants: str) -> str:
    """A unit on a line of its own; "en_US" stands for the code en-US."""
    inner = "".join(
        f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>'
        for code, text in variants.items()
    )
    return f"<tu>{inner}</tu>\n"


def memory(*units: str, head: str = "") -> str:
    return f'{XML}{head}<tmx version="1.4"><header/><body>\n{"".join(units)}</body></tmx>\n'


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Read a memory from a file of the working directory."""
    monkeypatch.chdir(tmp_path)

    def _read(content: str | bytes, **settings) -> Corpus:
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / "a.tmx").write_bytes(data)
        return ParallelFiles(tmx="a.tmx", **settings).read("data.train")

    return _read


def test_each_unit_is_a_pair_with_its_line(read):
    corpus = read(memory(unit(en="One", de="Eins"), unit(de="Zwei", en="Two")))
    assert corpus.pairs == [Pair("One", "Eins"), Pair("Two", "Zwei")]
    assert [corpus.place(0), corpus.place(1)] == ["a.tmx:3", "a.tmx:4"]
    assert corpus.left_out == []


@pytest.mark.parametrize("code", ["en", "EN", "en-US", "EN-gb", "en_AU"])
def test_a_language_means_its_regions_too(read, code):
    text = memory(unit(XX="One", de="Eins")).replace("XX", code)
    assert read(text).pairs == [Pair("One", "Eins")]


def test_a_region_means_itself_alone_and_no_language_means_another(read):
    units = memory(unit(en_US="color", en_GB="colour", eng="x", de="Farbe", de_AT="Farb'"))
    assert read(units, languages=("en-gb", "de-AT")).pairs == [Pair("colour", "Farb'")]


def test_no_variant_is_lost(read):
    corpus = read(memory(unit(en_US="color", en_GB="colour", de="Farbe")))
    assert corpus.pairs == [Pair("color", "Farbe"), Pair("colour", "Farbe")]


def test_a_unit_without_one_of_the_languages_is_left_out_and_counted(read):
    corpus = read(memory(unit(en="One", fr="Un"), unit(en="Two", de="Zwei"), unit(fr="Trois")))
    assert corpus.pairs == [Pair("Two", "Zwei")]
    assert [str(entry) for entry in corpus.left_out] == [
        "left out 1 (no de in the unit), first at a.tmx:3: 'en' / 'fr'",
        "left out 1 (no en and no de in the unit), first at a.tmx:5: 'fr'",
    ]


def test_an_empty_segment_is_blank(read):  # D03
    corpus = read(memory(unit(en="One", de=""), unit(en="Two", de="Zwei")))
    assert corpus.pairs == [Pair("Two", "Zwei")]
    assert [(entry.kind, entry.count) for entry in corpus.left_out] == [("blank-target", 1)]


@pytest.mark.parametrize("inside", ["", "Eins", "<s>Eins</s>"])
def test_a_variant_without_a_segment_is_named_with_its_line(read, inside):  # N24
    missing = unit(en="One", de="X").replace("<seg>X</seg>", inside)
    corpus = read(memory(unit(en="Two", de="Zwei"), missing))
    assert corpus.pairs == [Pair("Two", "Zwei")]
    (entry,) = corpus.left_out
    assert str(entry).startswith("left out 1 (no <seg> in a <tuv>), first at a.tmx:4: ")
    assert "<seg>" in entry.todo


def test_a_unit_with_very_many_variants_is_left_out(read):  # F05
    variant = "<tuv lang='en'><seg>1</seg></tuv>"
    many = unit(en="1", de="2").replace("</tu>", variant * MAX_VARIANTS + "</tu>")
    corpus = read(memory(many, unit(en="1", de="2")))
    assert corpus.pairs == [Pair("1", "2")]
    assert corpus.left_out[0].kind == "many-variants"


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_elements_within_elements_without_end_are_refused(read, depth):  # F05
    deep = "<hi>" * depth + "x" + "</hi>" * depth
    with pytest.raises(UserError, match=r"a\.tmx:3: not well-formed XML") as caught:
        read(memory(unit(en=deep, de="Eins")))
    assert len(str(caught.value)) < 300


def test_mark_up_is_taken_out_and_highlighted_text_stays(read):
    text = '<bpt i="1">&lt;b&gt;</bpt>Bold<ept i="1">&lt;/b&gt;</ept> '
    text += "<hi>a<hi>n</hi></hi>d &amp; &#228;"
    text += '<!-- note --><ph x="1">{0}</ph>.'
    assert read(memory(unit(en=text, de="Fett"))).pairs == [Pair("Bold and & ä.", "Fett")]


def test_the_old_attribute_and_a_namespace_are_understood(read):
    text = memory(unit(en="One", de="Eins"))
    assert read(text.replace("xml:lang", "lang")).pairs == [Pair("One", "Eins")]
    assert read(text.replace("<tmx", '<tmx xmlns="http://example.org/tmx"')).pairs == [
        Pair("One", "Eins")
    ]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "ISO-8859-1"])
def test_xml_says_its_own_encoding(read, encoding):  # D07
    text = memory(unit(en="green", de="grün")).replace("UTF-8", encoding)
    assert read(text.encode(encoding)).pairs == [Pair("green", "grün")]
    assert read(gzip.compress(text.encode(encoding))).pairs == [Pair("green", "grün")]


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    ("entity", "head"),
    [
        ("&own;", '<!DOCTYPE tmx [<!ENTITY own "expanded">]>\n'),
        ("&file;", '<!DOCTYPE tmx [<!ENTITY file SYSTEM "secret.txt">]>\n'),
        ("&more;", '<!DOCTYPE tmx [<!ENTITY % dtd SYSTEM "more.dtd">%dtd;]>\n'),
        ("&more;", '<!DOCTYPE tmx SYSTEM "more.dtd">\n'),
    ],
)
def test_an_entity_is_never_expanded_and_its_unit_left_out(read, tmp_path, entity, head):
    (tmp_path / "secret.txt").write_text("expanded")
    (tmp_path / "more.dtd").write_text('<!ENTITY more "expanded">')
    corpus = read(memory(unit(en="One", de=f"x{entity}"), unit(en="Two", de="Zwei"), head=head))
    assert corpus.pairs == [Pair("Two", "Zwei")]
    assert [str(entry) for entry in corpus.left_out] == [
        f"left out 1 (an entity that is not expanded), first at a.tmx:4: 'One' / 'x{entity}'"
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("One\tEins\n", 1),
        (memory(unit(en="One", de="Eins"), unit(en="A & B", de="A")), 4),
        (memory(unit(en="One", de="&uuml;")), 3),
        (memory(unit(en="One", de="Eins")).removesuffix("</body></tmx>\n"), 4),
        (memory(unit(en="One\0", de="Eins")), 3),
        (memory(unit(en="One", de="grün")).encode("latin-1"), 3),
        (memory(unit(en="&e9;", de="x"), head=f'<!DOCTYPE tmx [<!ENTITY e0 "e">{BOMB}]>\n'), None),
    ],
)
def test_what_is_no_xml_is_refused_with_its_line(read, text, line):  # D07 S14
    with pytest.raises(UserError) as caught:
        read(text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("a.tmx:" if line is None else f"a.tmx:{line}: not well-formed XML: ")


def test_a_file_with_no_pair_of_the_languages_says_what_it_has(read):
    with pytest.raises(UserError) as caught:
        read(memory(unit(en="One", fr="Un")))
    assert str(caught.value) == (
        "no sentence pairs in data.train: left out 1 (no de in the unit), "
        "first at a.tmx:3: 'en' / 'fr'"
    )


def test_lines_are_right_beyond_what_16_bits_hold(read):
    corpus = read(memory(*["\n"] * 70_000, unit(en="One", de="Eins")))
    assert corpus.place(0) == "a.tmx:70003"
