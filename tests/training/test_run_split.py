"""The pairs that a run holds out are the same in `fit`, `validate` and `test`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from translate.training.run_split import run_config


@pytest.fixture
def held_out(run, settings, tmp_path) -> Path:
    """Return the folder of a run that held out 3 pairs each for `valid` and `test`."""
    del settings["data"]["valid"], settings["data"]["test"]
    shutil.copy(settings["data"]["train"]["tsv"], tmp_path / "corpus.tsv")
    settings["data"]["train"]["tsv"] = str(tmp_path / "corpus.tsv")
    outcome = run("fit", settings | {"seed_everything": 7})
    assert outcome.code == 0, outcome.err
    return outcome.folder


def warnings(outcome) -> list[str]:
    assert outcome.code == 0, outcome.err
    return [line for line in outcome.err.splitlines() if line.startswith("warning: ")]


# F12
def test_a_run_alone_is_scored_on_its_own_split(run, held_out):
    def losses_and_scores(out: str) -> list[float]:
        values = dict(line.split() for line in out.splitlines())
        return [float(values[f"val/{name}"]) for name in ("loss", "chrf")]

    events = EventAccumulator(str(held_out)).Reload()
    curve = [events.Scalars(f"val/{name}")[-1].value for name in ("loss", "chrf")]
    for given in (held_out, held_out.parent, held_out / "checkpoints" / "best.ckpt"):
        outcome = run("validate", None, "--ckpt_path", given)
        assert warnings(outcome) == []
        assert outcome.err.startswith(f"settings of the run: {held_out}/config.yaml\n")
        assert losses_and_scores(outcome.out) == pytest.approx(curve, abs=1e-4)
    first, again = (run("test", None, f"--ckpt_path={held_out}", "--beam", 1) for _ in range(2))
    assert first.out.startswith("test: 3 sentences, greedy\n")
    assert first.out == again.out


# F12
def test_the_split_is_the_run_s_whatever_seed_and_size_the_config_has(run, settings, held_out):
    own = run("test", None, "--ckpt_path", held_out)
    settings["data"]["held_out"] = 2
    args = ("--ckpt_path", held_out, "--seed_everything", 8)
    other = run("test", settings, *args)
    assert warnings(other) == []
    assert "seed_everything 7 and data.held_out 500 are those of the run" in other.err
    assert other.out == own.out
    assert run("validate", settings, *args).out == run("validate", None, *args[:2]).out


# F12
def test_pairs_of_another_corpus_that_were_trained_on_are_counted(
    run, settings, held_out, tmp_path
):
    lines = (tmp_path / "corpus.tsv").read_text().splitlines()
    others = [f"New {line}" for line in lines[:10]]
    more = [f"{line.partition(chr(9))[0].upper()}\tneu {n}" for n, line in enumerate(lines[:10])]
    (tmp_path / "more.tsv").write_text("\n".join([*lines, *others, *more]) + "\n")
    settings["data"]["train"]["tsv"] = str(tmp_path / "more.tsv")
    args = ("test", settings, "--ckpt_path", held_out, "--beam", 1)
    (warning,) = warnings(run(*args))
    outputs = len((held_out / "test.greedy.txt").read_text().splitlines())
    start = "warning: data.train is not the corpus of the run: the model was trained on "
    assert warning.startswith(start)
    words = warning.removeprefix(start).split()
    trained_on, count, other_translations = int(words[0]), int(words[3]), int(words[-2])
    assert count == outputs == 5
    assert 0 < trained_on + other_translations <= count
    assert warnings(run("validate", *args[1:4]))[0].startswith(start)
    # Without the files of the run, nobody can know.
    (tmp_path / "corpus.tsv").rename(tmp_path / "moved.tsv")
    (warning,) = warnings(run(*args))
    assert "whether the model was trained on test pairs cannot be checked: no such file" in warning
    (tmp_path / "corpus.tsv").write_text("\n".join(lines[1:]) + "\n")
    (warning,) = warnings(run(*args))
    assert warning.endswith(f"the files that {held_out}/config.yaml names have changed")
    alone = shutil.copy(held_out / "checkpoints" / "best.ckpt", tmp_path / "alone.ckpt")
    (warning,) = warnings(run("test", settings, "--ckpt_path", alone, "--beam", 1))
    assert warning.endswith(f"cannot be checked: there is no config.yaml beside {alone}")


# F12
def test_a_checkpoint_of_an_older_version_is_warned_about(run, held_out):
    path = held_out / "checkpoints" / "best.ckpt"
    checkpoint = torch.load(path, weights_only=True)
    for name in ("seed", "held_out", "train_sha256"):
        del checkpoint["translate"][name]
    torch.save(checkpoint, path)
    for command in ("test", "validate"):
        (warning,) = warnings(run(command, None, "--ckpt_path", held_out))
        assert warning.startswith(f"warning: {path} does not say which pairs were held out")


def test_files_for_validation_and_test_are_read_as_they_are(run, settings, trained):
    for command in ("test", "validate"):
        outcome = run(command, settings, "--ckpt_path", trained, "--seed_everything", 8)
        assert warnings(outcome) == []
        assert "data.held_out" not in outcome.err


def test_the_newest_config_of_the_run_is_used_and_only_without_another(tmp_path):
    folder = tmp_path / "renamed"
    (folder / "checkpoints").mkdir(parents=True)
    path = folder / "checkpoints" / "last.ckpt"
    path.touch()
    assert run_config(["--ckpt_path", str(path)]) == []
    for name in ("config.yaml", "config_resumed_1.yaml"):
        (folder / name).write_text(yaml.safe_dump({}))
        expected = ["--config", str(folder / name)]
        assert run_config(["--beam=2", "--ckpt_path", str(folder)]) == expected
    for args in (["--config", "x"], ["-c", "x"], ["--config=x"], ["--input", "x"], ["--ckpt_path"]):
        assert run_config(["--ckpt_path", str(path), *args]) == []
    assert run_config(["--beam", "1"]) == []
