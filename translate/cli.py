"""The front door: one function a command. Each imports what it needs, so that help is instant.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 bad data
or a bad model, 2 a command line that cannot be meant, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from translate import __version__
from translate.commands.options import Parser
from translate.errors import UsageError, UserError

if TYPE_CHECKING:
    from translate.decoding.translation import Translation
    from translate.decoding.translator import Translator

_TRAINING = {
    "fit": "train a model from a config file",
    "validate": "score a model on the validation data",
    "test": "score a model on the test data and the challenge files",
}
_COMMANDS = {
    **_TRAINING,
    "decode": "translate sentences, or complete their translations",
    "attend": "draw which words look at which",
    "trace": "go through the stages of attention, shape by shape",
    "check": "say what is wrong with files before training on them",
    "template": "write a commented config for your own sentence pairs",
}


def main(argv: Sequence[str]) -> int:
    """Run one command; returns its exit code. `argv` is the command line without the program."""
    parser = _front_parser()
    first = argv[0] if argv else ""
    if first.startswith("-") and (command := next((a for a in argv if a in _COMMANDS), None)):
        parser.error(f"put {first} after the command: translate {command} {first} ...")
    command = parser.parse_args(argv[:1]).command
    try:
        if command in _TRAINING:
            from translate.training.cli import main as train

            return train(list(argv))
        if command == "attend":
            from translate.commands.attend import main as attend

            return attend(argv[1:])
        if command == "trace":
            from translate.commands.trace import main as trace

            return trace(argv[1:])
        if command == "check":
            from translate.commands.check import main as check

            return check(argv[1:])
        if command == "template":
            from translate.commands.template import main as template

            return template(argv[1:])
        return decode(argv[1:])
    except UserError as error:
        _say(str(error))
        return error.exit_code


def entry_point() -> NoReturn:
    """The console script: `main` for a real process, with its streams and signals."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        # A locale such as C would garble file names and config files: once more, in UTF-8 mode.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    if sys.stderr is None:  # closed: what is meant for it must not end up among the results
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (never closed)
    if sys.stdout is None:
        _say("standard output is closed, so nothing can be answered")
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):  # UTF-8, whatever the environment says
        # Only a file's name can hold what is no UTF-8: "\udcf6" stands for its byte F6.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to interrupt but the exit
    except KeyboardInterrupt:
        code = 130
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # that is `| head`: no reader, no fault
            results = f"cannot write the results: {error.strerror}; what is there is not complete"
            _say(str(error) if error.filename else results)
        # Python flushes standard output once more at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 1
    sys.exit(code)


def _front_parser() -> Parser:
    commands = "\n".join(f"  {name:<10} {what}" for name, what in _COMMANDS.items())
    parser = Parser(
        prog="translate",
        usage="translate COMMAND ...",
        description="Train a small transformer from English to German and watch it translate.",
        epilog=f"commands:\n{commands}\n\n`translate COMMAND --help` says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"translate {__version__}")
    parser.add_argument("command", choices=_COMMANDS, help=argparse.SUPPRESS)
    return parser


def decode(argv: Sequence[str]) -> int:
    """`translate decode`: sentences from arguments, a file or standard input."""
    from translate.commands.options import parse
    from translate.io import check_writable, write_whole

    args = parse(argv)
    if args.output:
        check_writable(args.output)
    groups = _sentence_groups(args)

    from translate.commands.steps import show
    from translate.decoding.checkpoint import find_model
    from translate.decoding.translator import Translator
    from translate.insight.steps import Steps

    path = find_model(args.model)
    _say(f"model {path}")
    translator = Translator.load(path)

    unit = "sentence" if args.sentences else "line"
    texts: list[str] = []
    first = 1
    for sentences in groups:
        prefixes = args.prefix if len(args.prefix) > 1 else (args.prefix or [""]) * len(sentences)
        numbers = range(first, first + len(sentences))
        first += len(sentences)
        if args.steps:
            for number, sentence, prefix in zip(numbers, sentences, prefixes, strict=True):
                steps = Steps(translator, sentence, prefix, max_new=args.max_new)
                _tell(f"{unit} {number}", show(steps, as_json=args.json))
            continue
        found = _translate(translator, sentences, prefixes, args)
        for number, translations in zip(numbers, found, strict=True):
            _tell(f"{unit} {number}", translations[0])
            for each in translations:
                score = f"{number}\t{each.score:.4f}\t" if args.n_best else ""
                texts.append(f"{score}{each.text}\n")
        if not args.output:
            print("".join(texts), end="", flush=True)
            texts = []
    if args.output:
        write_whole(args.output, "".join(texts).encode())
    return 0


def _sentence_groups(args: argparse.Namespace) -> Iterable[list[str]]:
    """The sentences; those that can be translated together stand together."""
    if args.sentences:
        return [args.sentences]
    if args.input:
        from translate.text.text_files import read_lines

        return [read_lines(args.input)]

    from translate.io import waiting_lines

    if sys.stdin is None:
        raise UsageError("standard input is closed: give sentences, or a file with --input")
    if sys.stdin.isatty():
        _say("one sentence a line, Ctrl-D to end")
    return waiting_lines(sys.stdin.buffer)


def _translate(
    translator: Translator,
    sentences: Sequence[str],
    prefixes: Sequence[str],
    args: argparse.Namespace,
) -> list[list[Translation]]:
    """Of each sentence the K best translations with --n-best K, the best alone without it."""
    options = {"batch_size": args.batch_size, "max_new": args.max_new, "beam": args.beam}
    if args.length_penalty is not None:
        options["length_penalty"] = args.length_penalty
    with _progress(len(sentences) if args.input else 0) as options["progress"]:
        if args.n_best:
            found = translator.n_best(sentences, prefixes, **options)
            return [translations[: args.n_best] for translations in found]
        return [[best] for best in translator.translate_detailed(sentences, prefixes, **options)]


@contextmanager
def _progress(lines: int) -> Iterator[Callable[[int], None]]:
    """What to tell how many more of so many `lines` are done: a bar where a person looks on."""
    if not lines or not sys.stderr.isatty():
        yield lambda done: None
        return
    from tqdm import tqdm

    with tqdm(total=lines, unit=" lines") as bar:

        def advance(done: int) -> None:
            with bar.get_lock():  # batches end on several threads
                bar.update(done)

        yield advance


def _tell(name: str, translation: Translation) -> None:
    for note in translation.notes():
        _say(f"{name}: {note}")


def _say(message: str) -> None:
    print(f"translate: {message}", file=sys.stderr, flush=True)
