"""From files to batches."""

from __future__ import annotations

import multiprocessing
from types import SimpleNamespace

import pytest
import torch

from translate.errors import UserError
from translate.text.corpus import ParallelFiles
from translate.training.data import TranslationData


@pytest.fixture
def data(tmp_path):
    """A factory: lines of a corpus to a data module that has read them."""

    def make(lines: list[str], **settings) -> TranslationData:
        path = tmp_path / "train.tsv"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        data = TranslationData(ParallelFiles(tsv=path), vocab_size=200, **settings)
        loop = SimpleNamespace(batch_progress=SimpleNamespace(current=SimpleNamespace(ready=0)))
        data.trainer = SimpleNamespace(
            current_epoch=0, overfit_batches=0, fit_loop=SimpleNamespace(epoch_loop=loop)
        )
        return data

    return make


LINES = [f"sentence number {n}\tSatz Nummer {n}" for n in range(50)]


def test_a_very_long_line_is_left_out_counted_and_makes_no_big_batch(data, capsys):  # T21
    module = data([*LINES, "word " * 5000 + "\tWort"], batch_tokens=300)
    module.setup("fit")
    assert "train: left out 1 of" in capsys.readouterr().err
    for batch in module.train_dataloader():
        assert batch.src.numel() + batch.tgt_in.numel() <= 300


def test_exactly_max_length_with_end_sign_passes(data, capsys):  # T22
    lines = [" ".join("abcdefghij"[:n]) + "\tx" for n in (6, 7, 8, 9)]
    module = data(LINES + lines, max_length=100)
    module.setup("fit")
    longest = max(len(module.tokenizer.encode(line.split("\t")[0])) for line in lines)
    for limit, left_out in ((longest + 1, 0), (longest, 1)):
        module = data(LINES + lines, max_length=limit)
        module.setup("fit")
        said = capsys.readouterr().err
        assert ("left out" in said) == bool(left_out)


def test_nothing_left_to_validate_on_stops_at_once(data, tmp_path):  # T23
    (tmp_path / "valid.tsv").write_text("word " * 300 + "\tWort\n")
    module = data(LINES, valid=ParallelFiles(tsv=tmp_path / "valid.tsv"))
    with pytest.raises(UserError, match="no pairs left: left out 1 of 1 pairs"):
        module.setup("fit")


def test_without_validation_files_a_tenth_is_held_out_and_not_trained_on(data):
    module = data(LINES)
    module.setup("fit")
    held_out = {pair.source for pair in module.valid_pairs}
    assert len(held_out) == 5
    assert len(module._train) == 45
    assert not held_out & {module.tokenizer.decode(item.source) for item in module._train}


def test_blank_references_are_left_out_and_counted(data, capsys):  # M04
    module = data([*LINES, "no translation\t \u00a0"])
    assert len(module.read("train")) == 50
    assert "left out 1 (blank target), first at" in capsys.readouterr().err


def test_no_data_says_what_to_set(data):
    with pytest.raises(UserError, match=r"set data\.test"):
        data(LINES).read("test")


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


def test_hidden_files_are_no_challenge(data, tmp_path):
    folder = tmp_path / "challenge"
    folder.mkdir()
    module = data(LINES, challenge=folder)
    with pytest.raises(UserError, match=r"no \.tsv files"):
        module.challenge_files()
    for name in ("b.tsv", "a.tsv", ".hidden.tsv", "README.md"):
        (folder / name).write_text("a\tb\n")
    assert [path.name for path in module.challenge_files()] == ["a.tsv", "b.tsv"]
