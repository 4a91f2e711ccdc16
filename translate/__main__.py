"""Run the command line: `python -m translate` is the same as `translate`."""

from translate.cli import entry_point

if __name__ == "__main__":
    entry_point()
