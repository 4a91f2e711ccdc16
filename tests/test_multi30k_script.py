"""scripts/multi30k.sh from start to end, with a few pairs of the shipped corpus and tiny models."""

from __future__ import annotations

import gzip
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


@pytest.mark.e2e
def test_two_models_translate_the_text_for_a_third_and_are_not_trained_again(checkout):
    small = ["--trainer.max_epochs", "2", "--data.vocab_size", "300", "--model.d_model", "16"]
    small += ["--model.d_ff", "16", "--trainer.enable_progress_bar", "false"]
    first = run(checkout, *small)
    assert first.returncode == 0, first.stderr

    corpus, runs = checkout / "data" / "multi30k", checkout / "runs"
    for language in ("en", "de"):
        assert len((corpus / f"translated.{language}").read_text("utf-8").splitlines()) == PAIRS
    names = ["multi30k-forward", "multi30k-backward", "multi30k"]
    for name, source in zip(names, ("en", "de", "en"), strict=True):
        settings = yaml.safe_load((runs / name / "version_0" / "config.yaml").read_text("utf-8"))
        assert settings["data"]["valid"]["source"].endswith(f"val.{source}.gz")
        assert settings["trainer"]["max_epochs"] == 2

    second = run(checkout, *small, "--seed_everything", "2")
    assert second.returncode == 0, second.stderr
    versions = [len(list((runs / name).glob("version_*"))) for name in names]
    assert versions == [1, 1, 2]
