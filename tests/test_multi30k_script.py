"""scripts/multi30k.sh: every command is accepted, and reads only files that exist by then."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from translate import cli

ROOT = Path(__file__).parents[1]
PAIRS = 5
SMALL = ["--model.d_model", "16", "--trainer.enable_progress_bar", "false"]

# Stands in for `translate`: notes its arguments, and writes the files that the real one would.
RECORDER = f"""#!{sys.executable} -S
import gzip, json, sys
from itertools import pairwise
from pathlib import Path

arguments = sys.argv[1:]
with open("calls.jsonl", "a") as calls:
    print(json.dumps(arguments), file=calls)
value = dict(pairwise(arguments))
if arguments[0] == "fit":
    version = Path("runs", value["--name"], "version_0")
    (version / "checkpoints").mkdir(parents=True)
    (version / "checkpoints/last.ckpt").write_text(value["--name"])
    (version / "result.json").write_text("{{}}")
else:
    Path(value["--output"]).write_bytes(gzip.open(value["--input"]).read())
"""


@pytest.fixture
def checkout(tmp_path):
    """The script, its configs, a corpus of a few pairs, and the recorder as `translate`."""
    for folder in ("scripts", "configs", "bin"):
        (tmp_path / folder).mkdir()
    for name in ("scripts/multi30k.sh", "configs/multi30k.yaml", "configs/multi30k-quick.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    setup = 'cd "$(dirname "${BASH_SOURCE[0]}")/.."\nPATH="$PWD/bin:$PATH"\n'
    (tmp_path / "scripts/setup.sh").write_text(setup)
    (tmp_path / "bin/translate").write_text(RECORDER)
    (tmp_path / "bin/translate").chmod(0o755)
    corpus = tmp_path / "data/multi30k"
    corpus.mkdir(parents=True)
    for name, source in {"train": "train", "val": "valid", "test_2016_flickr": "test"}.items():
        for language in ("en", "de"):
            lines = (ROOT / f"data/tiny/{source}.{language}").read_bytes().splitlines(keepends=True)
            (corpus / f"{name}.{language}.gz").write_bytes(gzip.compress(b"".join(lines[:PAIRS])))
    return tmp_path


def calls_of_script(checkout: Path) -> list[list[str]]:
    """Run the script with the arguments `SMALL`; return the arguments of each `translate`."""
    log = checkout / "calls.jsonl"
    log.write_text("")
    command = ["bash", str(checkout / "scripts/multi30k.sh"), *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_every_command_is_accepted_and_has_its_input(
    checkout, checkpoint_file, monkeypatch, capsys
):
    calls = calls_of_script(checkout)
    monkeypatch.chdir(checkout)
    written, settings = set(), {}
    for arguments in calls:
        value = dict(pairwise(arguments))
        if arguments[0] == "decode":
            run = Path(value["--model"])
            assert run.name in settings
            shutil.copy(checkpoint_file, run / "version_0/checkpoints/best.ckpt")
            assert cli.main(arguments) == 0
            written.add(value["--output"])
            assert len(Path(value["--output"]).read_text("utf-8").splitlines()) == PAIRS
        else:
            assert arguments[-len(SMALL) :] == SMALL
            with pytest.raises(SystemExit, match="0"):
                cli.main([*arguments, "--print_config"])
            config = settings[value["--name"]] = yaml.safe_load(capsys.readouterr().out)
            read = config["data"]["train"]
            for pair in [*(read if isinstance(read, list) else [read]), config["data"]["valid"]]:
                for path in (Path(pair["source"]), Path(pair["target"])):
                    name = str(path.resolve().relative_to(checkout.resolve()))
                    assert name in written or (name.endswith(".gz") and path.is_file()), name

    assert list(settings) == [
        f"multi30k-{name}"
        for name in ("forward", "backward", "teacher-1", "teacher-2", "teacher-3", "1", "2", "3")
    ]
    for seed in (1, 2, 3):
        teacher, student = settings[f"multi30k-teacher-{seed}"], settings[f"multi30k-{seed}"]
        assert teacher["seed_everything"] == student["seed_everything"] == seed
        assert teacher["model"] == student["model"]  # the student continues from the teacher
        assert Path(student["ckpt_path"]).read_text() == f"multi30k-teacher-{seed}"
        assert len(teacher["data"]["train"]) == 3 and teacher["trainer"]["max_steps"] == -1
    backward = settings["multi30k-backward"]["data"]
    for pair in (*backward["train"], backward["valid"]):
        assert ".de" in pair["source"] and ".en" in pair["target"]


def test_nothing_is_trained_or_translated_twice(checkout):
    assert calls_of_script(checkout)
    assert calls_of_script(checkout) == []
