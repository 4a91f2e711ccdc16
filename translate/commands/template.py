"""`translate template`: print or write the commented config for your own sentence pairs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files

from translate.commands.options import Parser, file_path
from translate.errors import UsageError
from translate.io import check_writable, write_atomically


def main(argv: Sequence[str]) -> int:
    """Write the packaged config to the given file, or print it when no file is given."""
    parser = Parser(
        prog="translate template",
        description="Write a commented config for training on your own sentence pairs.",
    )
    parser.add_argument(
        "file", nargs="?", type=file_path, metavar="FILE", help="default: print to standard output"
    )
    file = parser.parse_args(argv[1:]).file
    template = files("translate.commands").joinpath("template.yaml").read_bytes()
    if file is None:
        print(template.decode(), end="")
        return 0
    if os.path.lexists(file):
        raise UsageError(f"{file} already exists; choose another name or delete the file first")
    check_writable(file)
    write_atomically(file, template)
    return 0
