"""Run the command line: `python -m translate` is the same as `translate`."""

import sys

from translate.cli import entry_point

if __name__ == "__main__":
    sys.argv[0] = "translate"  # the program's name in usage messages, instead of __main__.py
    entry_point()
