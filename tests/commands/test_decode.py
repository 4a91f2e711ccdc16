"""`translate decode`, in this process where that is possible."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys

import pytest
import wcwidth

from translate import cli
from translate.commands.display_steps import display_steps
from translate.decoding.translation import Translation
from translate.insight.steps import WordStep

DECODE = [sys.executable, "-m", "translate", "decode"]


@pytest.fixture
def decode(checkpoint_file, capsys, monkeypatch):
    """Run the command; returns (exit code, standard output, lines of standard error)."""

    def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, list[str]]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = cli.main(["decode", *arguments, "--model", str(checkpoint_file)])
        out, err = capsys.readouterr()
        return code, out, err.splitlines()

    return run


def test_results_go_to_stdout_and_the_model_to_stderr(decode, checkpoint_file):
    code, out, err = decode("This is an example", "--prefix", "Das ist ein")
    assert (code, out) == (0, "Das ist ein Beispiel\n")
    assert err == [f"model {checkpoint_file}"]


def test_several_sentences_share_a_prefix_or_have_one_each(decode):
    assert decode("No", "", "Good morning")[1] == "Nein\n\nGuten Morgen\n"
    shared = decode("This is an example", "This is a cat.", "--prefix", "Das ist ")
    assert shared[1] == "Das ist ein Beispiel\nDas ist eine Katze.\n"
    each = decode("No", "--prefix", "Ne", "Good morning", "--prefix", "Guten M")
    assert each[1] == "Nein\nGuten Morgen\n"


@pytest.mark.parametrize("arguments", [["--", "No", "-h"], ["No", "--", "--steps"]])
def test_a_sentence_that_begins_with_a_dash_follows_two_dashes(checkpoint_file, capsys, arguments):
    assert cli.main(["decode", "--model", str(checkpoint_file), *arguments]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "Nein"
    assert second and "usage" not in second


@pytest.mark.parametrize("search", [[], ["--beam", "2", "--n-best", "1"]])
def test_a_file_has_a_progress_bar_on_a_terminal(decode, tmp_path, monkeypatch, search):
    (tmp_path / "in.txt").write_text("No\n\nGood morning\n" * 40)
    arguments = [*search, "--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out")]
    assert len(decode(*arguments)[2]) == 1  # the model's name
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = decode(*arguments)[2][-1]
    assert "100%" in bar
    assert "120/120" in bar


def test_warnings_about_translations_go_to_stderr(decode):
    _, out, err = decode("No", "Good morning", "--prefix", "Nein", "--prefix", "")
    assert out == "Nein\nGuten Morgen\n"
    assert err[1:] == [
        "warning: sentence 1: the prefix is already a finished translation: nothing to add"
    ]
    _, out, err = decode("--max-new", "1", stdin=b"\nI am tired because I worked.\n")
    assert out.startswith("\n")
    assert "line 2: the limit" in err[1]
    _, out, err = decode("No 20")
    assert err[1:] == [
        "warning: sentence 1: the model has never seen '2', '0': they were read as unknown"
    ]
    _, _, err = decode("This is a cat.", "--prefix", "Das 7")
    assert "sentence 1: the model has never seen '7'" in err[1]
    _, _, err = decode("No " * 100)
    assert "sentence 1: the source is too long" in err[1]


# G14
def test_stdin_is_answered_line_by_line(decode):
    lines = b'No\r\n\nThis is an example.\n \nShe says: "Yes!"'
    _, out, _ = decode(stdin=lines)
    assert out == "Nein\n\nDas ist ein Beispiel.\n\nSie sagt: „Ja!“\n"
    assert decode(stdin=b"")[1] == ""


def test_a_file_in_batches_gives_the_same_as_its_lines_alone(decode, tmp_path, pairs):
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    lines = [pair.source for pair in pairs] + ["", "No"]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, out, _ = decode("--input", str(source), "--output", str(target), "--batch-size", "5")
    assert (code, out) == (0, "")
    expected = [pair.target for pair in pairs] + ["", "Nein"]
    assert target.read_text(encoding="utf-8") == "\n".join(expected) + "\n"
    assert "".join(decode(line)[1] for line in lines) == target.read_text(encoding="utf-8")
    source.write_text("")
    assert decode("--input", str(source))[:2] == (0, "")


# G16
def test_a_beam_prints_one_line_per_sentence_and_n_best_up_to_k(decode, tmp_path):
    lines = b"No\n\nThis is an example.\n"
    assert decode("--beam", "3", stdin=lines)[1] == "Nein\n\nDas ist ein Beispiel.\n"
    code, out, err = decode("--beam", "4", "--n-best", "2", stdin=lines)
    assert (code, len(err)) == (0, 1)
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "3", "3"]
    assert [rows[0][2], rows[2][2], rows[3][2]] == ["Nein", "", "Das ist ein Beispiel."]
    assert rows[2] == ["2", "0.0000", ""]
    assert float(rows[0][1]) >= float(rows[1][1]) and rows[0][2] != rows[1][2]
    assert decode("No", "--beam", "1", "--n-best", "1")[1].endswith("\tNein\n")

    target = tmp_path / "out.tsv"
    arguments = ("--beam", "4", "--n-best", "2", "--output", str(target))
    assert decode(*arguments, stdin=lines)[1] == ""
    assert target.read_text(encoding="utf-8") == out


def test_the_length_penalty_is_the_exponent_of_the_number_of_pieces(decode, translator):
    (pieces,) = (len(one.ids) + 1 for one in translator.translate_detailed(["No"]))
    scores = [
        float(decode("No", "--beam", "2", "--n-best", "1", "--length-penalty", a)[1].split("\t")[1])
        for a in ("0", "1", "2")
    ]
    assert scores[0] < 0 and pieces > 1
    for exponent, found in enumerate(scores):
        assert found == pytest.approx(scores[0] / pieces**exponent, abs=2e-4)
    default = decode("No", "--beam", "2", "--n-best", "1")[1]
    assert default == decode("No", "--beam", "2", "--n-best", "1", "--length-penalty", "1")[1]


def test_steps_end_with_the_translation(decode):
    code, out, _ = decode("This is an example", "--prefix", "Das ist ein", "--steps")
    lines = out.splitlines()
    assert code == 0
    assert lines[-1] == "Das ist ein Beispiel"
    assert [line.split()[0] for line in lines[:-1]] == ["word", "Beispiel", "</s>"]
    assert 0 < float(lines[1].split()[1]) <= 1
    assert "example 0." in lines[1]
    assert "▁" not in out
    assert decode("", "No", "--steps")[1].splitlines()[0] == ""
    assert "\x1b" not in out and "█" not in out  # not a terminal


def test_steps_as_json_are_one_object_per_word_and_the_translation(decode):
    code, out, _ = decode("This is an example", "--prefix", "Das ist ein", "--steps", "--json")
    *words, last = (json.loads(line) for line in out.splitlines())
    assert code == 0
    assert last == {"translation": "Das ist ein Beispiel"}
    assert [word["word"] for word in words] == ["Beispiel", "</s>"]
    for word in words:
        assert 0 < word["probability"] <= 1
        assert word["candidates"] and set(word["candidates"][0]) == {"word", "probability"}
        assert sum(each["weight"] for each in word["attended"]) == pytest.approx(1, abs=1e-4)
        assert {each["word"] for each in word["attended"]} == {
            "This", "is", "an", "example", "</s>",
        }  # fmt: skip


def on_a_terminal(command: list[str], **environment: str) -> str:
    """Run a command whose standard output and error are one terminal; return what it shows."""
    leader, follower = pytest.importorskip("pty").openpty()  # not on Windows
    with subprocess.Popen(
        command,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "OMP_NUM_THREADS": "1", **environment},
    ) as process:
        os.close(follower)
        shown = b""
        with contextlib.suppress(OSError):  # on Linux, the end of the output
            while part := os.read(leader, 4096):
                shown += part
    os.close(leader)
    assert process.returncode == 0
    return shown.decode()


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)],
)
def test_a_terminal_shows_steps_in_colour_and_with_bars(checkpoint_file, environment, coloured):
    arguments = ["No", "This is an example", "--steps", "--model", str(checkpoint_file)]
    text = on_a_terminal([*DECODE, *arguments], **environment)
    assert ("\x1b[" in text) == ("█" in text) == coloured
    plain = re.sub("\x1b\\[[0-9]*m", "", text).replace("\r", "")
    assert plain.endswith("Das ist ein Beispiel\n")
    # Escape sequences take no width: each probability ends where its heading ends.
    _, heading, *rest = plain.splitlines()  # after the message about the model
    end = heading.index("probability") + len("probability")
    assert all(re.fullmatch(r"[01]\.\d{3}", line[end - 5 : end]) for line in rest if "</s>" in line)


HOSTILE = "No\x1b]0;title\x07 \x9b31m \u202e \u2066 犬"


@pytest.mark.parametrize(
    "command",
    [
        ["decode", HOSTILE, "--prefix", HOSTILE, "--steps"],
        ["decode", HOSTILE, "--prefix", HOSTILE, "--beam", "2", "--n-best", "2"],
        ["trace", HOSTILE, "--prefix", HOSTILE, "--kind", "cross"],
    ],
)
def test_no_control_character_of_a_text_reaches_a_terminal(checkpoint_file, command):  # F09
    path = checkpoint_file.with_name("my\x1b[2Jmodel.ckpt")
    path.write_bytes(checkpoint_file.read_bytes())
    text = on_a_terminal([*DECODE[:-1], *command, "--model", str(path)])
    own = re.sub("\x1b\\[[0-9]*m|\r\n", "", text)  # colours that the program chose
    assert "my\\x1b[2Jmodel.ckpt" in own and own.count("\\x1b") >= 2
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", own)
    assert "\x1b[31mm" not in text


def test_a_file_or_pipe_gets_the_text_as_it_is(checkpoint_file):  # F09
    arguments = ["No", "--prefix", HOSTILE, "--model", str(checkpoint_file)]
    finished = subprocess.run([*DECODE, *arguments], capture_output=True, check=True)
    assert finished.stdout.decode().startswith(HOSTILE)


def test_columns_stand_below_each_other_by_the_width_of_a_terminal(capsys):  # N41
    words = ["Hund", "犬", "🐕‍🦺犬", "e\u0301\u0302", "\x1b[31m", "</s>"]
    rows = [WordStep(word, 0.5, [(word, 0.25)], [("dog", 1.0)]) for word in words]

    class Steps:
        translation = Translation("a", [])

        def __iter__(self):
            return iter(rows)

    display_steps(Steps(), as_json=False)
    heading, *lines = capsys.readouterr().out.splitlines()[: len(words) + 1]
    end, attended = heading.index("probability") + 11, heading.index("attended most")
    for line in lines:
        assert wcwidth.width(line[: line.index("0.500")]) + 5 == end
        assert wcwidth.width(line[: line.index("dog")]) == attended


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["No", "--input", "x"], "not both"),
        (["No", "--steps", "--output", "x"], "use it without --input and --output"),
        (["No", "--prefix", "a", "--prefix", "b"], "2 prefixes, but 1 sentences"),
        (["No", "--batch-size", "0"], "expected a whole number from 1, got '0'"),
        (["No", "--max-new", "many"], "expected a whole number from 1, got 'many'"),
        (["No", "--prefix", "Das\nist"], "a prefix must be one line"),
        (["No", "--model", ""], "argument --model: the path is empty"),
        (["--input", ""], "argument --input: the path is empty"),
        (["No", "--output", ""], "argument --output: the path is empty"),
        (["No", "--pre", "Das"], "unrecognized arguments: --pre"),
        (["No", "\udcfc"], r"'\xfc' is not UTF-8"),
        (
            ["No", "--beam", "0"],
            "--beam: expected a whole number from 1 to 1,000, got '0'",
        ),
        (["No", "--beam", "1001"], "expected a whole number from 1 to 1,000, got '1001'"),
        (["No", "--json"], "--json needs --steps"),
        (["-Nein"], "if a sentence begins with a dash, write -- before all sentences"),  # N33
        (["No", "--prefix", "-Nein"], "write such a prefix as --prefix=-TEXT"),
        (["\x1b[2J", "--\x1b[2J"], "--\\x1b[2J"),  # F09
        (["No", "--steps", "--beam", "2"], "--steps shows greedy search"),
        (["No", "--steps", "--n-best", "1"], "--steps shows greedy search"),
        (["No", "--beam", "2", "--n-best", "3"], "--n-best 3 needs --beam 3 or more"),
        (["No", "--length-penalty", "1"], "--length-penalty needs --beam 2 or more"),
        (
            ["No", "--beam", "2", "--length-penalty", "-1"],
            "from 0 to 10, got '-1'",
        ),
        (
            ["No", "--beam", "2", "--length-penalty", "nan"],
            "from 0 to 10, got 'nan'",
        ),
    ],
)
def test_an_invalid_command_line_exits_with_2(decode, capsys, arguments, complaint):
    with pytest.raises(SystemExit) as caught:
        decode(*arguments)
    assert caught.value.code == 2
    complained = capsys.readouterr().err
    assert complaint in complained
    assert complained.count("\n") == 1


def test_the_output_must_not_overwrite_the_input(decode, capsys, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("No\n")
    with pytest.raises(SystemExit) as caught:
        decode("--input", str(file), "--output", str(tmp_path / "." / "a.txt"))
    assert caught.value.code == 2
    assert "--input and --output are the same file" in capsys.readouterr().err
    assert file.read_text() == "No\n"


# F10
@pytest.mark.parametrize("command", ["decode", "attend"])
def test_a_place_that_cannot_be_written_is_named_before_the_work(tmp_path, capsys, command):
    locked = tmp_path / "locked.svg"
    locked.touch(0o444)
    for path in (locked, tmp_path / "none" / "x.svg", tmp_path / ("n" * 256 + ".svg")):
        code = cli.main([command, "No", "--output", str(path), "--model", "missing"])
        captured = capsys.readouterr()
        assert (code, captured.out) == (1, "")
        assert captured.err.startswith(f"translate: cannot write {path}: ")  # not the model
        assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [locked]


# F10
def test_an_output_that_fills_up_is_reported_in_one_line(decode, tmp_path):
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("this system has no /dev/full")
    code, out, err = decode("No", "--output", "/dev/full")
    assert (code, out) == (1, "")
    assert err[1:] == ["translate: cannot write /dev/full: No space left on device"]


# F10
def test_input_and_output_with_impossible_names_cause_no_traceback(decode, tmp_path):
    file = tmp_path / "in.txt"
    file.write_text("No\n")
    for name in ("n" * 256, "in.txt/x"):
        assert decode("--input", str(file), "--output", str(tmp_path / name))[0] == 1


def test_a_missing_input_is_named_also_beside_an_existing_output(decode, tmp_path):
    output = tmp_path / "out.txt"
    output.write_text("kept")
    missing = tmp_path / "missing.txt"
    code, _, err = decode("--input", str(missing), "--output", str(output))
    assert code == 1 and err[-1].startswith(f"translate: no such file: {missing}")
    assert output.read_text() == "kept"


def test_bad_data_is_reported_in_one_line_with_exit_code_1(decode, tmp_path, capsys):
    missing = tmp_path / "none.txt"
    code, out, err = decode("--input", str(missing))
    assert (code, out, len(err)) == (1, "", 1)
    assert err == [f"translate: no such file: {missing}"]
    code, _, err = decode("No", "--prefix", "Nein " * 100)
    assert (code, len(err)) == (1, 2)
    assert cli.main(["decode", "No", "--model", str(missing)]) == 1
    assert capsys.readouterr().err.startswith("translate: no such model")


# C09, D08, G11, G13
def test_a_pipe_is_answered_at_once_in_utf8_and_interrupted_without_a_traceback(checkpoint_file):
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment.pop("PYTHONIOENCODING", None)
    command = [*DECODE, "--model", str(checkpoint_file), "--prefix", "Ich bin mü"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=environment,
    ) as process:
        for _ in range(2):
            process.stdin.write(b"I am tired because I worked.\n")
            answer = process.stdout.readline().decode("utf-8")
            assert answer == "Ich bin müde, weil ich gearbeitet habe.\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read().decode().splitlines() == [f"model {checkpoint_file}"]


# G13
def test_a_reader_that_leaves_early_causes_no_traceback(checkpoint_file):
    command = [*DECODE, "--model", str(checkpoint_file)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        process.stdin.write(b"No\n")
        assert process.stdout.readline() == b"Nein\n"
        process.stdout.close()
        process.stdin.write(b"No\n" * 200)
        process.stdin.close()
        assert process.stderr.read().decode().splitlines() == [f"model {checkpoint_file}"]


def test_decoding_never_imports_lightning(checkpoint_file):
    code = (
        "import sys, translate\n"
        "assert 'torch' not in sys.modules\n"
        "from translate.cli import main\n"
        f"assert main(['decode', 'No', '--steps', '--model', {str(checkpoint_file)!r}]) == 0\n"
        "heavy = {'lightning', 'pytorch_lightning', 'matplotlib', 'sacrebleu', 'tensorboard',\n"
        "         'jsonargparse'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize(
    ("redirection", "code", "out", "err"),
    [
        ("<&-", 2, "", "translate: standard input is closed: give sentences, or a file"),
        (">&-", 1, "", "translate: standard output is closed"),
        ("2>&-", 0, "Nein\n", ""),
    ],
)
def test_a_closed_stream_is_reported_in_one_line(checkpoint_file, redirection, code, out, err):
    sentences = [] if redirection == "<&-" else ["No"]
    command = shlex.join([*DECODE, "--model", str(checkpoint_file), *sentences])
    finished = subprocess.run(
        ["bash", "-c", f"{command} {redirection}"], capture_output=True, text=True
    )
    assert (finished.returncode, finished.stdout) == (code, out)
    assert finished.stderr.startswith(err)
    assert len(finished.stderr.splitlines()) == bool(err)
