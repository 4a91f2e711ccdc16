"""Faults of config files and command lines: all at once, each with its file and line."""

from __future__ import annotations

import os
import time

import pytest

from translate.errors import UsageError
from translate.training.cli import TranslationCLI
from translate.training.config_reader import ConfigReader
from translate.training.config_types import PACKAGES_VARIABLE

DATA = "data: {train: {tsv: nowhere.tsv}}\n"


@pytest.fixture
def faults(tmp_path, monkeypatch):
    """faults("text of my.yaml", "--option", ...): the lines of the message, [] if all is well."""
    monkeypatch.chdir(tmp_path)

    def parse(text: str | bytes, *args: str, command: str = "fit") -> list[str]:
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / "my.yaml").write_bytes(data)
        try:
            TranslationCLI(command, ["--config", "my.yaml", *args])
        except UsageError as error:
            return str(error).splitlines()
        return []

    return parse


def test_all_faults_of_all_sections_files_and_arguments_are_told_at_once(faults, tmp_path):  # N30
    (tmp_path / "other.yaml").write_text("trainer: {max_epoch: 3}\nbeam:\n")
    text = "model:\n  d_model: x\n  n_heads: 3\n  dropout: 1.5\ndata:\n  vocab_size: .nan\n"
    assert faults(text, "--config", "other.yaml", "--model.norm", "mid", "--foo=3") == [
        "my.yaml:2: model.d_model: expected int, got x",
        "my.yaml:4: model.dropout must lie in [0, 1), not 1.5",
        "my.yaml:6: data.vocab_size: expected int, got .nan",
        "other.yaml:1: no setting trainer.max_epoch; did you mean trainer.max_epochs?",
        "other.yaml:2: beam: expected int, but it is empty; without this line it is 5",
        "command line: no setting --foo; `translate fit --help all` lists all",
        "command line: model.norm: expected 'pre', 'post', got mid",
    ]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("model.d_modle", "did you mean model.d_model?"),
        ("trianer", "did you mean trainer?"),
        ("data.train.tvs", "did you mean data.train.tsv?"),
        ("max_epochs", "did you mean trainer.max_epochs?"),
        ("zzz", "`translate fit --help all` lists all"),
    ],
)
def test_the_nearest_known_setting_is_named(key, hint):  # L02
    reader = ConfigReader(["model.d_model", "trainer.max_epochs", "data.train"])
    assert reader.unknown(key) == f"no setting {key}; {hint}"


def test_faults_of_the_trainer_are_told_with_the_others(faults):
    assert faults("trainer:\n  max_epochs: 0\n  max_steps: 0\nbeam: 0\n") == [
        "my.yaml:2: nothing to train: trainer.max_epochs is 0",
        "my.yaml:3: nothing to train: trainer.max_steps is 0",
        "my.yaml:4: beam must be from 1 to 1,000, not 0",
    ]


def test_a_valid_config_and_a_command_line_have_no_faults(faults):
    text = (
        "model: &base {d_model: 32}\n"
        "trainer: {max_epochs: null, callbacks: [{class_path: Timer}]}\n"
        "data: {train: [{tsv: a.tsv}, {tsv: b.tsv}], valid: null, test: {tsv: c, columns: [2, 1]}}"
    )
    assert faults(text, "--trainer.callbacks+=DeviceStatsMonitor", "--model", "{d_ff: 16}") == []


@pytest.mark.parametrize("command", ["fit", "validate", "test"])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model: {}\nbeam: 3\nmodel: {}\n", "my.yaml:3: model is set twice, in lines 1 and 3"),
        ("model:\n  d_ff: 1\n  d_ff: 2\n", "my.yaml:3: model.d_ff is set twice, in lines 2 and 3"),
        ("data:\n  train: {tsv: a,\n    tsv: b}\n", "my.yaml:3: data.train.tsv is set twice"),
        (
            "data:\n  train:\n  - tsv: a\n    tsv: b\n",
            "my.yaml:4: data.train.tsv is set twice, in lines 3 and 4",
        ),
        (
            "trainer:\n  callbacks:\n  - class_path: Timer\n    init_args: {a: 1, a: 2}\n",
            "my.yaml:4: trainer.callbacks.init_args.a is set twice, in lines 4 and 4",
        ),
        ('beam: 1\n"beam": 2\n', "my.yaml:2: beam is set twice, in lines 1 and 2"),
    ],
)
def test_a_key_that_is_set_twice_is_refused_with_both_lines(faults, text, told, command):  # N01
    (message,) = [fault for fault in faults(text, command=command) if "twice" in fault]
    assert message == told + message[len(told) :]
    assert message.endswith("remove one of them")


def test_a_merged_section_may_be_overridden(faults):  # N01
    text = f"{DATA}model: &m\n  d_model: 32\n  n_heads: 3\ntranslations: {{<<: {{samples: -1}}}}\n"
    assert faults(text + "monitor:\n  <<: {sentences: 1}\n  sentences: 4\n") == [
        "my.yaml:4: model.n_heads 3 does not divide d_model 32",
        "my.yaml:5: translations.samples must be 0 or more, not -1",
    ]


def all_settings() -> list[str]:
    keys = []

    class StopError(Exception):
        pass

    class Keys(TranslationCLI):
        def parse_arguments(self, parser, args):
            keys.extend(key for key, _ in parser.get_defaults().items() if key != "config")
            raise StopError

    with pytest.raises(StopError):
        Keys("test", [])
    return keys


@pytest.mark.parametrize("key", all_settings())
@pytest.mark.parametrize("value", ["", "null", ".nan", "-.inf"])
def test_an_empty_or_infinite_value_is_accepted_or_refused_with_its_line(faults, key, value):  # N30
    section, _, name = key.rpartition(".")
    text = f"{name}: {value}\n"
    for part in reversed(section.split(".") if section else []):
        text = f"{part}:\n" + "".join(f"  {line}\n" for line in text.splitlines())
    line = len(text.splitlines())
    for fault in faults(DATA + text if not key.startswith("data.") else text, command="test"):
        assert fault.startswith((f"my.yaml:{line}: {key}", f"my.yaml:{line + 1}: {key}")), fault
        assert "expected" in fault
    if value.endswith(("nan", "inf")):
        assert faults(text), "a number that is not finite"


@pytest.mark.parametrize(
    "key",
    [
        "data.vocab_size",
        "data.batch_tokens",
        "model.d_model",
        "model.dropout",
        "beam",
        "trainer.devices",
        "model.warmup_steps",
        "early_stopping.patience",
        "data.train.columns",
    ],
)
def test_an_empty_value_names_the_default(faults, key):  # N30
    *sections, name = key.split(".")
    text = f"{''.join(f'{part}: {{' for part in sections)}{name}: {'}' * len(sections)}"
    (fault,) = faults(text)
    assert fault.startswith(f"my.yaml:1: {key}: expected ")
    assert "but it is empty; without this line it is " in fault


@pytest.mark.parametrize("section", ["model", "data", "data.filters", "trainer", "monitor"])
def test_an_empty_section_is_refused(faults, section):  # N30
    *outer, name = section.split(".")
    text = f"{''.join(f'{part}: {{' for part in outer)}{name}: {'}' * len(outer)}"
    assert faults(text) == [
        f"my.yaml:1: {section}: expected a section of settings, but it is empty: remove it, or "
        "set something in it"
    ]


LAUGHS = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 12))


# F06
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model: &m\n  d_model: *m\n", "my.yaml:1: this value contains itself (an alias)"),
        ("&a [*a]\n", "no settings in this file"),
        ("model: &m {<<: *m}\n", "my.yaml:1: this value contains itself (an alias)"),
        ("x0: &x0 [1]\n" + LAUGHS, "more than 10,000 values (aliases count each time)"),
        (f"name: {'[' * 900}{']' * 900}\n", "my.yaml:1: nested deeper than 32 levels"),
        (f"name: {'[' * 90000}", "my.yaml:1: not YAML"),
        (f"name: {'{a: ' * 5000}", "my.yaml:1: not YAML"),
        ("name:\n" + "".join(f"{' ' * n}a:\n" for n in range(1, 1200)), "my.yaml:"),
        (f"name: [{'1, ' * 20000}]\n", "my.yaml:1: more than 10,000 values"),
        (f"name: {'x' * (1 << 20)}\n", "my.yaml: larger than 1,048,576 bytes"),
        ("? [a, b]\n: 1\n", "my.yaml:1: a key must be text"),
        ("name: !!python/object/apply:os.system [ls]\n", "my.yaml:1: name: "),
        ("beam: !!int abc\n", "my.yaml:1: beam: "),
        ("beam: =\n", "my.yaml:1: beam: "),
        ("name: \0\n", "my.yaml"),
        ("beam: 1\n---\nbeam: 2\n", "my.yaml:2: not YAML: but found another document"),
        ("*a\n", "my.yaml:1: not YAML: found undefined alias"),
        ('"a\\nb\\u001b": 1\n', "my.yaml:1: no setting a\\nb\\x1b;"),
    ],
)
def test_unsafe_yaml_is_refused_at_once_with_its_line(faults, text, told):  # F06
    started = time.process_time()
    (message,) = faults(text)
    assert time.process_time() - started < 5  # without limits: minutes, or all of the RAM
    assert told in message and len(message) < 400


def test_what_is_no_file_is_refused(faults, tmp_path):  # F06
    os.mkfifo(tmp_path / "pipe")
    args = [part for name in (".", "pipe", "/dev/zero", "none") for part in ("--config", name)]
    assert faults(DATA, *args) == [
        ".: not a file",
        "pipe: not a regular file",
        "/dev/zero: not a regular file",
        "none: cannot read the file: No such file or directory",
    ]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("{class_path: os.system}", "class os.system is not allowed: a config may name classes"),
        ("{class_path: lightning.pytorch.cli.os.system}", "class posix.system is not allowed"),
        ("{class_path: mine.Callback}", "class mine.Callback is not allowed"),
        ("{class_path: torch.nn.Linear}", "torch.nn.Linear is not a class of the kind Callback"),
        ("{class_path: lightning.Nothing}", "lightning.Nothing: module 'lightning' has no attr"),
        ("{class_path: EarlyStopping}", "EarlyStopping: missing in init_args: monitor"),
        ("{class_path: Timer, init_args: {hours: 3}}", "Timer: no parameter hours"),
        (
            "{class_path: Timer, init_args: {verbose: x}}",
            "Timer: verbose: expected bool, got x",
        ),
    ],
)
def test_a_class_that_a_config_may_not_name_is_refused(faults, tmp_path, entry, told):
    (tmp_path / "mine.py").write_text("raise SystemExit('this module was run')")
    (fault,) = faults(f"trainer:\n  callbacks:\n  - {entry}\n")
    assert fault.startswith("my.yaml:2: trainer.callbacks: ")
    assert told in fault


def test_the_user_can_allow_another_package(faults, tmp_path, monkeypatch):
    (tmp_path / "mine_allowed.py").write_text(
        "from lightning.pytorch import Callback\nclass Mine(Callback): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    text = DATA + "trainer: {callbacks: [{class_path: mine_allowed.Mine}]}\n"
    (fault,) = faults(text)
    assert f"{PACKAGES_VARIABLE}=PACKAGE allows another" in fault
    monkeypatch.setenv(PACKAGES_VARIABLE, "mine_allowed")
    assert faults(text) == []


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["x.yaml"], "unexpected argument x.yaml; did you mean --config x.yaml?"),
        (["hello"], "unexpected argument hello; settings are written as --SETTING VALUE"),
        (["--model.d_model"], "model.d_model: expected a value after --model.d_model"),
        (["--model.d_model", "64", "4"], "unexpected argument 4"),
        (["--model", "{d_modle: 3}"], "model: no setting model.d_modle"),
        (["--model", "9" * 400], "model: expected a section of settings, got 999"),
        (["--model", "5"], "model: expected a section of settings, got 5"),
        (["--data.train.columns", "null"], "data.train.columns: expected a value such as (1, 2)"),
        (["--early_stopping.patience", "-1"], "early_stopping.patience must be 0 or more, not -1"),
        (["--model.dropout", "inf"], "model.dropout: expected float, got inf"),
        (["--model.dropout", "1e999"], "model.dropout"),
    ],
)
def test_a_fault_of_the_command_line_is_named_as_such(faults, args, told):
    (fault,) = faults(DATA, *args)
    assert fault.startswith(f"command line: {told}")


def test_many_faults_are_counted(faults):
    told = faults("".join(f"wrong{n}: 1\n" for n in range(50)))
    assert len(told) == 21
    assert told[-1] == "and 30 more"


def test_a_section_may_stand_in_a_file_of_its_own(faults, tmp_path):
    (tmp_path / "small.yaml").write_text("d_model: 32\nd_ff: 3\nd_ff: 4\n")
    told = ["small.yaml:3: model.d_ff is set twice, in lines 2 and 3: remove one of them"]
    assert faults(DATA + "model: small.yaml\n") == told
    assert faults(DATA, "--model", "small.yaml") == told
    (tmp_path / "small.yaml").write_text("d_model: 32\n")
    assert faults(DATA + "model: small.yaml\n") == []
