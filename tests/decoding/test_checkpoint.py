"""Checkpoints: which files are read, which are refused, and which file a folder stands for."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import pickle
import re
import shutil
import threading
import zipfile
from dataclasses import asdict
from pathlib import Path
from random import Random

import pytest
import torch

from translate.decoding.checkpoint import (
    check_undamaged,
    checkpoint_entry,
    load_checkpoint,
)
from translate.decoding.find_model import find_model, finished_models, load_model
from translate.decoding.translator import Translator
from translate.errors import UserError
from translate.model.transformer import TransformerConfig
from translate.text.tokenizer import Tokenizer


@pytest.fixture
def saved(checkpoint, tmp_path):
    """Save a copy of the checkpoint that the function `change` has changed."""

    def save(change) -> Path:
        changed = copy.deepcopy(checkpoint)
        change(changed)
        path = tmp_path / "changed.ckpt"
        torch.save(changed, path)
        return path

    return save


# C01, C09
def test_a_checkpoint_alone_is_enough(checkpoint_file, translator, pairs):
    bundle = load_checkpoint(checkpoint_file)
    assert not bundle.model.training
    assert bundle.model.config == translator.model.config
    assert bundle.tokenizer.to_bytes() == translator.tokenizer.to_bytes()
    assert Translator.load(checkpoint_file).translate([pairs[0].source]) == [pairs[0].target]
    assert asdict(bundle.model.config) == torch.load(checkpoint_file)["translate"]["config"]


# C02
def test_a_pickle_that_would_run_code_is_refused_and_does_not_run(tmp_path, checkpoint):
    victim = tmp_path / "created"

    class Malicious:
        def __reduce__(self):
            return (os.mkdir, (str(victim),))

    for name, write in {"plain": pickle_to, "torch": torch.save}.items():
        path = tmp_path / f"{name}.ckpt"
        write({**checkpoint, "callbacks": Malicious()}, path)
        with pytest.raises(UserError, match="nothing in it was executed"):
            load_checkpoint(path)
    assert not victim.exists()


def pickle_to(value, path: Path) -> None:
    path.write_bytes(pickle.dumps(value))


# C04
def test_weights_are_put_on_the_cpu_and_never_unpickled_freely(checkpoint_file, monkeypatch):
    calls = []
    load = torch.load
    monkeypatch.setattr(torch, "load", lambda *a, **k: (calls.append(k), load(*a, **k))[1])
    load_checkpoint(checkpoint_file)
    assert calls == [{"map_location": "cpu", "weights_only": True}]


# C05
@pytest.mark.parametrize("renamed", ["model._orig_mod.", "_orig_mod.model.", "module.model."])
def test_names_from_compile_and_data_parallel_wrappers_are_read(saved, renamed):
    def rename(checkpoint):
        checkpoint["state_dict"] = {
            name.replace("model.", renamed, 1): tensor
            for name, tensor in checkpoint["state_dict"].items()
        }

    load_checkpoint(saved(rename))


# How names of weights looked in format 1.
FORMAT_1 = {
    "encoder.0.self_attention.sublayer.W_key.weight": "encoder.0.attention.W_key.weight",
    "encoder.0.self_attention.norm.bias": "encoder.0.attention_residual.norm.bias",
    "encoder.1.feed_forward.sublayer.0.bias": "encoder.1.feed_forward.0.bias",
    "encoder.1.feed_forward.norm.weight": "encoder.1.feed_forward_residual.norm.weight",
    "decoder.0.self_attention.sublayer.out_proj.bias": "decoder.0.self_attention.out_proj.bias",
    "decoder.0.self_attention.norm.weight": "decoder.0.self_residual.norm.weight",
    "decoder.1.cross_attention.sublayer.W_query.weight": "decoder.1.cross_attention.W_query.weight",
    "decoder.1.cross_attention.norm.weight": "decoder.1.cross_residual.norm.weight",
    "decoder.1.feed_forward.sublayer.2.weight": "decoder.1.feed_forward.2.weight",
    "decoder.1.feed_forward.norm.bias": "decoder.1.feed_forward_residual.norm.bias",
    "decoder_norm.weight": "decoder_norm.weight",
}


def to_format_1(checkpoint: dict) -> None:
    """Give every weight its old name."""
    old = {}
    for name, tensor in checkpoint["state_dict"].items():
        name = name.replace(".sublayer.", ".")
        if name.startswith("model.encoder."):
            name = name.replace(".self_attention.norm.", ".attention_residual.norm.")
            name = name.replace(".self_attention.", ".attention.")
        name = name.replace("_attention.norm.", "_residual.norm.")
        old[name.replace(".feed_forward.norm.", ".feed_forward_residual.norm.")] = tensor
    checkpoint["state_dict"] = old
    checkpoint["translate"]["format"] = 1


def test_a_checkpoint_of_format_1_is_the_same_model(saved, checkpoint_file):
    def change(checkpoint):
        new = {name: checkpoint["state_dict"][f"model.{name}"] for name in FORMAT_1}
        to_format_1(checkpoint)
        for name, tensor in new.items():
            assert checkpoint["state_dict"][f"model.{FORMAT_1[name]}"] is tensor

    old, new = load_checkpoint(saved(change)).model, load_checkpoint(checkpoint_file).model
    for name, tensor in new.state_dict().items():
        assert torch.equal(old.state_dict()[name], tensor)


# C06
def test_missing_extra_and_misshapen_weights_are_named(saved):
    with pytest.raises(
        UserError, match=r"missing model\.encoder\.0\.self_attention\.sublayer\.W_key\.weight"
    ):
        load_checkpoint(
            saved(
                lambda c: c["state_dict"].pop(
                    "model.encoder.0.self_attention.sublayer.W_key.weight"
                )
            )
        )
    with pytest.raises(UserError, match=r"unexpected model\.gate"):
        load_checkpoint(saved(lambda c: c["state_dict"].update({"model.gate": torch.zeros(1)})))
    wrong = {"model.embedding.weight": torch.zeros(3, 48)}
    with pytest.raises(UserError, match=r"embedding\.weight is \(3, 48\) instead of \(140, 48\)"):
        load_checkpoint(saved(lambda c: c["state_dict"].update(wrong)))
    with pytest.raises(UserError, match="is no tensor"):
        load_checkpoint(saved(lambda c: c["state_dict"].update({"model.embedding.weight": "x"})))
    with pytest.raises(UserError, match=r"missing .*, .*, .* and \d+ more"):
        load_checkpoint(saved(lambda c: c["state_dict"].clear()))


# C07
def test_another_tokenizer_is_noticed_even_of_the_same_size(saved, tokenizer):
    other, _ = Tokenizer.train(["abcdefgh ijklmn opqrstuvw xyz" * 3], vocab_size=40)
    same_size = bytearray(tokenizer.to_bytes())
    at = same_size.index("▁ein".encode())
    same_size[at : at + 6] = "▁nie".encode()

    def swap(data: bytes):
        stored = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        return lambda checkpoint: checkpoint["translate"].update(tokenizer=stored)

    with pytest.raises(UserError, match=r"tokenizer has \d+ pieces but the model 140"):
        load_checkpoint(saved(swap(other.to_bytes())))
    assert len(Tokenizer(bytes(same_size))) == len(tokenizer)
    with pytest.raises(UserError, match="not the one the model was trained with"):
        load_checkpoint(saved(swap(bytes(same_size))))
    with pytest.raises(UserError, match="not a SentencePiece model"):
        load_checkpoint(saved(swap(b"junk")))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda c: c.pop("translate"), "no checkpoint written by `translate fit`"),
        (lambda c: c.pop("state_dict"), "no checkpoint written by `translate fit`"),
        (lambda c: c["translate"].update(format=4), "format 4"),
        (lambda c: c["translate"].pop("config"), "config is unusable"),
        (lambda c: c["translate"]["config"].update(n_heads=5), "5 does not divide"),
        (lambda c: c["translate"]["config"].update(new=5), "config is unusable.*new"),
        (lambda c: c["translate"].update(tokenizer="x"), "holds no tokenizer"),
        (lambda c: c["translate"]["config"].update(pad_id=7), "padding is piece 0 .* but 7"),
    ],
)
def test_what_is_no_checkpoint_of_ours_is_refused_in_one_line(saved, change, complaint):
    path = saved(change)
    with pytest.raises(UserError, match=complaint) as caught:
        load_checkpoint(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_and_foreign_files_are_refused(checkpoint_file, tmp_path):
    data = checkpoint_file.read_bytes()
    files = {
        "truncated": data[: len(data) // 2],
        "empty": b"",
        "text": b"This is an example\n" * 20,
    }
    for name, content in files.items():
        path = tmp_path / f"{name}.ckpt"
        path.write_bytes(content)
        with pytest.raises(UserError, match="not a checkpoint, damaged"):
            load_checkpoint(path)
    with zipfile.ZipFile(tmp_path / "archive.ckpt", "w") as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(UserError, match="not a checkpoint, damaged"):
        load_checkpoint(tmp_path / "archive.ckpt")
    with pytest.raises(UserError, match=r"cannot read the model .*No such file"):
        load_checkpoint(tmp_path / "none.ckpt")
    torch.save([1, 2], tmp_path / "list.ckpt")
    with pytest.raises(UserError, match="no checkpoint written by"):
        load_checkpoint(tmp_path / "list.ckpt")


def resized(tensor_of):
    """A change: replace the embedding by `tensor_of(embedding)`."""

    def change(checkpoint):
        weights = checkpoint["state_dict"]
        weights["model.embedding.weight"] = tensor_of(weights["model.embedding.weight"])

    return change


def with_config(**values):
    """A change: other values in the config."""
    return lambda checkpoint: checkpoint["translate"]["config"].update(values)


def with_integer_names(checkpoint):
    checkpoint["state_dict"] = dict(enumerate(checkpoint["state_dict"].values()))


MANY = 2**20


# F07
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, about unusual tensors
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (with_config(d_model=48.0), "d_model has the wrong type"),
        (with_config(n_heads=True), "n_heads has the wrong type"),
        (with_config(dropout="0"), "dropout has the wrong type"),
        (with_config(norm=None), "norm has the wrong type"),
        (with_config(dropout=float("nan")), r"dropout must lie in \[0, 1\)"),
        (with_config(d_ff=2**31), "d_ff must be at most 1,048,576"),
        (with_config(max_length=2**31), "max_length must be at most 65,536"),
        (with_config(encoder_layers=10**6), "encoder_layers must be at most 100, not 1,000,000"),
        (with_config(d_ff=10**500), "config is unusable"),
        (with_config(d_model=MANY, d_ff=MANY), r"embedding\.weight is \(140, 48\) instead of"),
        (with_config(decoder_layers=100), r"missing model\.decoder\.2.* and \d+ more"),
        (with_config(**{"\x1b[2J" * 1000: 1}), r"unknown setting '\\x1b\[2J"),
        (lambda c: c["translate"].update(config=[1]), "config is unusable"),
        (lambda c: c["translate"].update(format=True), "checkpoint format bool"),
        (lambda c: c["translate"].update(format="\x1b\n" * 5000), r"checkpoint format '\\x1b\\n"),
        (lambda c: c["translate"].pop("sha256"), "checksum"),
        (lambda c: c["translate"].update(sha256=torch.ones(64)), "checksum"),
        (lambda c: c["translate"].update(tokenizer_sha256=[0] * 999), "expected list"),
        (lambda c: c["translate"].update(tokenizer=torch.ones(9).to_sparse()), "no tokenizer"),
        (lambda c: c["state_dict"].update({"\x1b]0;" + "x" * 5000: 1}), r"unexpected '\\x1b\]0;x"),
        (with_integer_names, "name of a weight is not text"),
        (resized(lambda weight: weight.to_sparse()), "embedding.weight is not a dense tensor"),
        (resized(lambda weight: weight.to("meta")), "embedding.weight is not a dense tensor"),
        (resized(lambda weight: weight.to(torch.int64)), "embedding.weight is not a dense tensor"),
        (resized(lambda weight: weight[:1, :1].expand(140, 48)), "is not a dense tensor"),
        (resized(lambda weight: torch.zeros(1).expand(2**31)), "is not a dense tensor"),
        (resized(lambda weight: torch.nested.nested_tensor([weight])), "is not a dense tensor"),
        (
            resized(lambda weight: torch.quantize_per_tensor(weight, 0.1, 0, torch.qint8)),
            "embedding.weight is not a dense tensor",
        ),
    ],
)
def test_a_checkpoint_made_to_harm_is_refused_in_one_short_line(saved, change, complaint):
    path = saved(change)
    with pytest.raises(UserError, match=complaint) as caught:
        load_checkpoint(path)
    message = str(caught.value)
    assert str(path) in message
    assert message.isprintable()
    assert len(message) < 600


# F07
def test_a_compressed_checkpoint_is_refused_before_it_is_unpacked(tmp_path, checkpoint_file):
    path = tmp_path / "bomb.ckpt"
    with (
        zipfile.ZipFile(checkpoint_file) as original,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for entry in original.infolist():
            bomb.writestr(entry.filename, original.read(entry))
        bomb.writestr("checkpoint/data/999", bytes(10_000_000))
    with pytest.raises(UserError, match="not a checkpoint, damaged"):
        load_checkpoint(path)


# F08
@pytest.mark.parametrize("value", [math.nan, math.inf, 1e300])
@pytest.mark.parametrize("written_by", [1, 2, 3])
def test_weights_that_are_not_finite_in_float32_are_refused(saved, value, written_by):
    def change(checkpoint):
        weights = checkpoint["state_dict"]
        weights["model.embedding.weight"] = weights["model.embedding.weight"].double()
        weights["model.embedding.weight"][5, 6] = value
        checkpoint["translate"]["format"] = written_by
        if written_by == 1:
            to_format_1(checkpoint)

    with pytest.raises(UserError, match=r"infinite numbers in model\.embedding\.weight"):
        load_checkpoint(saved(change))


# F08
def test_a_changed_weight_config_or_tokenizer_does_not_match_the_checksum(saved):
    def larger(checkpoint):
        checkpoint["state_dict"]["model.embedding.weight"][5, 6] = 7e36

    def swapped(checkpoint):
        weights = checkpoint["state_dict"]
        names = [f"model.encoder.{i}.feed_forward.norm.bias" for i in (0, 1)]
        weights[names[0]] = weights[names[0]] + 1
        weights[names[0]], weights[names[1]] = weights[names[1]], weights[names[0]]

    for change in (larger, swapped, with_config(dropout=0.2), with_config(n_heads=8)):
        with pytest.raises(UserError, match="the checksum of weights, config and tokenizer"):
            load_checkpoint(saved(change))


# F08
@pytest.mark.slow
@pytest.mark.parametrize("written_by", [2, 3])
def test_after_a_bit_has_flipped_the_file_is_refused_or_the_model_is_the_same(
    tmp_path, saved, checkpoint_file, written_by
):
    original = load_checkpoint(checkpoint_file)
    content = saved(lambda c: c["translate"].update(format=written_by)).read_bytes()
    damaged = tmp_path / "damaged.ckpt"
    random, refused = Random(8), 0
    for trial in range(90):
        first = len(content) - 3000 if trial % 3 == 0 else 0  # the directory is at the end
        at = random.randrange(8 * first, 8 * len(content))
        changed = bytearray(content)
        changed[at // 8] ^= 1 << at % 8
        damaged.write_bytes(changed)
        with contextlib.suppress(UserError):
            check_undamaged(damaged)
        try:
            loaded = load_checkpoint(damaged)
        except UserError as error:
            assert str(error).isprintable() and len(str(error)) < 600
            refused += 1
            continue
        assert loaded.model.config == original.model.config
        assert loaded.tokenizer.to_bytes() == original.tokenizer.to_bytes()
        for name, tensor in loaded.model.state_dict().items():
            assert torch.equal(tensor, original.model.state_dict()[name])
    assert refused > 45  # most bits belong to the weights


# F08
def test_a_damaged_resume_state_is_found_and_the_weights_still_translate(
    saved, tmp_path, translator
):
    state = torch.full((1000,), 0.125)
    content = saved(lambda c: c.update(optimizer_states=[state])).read_bytes()
    assert content.count(state.numpy().tobytes()) == 1
    path = tmp_path / "damaged.ckpt"
    path.write_bytes(content.replace(state.numpy().tobytes(), (state + 1).numpy().tobytes()))
    assert torch.equal(
        load_checkpoint(path).model.embedding.weight, translator.model.embedding.weight
    )
    with pytest.raises(UserError, match="damaged: its content has changed"):
        check_undamaged(path)
    path.write_bytes(content)
    check_undamaged(path)


# F08
def test_the_checksum_survives_another_precision_and_wrappers(checkpoint, tmp_path):
    half = {name: weight.half() for name, weight in checkpoint["state_dict"].items()}
    tokenizer = Tokenizer(checkpoint["translate"]["tokenizer"].numpy().tobytes())
    config = TransformerConfig(**checkpoint["translate"]["config"])
    wrapped = {name.replace("model.", "model._orig_mod."): half[name] for name in half}
    entry = checkpoint_entry(config, tokenizer, half)
    torch.save({"state_dict": wrapped, "translate": entry}, tmp_path / "half.ckpt")
    loaded = load_checkpoint(tmp_path / "half.ckpt").model.state_dict()
    assert all(
        torch.equal(loaded[name.removeprefix("model.")], half[name].float()) for name in half
    )


def version(runs: Path, name: str, *files: str, finished: int | None = None) -> Path:
    """A version folder; `finished` is the time at which its result was written."""
    folder = runs / name
    (folder / "checkpoints").mkdir(parents=True)
    for file in files:
        (folder / "checkpoints" / file).touch()
    if finished is not None:
        (folder / "result.json").touch()
        os.utime(folder / "result.json", (finished, finished))
    return folder


# C10
def test_a_file_and_each_folder_around_it_mean_the_same_checkpoint(tmp_path):
    folder = version(tmp_path / "runs", "tiny/version_0", "best.ckpt", "last.ckpt", finished=5)
    best = folder / "checkpoints" / "best.ckpt"
    for given in (folder.parent, folder, folder / "checkpoints", best):
        assert find_model(given) == best
        assert find_model(str(given)) == best
    last = best.with_name("last.ckpt")
    assert find_model(last) == last
    best.unlink()
    assert find_model(folder.parent) == last


def test_the_default_is_the_newest_finished_run(tmp_path):
    version(tmp_path, "old/version_3", "best.ckpt", finished=100)
    version(tmp_path, "new/version_9", "best.ckpt", finished=200)
    expected = version(tmp_path, "new/version_10", "best.ckpt", finished=200)
    version(tmp_path, "new/version_11", "best.ckpt")
    version(tmp_path, "empty/version_0", finished=300)
    assert finished_models(tmp_path)[0] == expected / "checkpoints" / "best.ckpt"
    assert find_model(tmp_path / "old") == tmp_path / "old/version_3/checkpoints/best.ckpt"


def test_a_run_without_a_finished_version_gives_its_newest_checkpoint(tmp_path):
    version(tmp_path, "tiny/version_9", "last.ckpt")
    version(tmp_path, "tiny/version_10", "last.ckpt")
    version(tmp_path, "tiny/version_11")
    found = find_model(tmp_path / "tiny")
    assert found == tmp_path / "tiny/version_10/checkpoints/last.ckpt"
    with pytest.raises(UserError, match=r"no finished run.*translate fit.*--model"):
        load_model(runs=tmp_path)


# F12
def test_an_unusable_newest_run_is_skipped_with_a_warning(tmp_path, checkpoint_file, caplog):
    caplog.set_level("INFO")
    good = version(tmp_path, "good/version_0", finished=100) / "checkpoints" / "best.ckpt"
    shutil.copy(checkpoint_file, good)
    for number in (200, 300):
        version(tmp_path, f"broken/version_{number}", "best.ckpt", finished=number)
    newest = tmp_path / "broken/version_300/checkpoints/best.ckpt"
    assert load_model(runs=tmp_path).path == good
    warning, info = caplog.messages
    assert warning.startswith(f"skipped 2 finished runs, the newest because: {newest}: not a check")
    assert info == f"model {good}"
    for given in (newest, newest.parent.parent, tmp_path / "broken"):  # never another one
        with pytest.raises(UserError, match=rf"^{re.escape(str(newest))}: not a checkpoint"):
            load_model(given)
    good.unlink()
    with pytest.raises(UserError, match=rf"can be used; the newest: {re.escape(str(newest))}"):
        load_model(runs=tmp_path)


def test_what_is_no_run_is_passed_over(tmp_path):
    good = version(tmp_path, "good/version_0", "best.ckpt", finished=100)
    version(tmp_path, "link/version_1").joinpath("checkpoints/best.ckpt").symlink_to("gone")
    version(tmp_path, "folder/version_0/checkpoints/best.ckpt", finished=900)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "version_5").touch()
    (tmp_path / "good" / "version_1").symlink_to("version_1")  # a loop
    (tmp_path / "version_x").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to(good.parent)
    found = {path.resolve() for path in finished_models(tmp_path)}
    assert found == {(good / "checkpoints" / "best.ckpt").resolve()}


def test_folders_that_cannot_be_read_are_passed_over_unless_they_are_named(unprivileged):
    closed = version(unprivileged, "closed/version_0", "best.ckpt", finished=200)
    for folder in (closed / "checkpoints", closed, closed.parent):
        folder.chmod(0o000)
        assert finished_models(unprivileged) == []
        with pytest.raises(UserError, match=r"no such model|cannot read|no best\.ckpt"):
            find_model(closed)
    with pytest.raises(UserError, match=r"cannot read the model .*Permission denied"):
        find_model(closed)
    closed.parent.chmod(0o700)


# F12
def test_a_run_that_is_moved_during_the_search_causes_no_other_error(tmp_path):
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    version(runs, "tiny/version_0", "best.ckpt", finished=200)
    stop = threading.Event()

    def move() -> None:
        while not stop.is_set():
            (runs / "tiny").rename(elsewhere)
            elsewhere.rename(runs / "tiny")

    mover = threading.Thread(target=move)
    mover.start()
    try:
        for _ in range(500):
            with pytest.raises(UserError, match=r"no finished run|cannot read the model|damaged"):
                load_model(runs=runs)
    finally:
        stop.set()
        mover.join()


def test_where_there_is_no_model_the_message_says_what_to_give(tmp_path):
    with pytest.raises(UserError, match=r"no finished run under .*: train one with `translate fit"):
        load_model(runs=tmp_path / "runs")
    for name in ("nowhere", "~nobody-of-this-name/x", "n" * 256, "a\0b"):
        with pytest.raises(UserError, match=r"no such model|cannot read the model") as caught:
            find_model(tmp_path / name if name[0] != "~" else name)
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"no best\.ckpt or last\.ckpt in this folder"):
        find_model(tmp_path)
