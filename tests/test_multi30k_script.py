"""scripts/multi30k.sh from start to end, with a few pairs of the shipped corpus and tiny models."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAIRS = 200


@pytest.fixture
def checkout(tmp_path):
    """The scripts and configs, the packages of these tests, and a corpus of 200 pairs."""
    for folder, names in {
        "scripts": ["multi30k.sh"],
        "configs": ["multi30k.yaml", "multi30k-quick.yaml"],
    }.items():
        (tmp_path / folder).mkdir()
        for name in names:
            shutil.copy(ROOT / folder / name, tmp_path / folder)
    setup = (
        f'cd "$(dirname "${{BASH_SOURCE[0]}}")/.."\nPATH="{Path(sys.executable).parent}:$PATH"\n'
    )
    (tmp_path / "scripts" / "setup.sh").write_text(setup)
    corpus = tmp_path / "data" / "multi30k"
    corpus.mkdir(parents=True)
    for name, source in {"train": "train", "val": "valid", "test_2016_flickr": "test"}.items():
        for language in ("en", "de"):
            lines = (ROOT / "data" / "tiny" / f"{source}.{language}").read_text("utf-8")
            some = "".join(lines.splitlines(keepends=True)[:PAIRS])
            (corpus / f"{name}.{language}.gz").write_bytes(gzip.compress(some.encode()))
    return tmp_path


def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(checkout / "scripts" / "multi30k.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def shorten(config: Path, **trainer: int) -> None:
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    settings["trainer"] |= trainer
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")


@pytest.mark.e2e
def test_models_translate_the_text_for_others_which_go_on_with_it(checkout):
    shorten(checkout / "configs" / "multi30k-quick.yaml", max_epochs=1, check_val_every_n_epoch=1)
    shorten(checkout / "configs" / "multi30k.yaml", max_steps=60)
    small = ["--data.vocab_size", "300", "--model.d_model", "16", "--model.d_ff", "16"]
    small += ["--trainer.enable_progress_bar", "false", "--trainer.logger", "false"]
    first = run(checkout, *small)
    assert first.returncode == 0, first.stderr

    corpus, runs = checkout / "data" / "multi30k", checkout / "runs"
    teachers = {"forward": "de", **{f"teacher-{seed}": "de" for seed in (1, 2, 3)}}
    teachers["backward"] = "en"
    for name, language in teachers.items():
        assert len((corpus / f"{name}.{language}").read_text("utf-8").splitlines()) == PAIRS
    for name in (*teachers, "1", "2", "3"):
        settings = yaml.safe_load((runs / f"multi30k-{name}/version_0/config.yaml").read_text())
        source = "de" if teachers.get(name) == "en" else "en"
        assert settings["data"]["valid"]["source"].endswith(f"val.{source}.gz"), name
        assert settings["model"]["d_model"] == 16  # arguments reach every training
        assert settings["seed_everything"] == int(name[-1] if name[-1].isdigit() else "1")
    steps = {}
    for name in ("teacher-1", "1"):
        result = json.loads((runs / f"multi30k-{name}/version_0/result.json").read_text())
        steps[name] = result["steps"]
    assert steps["1"] == 60 > steps["teacher-1"]
    assert f"going on after {steps['teacher-1']} updates: runs/multi30k-teacher-1" in first.stderr

    second = run(checkout, *small)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
