"""From files to batches."""

from __future__ import annotations

import multiprocessing
from types import SimpleNamespace

import pytest
import torch

from translate.errors import UsageError, UserError
from translate.text.corpus import ParallelFiles
from translate.training.data import TranslationData


@pytest.fixture(autouse=True)
def info(caplog) -> None:
    caplog.set_level("INFO", "translate")


@pytest.fixture
def data(tmp_path):
    """Return a function that makes a data module from the lines of a corpus."""

    def make(lines: list[str], **settings) -> TranslationData:
        path = tmp_path / "train.tsv"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        data = TranslationData(ParallelFiles(tsv=path), vocab_size=200, **settings)
        data.trainer = SimpleNamespace(current_epoch=0, overfit_batches=0)
        return data

    return make


@pytest.fixture
def valid(tmp_path) -> ParallelFiles:
    (tmp_path / "valid.tsv").write_text("A new one.\tEin neuer.\n", encoding="utf-8")
    return ParallelFiles(tsv=tmp_path / "valid.tsv")


LINES = [f"sentence number {n}\tSatz Nummer {n}" for n in range(50)]


def test_a_very_long_line_is_left_out_counted_and_makes_no_big_batch(data, valid, caplog):  # T21
    long = "word " * 5000
    module = data([*LINES, f"{long}\t{long}x"], batch_tokens=300, valid=valid)
    module.setup("fit")
    (said,) = (line for line in caplog.messages if "pairs longer than" in line)
    assert said.startswith("data.train: left out 1 of 51 pairs longer than max_length 256 (pieces")
    assert "the first with 20,001 and 20,003 pieces: " in said
    assert "/train.tsv:51: 'word word " in said
    for batch in module.train_dataloader():
        assert batch.src.numel() + batch.tgt_in.numel() <= 300


@pytest.mark.parametrize(("batch_tokens", "count"), [(1, 1), (300, 0)])
def test_batches_of_a_single_pair_are_a_warning(data, valid, caplog, batch_tokens, count):
    data(LINES, batch_tokens=batch_tokens, valid=valid).setup("fit")
    warning = f"data.batch_tokens {batch_tokens} is so small that every batch holds a single pair"
    assert sum(warning in message for message in caplog.messages) == count


def test_warnings_of_check_are_logged_before_training(data, tmp_path, caplog):  # D13
    (tmp_path / "valid.tsv").write_text("Sentence  NUMBER 3\tNeu\nno.\tn\u2028\n", encoding="utf-8")
    valid = ParallelFiles(tsv=tmp_path / "valid.tsv")
    data(["</s> Go.\tJa.", *LINES], valid=valid).setup("fit")
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    places = [warning.removeprefix(f"{tmp_path}/").split(": ")[0] for warning in warnings]
    assert places == ["train.tsv:1", "valid.tsv:2", "valid.tsv:1", "valid.tsv:1"]
    assert "'Sentence  NUMBER 3'" in warnings[2]  # its source is also in train
    assert "characters that train does not have" in warnings[3]


def test_exactly_max_length_with_eos_passes(data, caplog):  # T22
    lines = [" ".join("abcdefghij"[:n]) + "\tx" for n in (6, 7, 8, 9)]
    module = data(LINES + lines, max_length=100)
    module.setup("fit")
    longest = max(len(module.trained_tokenizer.encode(line.split("\t")[0])) for line in lines)
    for limit, left_out in ((longest + 1, 0), (longest, 1)):
        module = data(LINES + lines, max_length=limit)
        module.setup("fit")
        assert ("left out" in caplog.text) == bool(left_out)
        caplog.clear()


def test_nothing_left_to_validate_on_stops_at_once(data, tmp_path):  # T23
    (tmp_path / "valid.tsv").write_text("word " * 300 + "\tWort\n")
    module = data(LINES, valid=ParallelFiles(tsv=tmp_path / "valid.tsv"))
    with pytest.raises(UserError, match=r"no pairs left: data\.valid: left out 1 of 1 pairs"):
        module.setup("fit")


def test_without_other_files_a_tenth_each_is_held_out_and_not_trained_on(data, caplog):  # D13
    module = data(LINES)
    module.setup("fit")
    valid = {pair.source for pair in module.valid_pairs}
    train = {module.trained_tokenizer.decode(example.source) for example in module.train_examples}
    test = {pair.source for pair in data(LINES).read("test")}
    assert (len(train), len(valid), len(test)) == (40, 5, 5)
    assert len(train | valid | test) == 50
    assert caplog.messages[:2] == [
        "data.valid is not set: held out 5 pairs of data.train (seed 0)",
        "data.test is not set: held out 5 pairs of data.train (seed 0)",
    ]


@pytest.mark.parametrize("given", ["valid", "test"])
def test_nothing_is_held_out_for_files_that_are_there(data, valid, given):
    module = data(LINES, **{given: valid})
    module.setup("fit")
    assert len(module.train_examples) == {"valid": 50, "test": 45}[given]
    assert [pair.source for pair in module.read(given)] == ["A new one."]


@pytest.mark.parametrize("count", [2, 9])
def test_few_pairs_are_left_to_train_on_and_not_held_out_for_testing(data, count):  # D14
    module = data(LINES[:count])
    module.setup("fit")
    assert (len(module.train_examples), len(module.valid_examples)) == (count - 1, 1)
    with pytest.raises(UsageError, match=r"no data to read: set data\.test"):
        module.read("test")


def test_blank_references_are_left_out_and_counted(data, tmp_path, caplog):  # M04
    (tmp_path / "test.tsv").write_text("a\tb\nno translation\t \u00a0\n", encoding="utf-8")
    module = data(LINES, test=ParallelFiles(tsv=tmp_path / "test.tsv"))
    assert len(module.read("test")) == 1
    assert caplog.messages == [
        f"data.test: left out 1 (blank target), first at {tmp_path}/test.tsv:2: "
        "'no translation' / ' \\xa0'"
    ]


FAULTY = ["This is no German text.\tThis is no German text.", "Yes.\t" + "Nein. " * 20, LINES[0]]


def test_training_pairs_are_filtered_and_each_reason_is_told_in_a_line(data, valid, caplog):
    module = data([*LINES, *FAULTY], valid=valid)
    module.setup("fit")
    path = module.files["train"].tsv
    assert len(module.train_examples) == 50
    assert caplog.messages[:3] == [
        "data.train: left out 1 (a copy of the source, more than 3 words), "
        f"first at {path}:51: 'This is no German text.' / 'This is no German text.'",
        "data.train: left out 1 (one side more than 4 times as long), "
        f"first at {path}:52: 'Yes.' / 'Nein. Nein. Nein. Nein. Nein. Nein. Nein. Nein. N…'",
        f"data.train: left out 1 (exact duplicates), first at {path}:53: "
        "'sentence number 0' / 'Satz Nummer 0'",
    ]


def test_pairs_to_validate_and_test_on_are_not_filtered(data, tmp_path, caplog):
    (tmp_path / "odd.tsv").write_text("".join(f"{line}\n" for line in [*FAULTY, LINES[0]]))
    odd = ParallelFiles(tsv=tmp_path / "odd.tsv")
    module = data(LINES, valid=odd, test=odd)
    module.setup("fit")
    assert len(module.valid_examples) == len(module.read("test")) == 4
    assert "left out" not in caplog.text


def test_sources_of_several_forms_are_one_corpus(data, valid, tmp_path):
    (tmp_path / "more.jsonl").write_text('{"en": "More.", "de": "Mehr."}\n')
    module = data(LINES, valid=valid)
    module.files["train"] = [module.files["train"], ParallelFiles(jsonl=tmp_path / "more.jsonl")]
    module.setup("fit")
    assert len(module.train_examples) == 51


def test_the_tokenizer_is_trained_on_a_file_whose_name_has_space_and_comma(tmp_path):  # S11
    path = tmp_path / "my data, v1" / "train.tsv"
    path.parent.mkdir()
    path.write_text("".join(f"{line}\n" for line in LINES))
    module = TranslationData(ParallelFiles(tsv=path), vocab_size=200)
    module.setup("fit")
    assert not module.trained_tokenizer.unknown("Satz Nummer 7 sentence number 9")


def test_no_data_says_what_to_set(data, valid):
    with pytest.raises(UserError, match=r"set data\.test"):
        data(LINES, valid=valid).read("test")


def test_spawned_persistent_workers_give_the_batches_of_none_in_every_epoch(data, monkeypatch):
    # T19 T20
    alone, spawned = data(LINES, batch_tokens=300), data(LINES, batch_tokens=300, num_workers=1)
    method = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("spawn", force=True)
    try:
        for module in (alone, spawned):
            module.setup("fit")
        loaders = [module.train_dataloader() for module in (alone, spawned)]
        for epoch in (0, 1):
            for module in (alone, spawned):
                module.train_sampler.set_epoch(epoch)
            for expected, batch in zip(*loaders, strict=True):
                assert torch.equal(batch.src, expected.src)
                assert torch.equal(batch.tgt_out, expected.tgt_out)
    finally:
        multiprocessing.set_start_method(method, force=True)


def test_hidden_files_are_no_challenge(data, tmp_path):  # D09
    folder = tmp_path / "challenge"
    folder.mkdir()
    module = data(LINES, challenge=folder)
    with pytest.raises(UserError, match=r"no \.tsv files"):
        module.challenge_files()
    for name in ("b.tsv", "a.tsv", "._a.tsv", ".DS_Store", "README.md"):
        (folder / name).write_text("a\tb\n")
    assert [path.name for path in module.challenge_files()] == ["a.tsv", "b.tsv"]
