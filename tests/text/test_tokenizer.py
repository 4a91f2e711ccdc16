"""Pieces: small corpora, rare letters, text that looks like control symbols, foreign models."""

from __future__ import annotations

import io
import pickle

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from translate.errors import UserError
from translate.text.normalize import normalize
from translate.text.tokenizer import Tokenizer

THREE_PAIRS = [
    "This is an example",
    "Das ist ein Beispiel",
    "The cat sleeps.",
    "Die Katze schläft.",
    "A dog barks.",
    "Ein Hund bellt.",
]
ALPHABET = sorted({character for text in THREE_PAIRS for character in text})


def train(sentences, vocab_size: int = 200, **settings) -> Tokenizer:
    return Tokenizer.train(sentences, vocab_size=vocab_size, **settings)[0]


def foreign(**settings) -> bytes:
    """A model as SentencePiece itself would train it."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(THREE_PAIRS),
        model_writer=model,
        vocab_size=100,
        hard_vocab_limit=False,
        minloglevel=3,
        **settings,
    )
    return model.getvalue()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train(THREE_PAIRS)


def refusal(*arguments, **settings) -> str:
    with pytest.raises(UserError) as caught:
        Tokenizer.train(*arguments, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Training


def test_the_special_pieces_have_the_four_first_ids(tokenizer):  # S03
    ids = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
    assert ids == (0, 1, 2, 3)


def test_three_pairs_get_a_smaller_vocabulary_with_a_note():  # S01
    tokenizer, notes = Tokenizer.train(THREE_PAIRS, vocab_size=2000)
    assert len(tokenizer) < 2000
    assert notes == [f"vocabulary 2000 reduced to {len(tokenizer)}: the corpus supports no more"]
    # Whole words all the same.
    assert [tokenizer.piece(index) for index in tokenizer.encode("Das ist ein Beispiel")] == [
        "▁Das",
        "▁ist",
        "▁ein",
        "▁Beispiel",
    ]


def test_the_sizes_that_fit_are_those_asked_for():
    smallest = len(ALPHABET) + 4  # the space counts: it is the word start
    for size in (smallest, smallest + 1, smallest + 9):
        tokenizer, notes = Tokenizer.train(THREE_PAIRS, vocab_size=size)
        assert (len(tokenizer), notes) == (size, [])


@pytest.mark.parametrize("size", [-1, 0, 8, len(ALPHABET) + 3])
def test_a_vocabulary_too_small_is_refused_with_the_smallest_that_works(size):  # S02
    message = refusal(THREE_PAIRS, vocab_size=size)
    assert f"vocab_size {size} " in message
    assert f"at least {len(ALPHABET) + 4}" in message


@pytest.mark.parametrize("sentences", [[], ["", " \u200b", "\t"]])
def test_no_text_at_all_is_refused(sentences):  # S12
    assert "every sentence is blank" in refusal(sentences, vocab_size=100)


def test_over_long_lines_alone_are_refused_with_their_number_and_the_limit():  # S12
    message = refusal(["ab " * 3000] * 2, vocab_size=100)
    assert "all 2 lines" in message
    assert "4,192" in message


def test_over_long_lines_are_counted_and_the_limit_is_settable():  # S13
    texts = [*THREE_PAIRS, "ab " * 3000, "xy " * 2000]
    notes = Tokenizer.train(texts, vocab_size=50)[1]
    assert notes == ["tokenizer: 2 lines longer than 4,192 bytes not used"]
    tokenizer, notes = Tokenizer.train(texts, vocab_size=50, max_bytes=9000)
    assert notes == []
    assert tokenizer.unk_id not in tokenizer.encode("ab xy")


def test_a_line_of_exactly_the_limit_is_trained_on():  # S13
    tokenizer, notes = Tokenizer.train(["ö" * 10, "a"], vocab_size=9, max_bytes=20)
    assert notes == []
    assert tokenizer.unk_id not in tokenizer.encode("ö")
    assert max(len(tokenizer.piece(i)) for i in range(4, len(tokenizer))) > 1
    assert Tokenizer.train(["ö" * 10, "a"], vocab_size=6, max_bytes=19)[1] != []


def test_a_sample_is_drawn_from_both_languages_and_loses_no_character():  # S15
    texts = [f"english {n}" for n in range(1000)] + [f"größer {n}" for n in range(1000)]
    tokenizer, notes = Tokenizer.train([*texts, "ẞ"], vocab_size=60, max_sentences=100)
    assert notes == ["tokenizer: trained on 100 random lines of 2,001"]
    assert {"▁english", "▁größer"} <= {tokenizer.piece(i) for i in range(len(tokenizer))}
    assert tokenizer.decode(tokenizer.encode("größer ẞ")) == "größer ẞ"


def test_the_same_text_gives_the_same_model_whatever_the_global_random_state():
    assert train(iter(THREE_PAIRS)).to_bytes() == train(THREE_PAIRS).to_bytes()
    assert train(THREE_PAIRS).fingerprint() != train(THREE_PAIRS[:4]).fingerprint()


def test_training_and_refusing_say_nothing_on_the_terminal(capfd):
    train(THREE_PAIRS, 2000)
    refusal(THREE_PAIRS, vocab_size=8)
    with pytest.raises(UserError):
        Tokenizer(b"no model")
    assert capfd.readouterr() == ("", "")


# Encoding and decoding


@given(st.text(st.sampled_from(ALPHABET)))
def test_text_over_the_training_alphabet_comes_back_normalised(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == normalize(text)


@given(st.text())
def test_no_text_encodes_to_a_control_id_or_shows_a_word_start_mark(tokenizer, text):
    ids = tokenizer.encode(text)
    assert not {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id} & set(ids)
    assert "▁" not in tokenizer.decode(ids)


@given(st.lists(st.integers(0, 60)))
def test_any_ids_decode_without_control_pieces_or_word_start_marks(tokenizer, ids):
    text = tokenizer.decode(ids)
    assert not any(sign in text for sign in ("▁", "<pad>", "<s>", "</s>", "<unk>"))
    real = [index for index in ids if index not in (0, 2, 3)]
    assert text == tokenizer.decode(real)


def test_rare_umlauts_survive_the_round_trip():  # S04
    texts = ["the quick brown fox jumps over the lazy dog"] * 460
    texts[7:7] = ["Ärger", "Öl", "Übung", "Fuß"]
    tokenizer = train(texts, 60)
    for text in ("Ärger Öl Übung Fuß", "ÄÖÜß"):
        ids = tokenizer.encode(text)
        assert tokenizer.unk_id not in ids
        assert tokenizer.decode(ids) == text


def test_decomposed_umlauts_are_the_pieces_of_composed_ones(tokenizer):
    assert tokenizer.encode("schla\u0308ft") == tokenizer.encode("schläft")


@pytest.mark.parametrize("invisible", ["\u00ad", "\u200b", "\ufeff"])
def test_an_invisible_character_in_corpus_or_source_changes_nothing(tokenizer, invisible):
    source = f"{invisible}Die Kat{invisible}ze schläft{invisible}"
    assert tokenizer.encode(source) == tokenizer.encode("Die Katze schläft")
    plain = [f"Die Katze schläft {n}" for n in range(9)]
    dotted = [text.replace("tz", f"t{invisible}z") for text in plain]
    models = [Tokenizer.train(texts, vocab_size=60)[0] for texts in (plain, dotted)]
    assert models[0].fingerprint() == models[1].fingerprint()


@pytest.mark.parametrize("space", [" ", "\u00a0", "\u202f"])
def test_a_number_and_its_word_keep_their_space(space):  # S08
    text = f"am 25.{space}September"
    tokenizer = train([text, "an 3. Mai"])
    assert tokenizer.decode(tokenizer.encode(text)) == "am 25. September"


def test_compatibility_signs_are_encoded_as_themselves():  # S07
    tokenizer = train(["½ m² … ™"])
    assert tokenizer.decode(tokenizer.encode("½ m² … ™")) == "½ m² … ™"


def test_typed_control_symbols_are_plain_text_even_if_the_corpus_is_full_of_them():  # S09
    text = "say </s> and <pad> or <unk><s>"
    tokenizer = train([text, "</s>", "<pad>"] * 50)
    ids = tokenizer.encode(text)
    assert not {0, 1, 2, 3} & set(ids)
    assert tokenizer.decode(ids) == text


def test_an_unknown_character_decodes_to_the_documented_mark(tokenizer):  # S17
    assert tokenizer.decode(tokenizer.encode("Ein 😀 Hund")) == "Ein ⁇ Hund"


def test_a_typed_word_start_mark_is_a_space(tokenizer):
    assert tokenizer.encode("Ein▁Hund") == tokenizer.encode("Ein Hund")
    assert tokenizer.encode("▁") == []


def test_a_line_with_the_librarys_own_mark_still_trains():
    tokenizer = train(["ab ▅ cd"])
    assert tokenizer.decode(tokenizer.encode("ab ▅ cd")) == "ab ⁇ cd"


def test_an_undecodable_byte_of_a_command_line_is_an_unknown_character(tokenizer):
    assert tokenizer.encode("Ein \udcfc") == [
        *tokenizer.encode("Ein "),
        *tokenizer.encode("\ufffd"),
    ]


# Models on disk


def test_a_tokenizer_comes_back_from_bytes_file_and_pickle(tokenizer, tmp_path):  # T20
    (tmp_path / "a b.model").write_bytes(tokenizer.to_bytes())
    copies = [
        Tokenizer(tokenizer.to_bytes()),
        Tokenizer.load(tmp_path / "a b.model"),
        pickle.loads(pickle.dumps(tokenizer)),
    ]
    for copy in copies:
        assert copy.fingerprint() == tokenizer.fingerprint()
        assert copy.encode("Das ist") == tokenizer.encode("Das ist")


def test_a_foreign_model_without_pad_is_refused(tmp_path):  # S03
    (tmp_path / "own.model").write_bytes(foreign())
    with pytest.raises(UserError, match=r"own\.model.*no pad_id"):
        Tokenizer.load(tmp_path / "own.model")


def test_a_foreign_model_keeps_its_own_ids():  # A22
    tokenizer = Tokenizer(foreign(pad_id=3, unk_id=0, bos_id=1, eos_id=2))
    ids = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
    assert ids == (3, 0, 1, 2)
    assert tokenizer.decode([3, 1, *tokenizer.encode("Das"), 2, 3]) == "Das"


@pytest.mark.parametrize("data", [b"", b"no model", b"\0" * 100])
def test_what_is_no_model_is_refused_in_one_line(data, tmp_path):
    (tmp_path / "x.model").write_bytes(data)
    with pytest.raises(UserError, match=r"x\.model: "):
        Tokenizer.load(tmp_path / "x.model")


def test_a_missing_model_is_named_in_full(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=str(tmp_path / "no.model")):
        Tokenizer.load("no.model")


def test_characters_that_become_unk_are_named_once_each_in_order():
    tokenizer, _ = Tokenizer.train(["a cat", "eine Katze"], vocab_size=40)
    assert tokenizer.unknown("a 20 cat 2日") == ["2", "0", "日"]
    assert tokenizer.unknown("a cat") == tokenizer.unknown("") == []
