"""Read parallel text of every format into sentence pairs."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from translate.errors import UsageError
from translate.text.filters import Filters, PairFilter
from translate.text.formats import Rows, hub_rows, json_rows, parquet_rows
from translate.text.line_checks import LineChecker
from translate.text.normalize import normalize
from translate.text.problems import LeftOut, Problem, ProblemLog, excerpt
from translate.text.tables import Columns, aligned_rows, table_rows
from translate.text.tmx import tmx_rows


class Pair(NamedTuple):
    """A source sentence and its translation, not normalised."""

    source: str
    target: str


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs in the order of the files, and where each of them comes from.

    Args:
        pairs: the text of the files, not normalised.
        lines: for each pair, its line number (the same in both files of aligned text).
        starts: for each source of pairs, the index of its first pair, and the names of its files.
        left_out: the pairs that were left out, one entry per reason.
        problems: what is wrong with the files.
    """

    pairs: list[Pair]
    lines: array[int]
    starts: list[tuple[int, tuple[str, str]]]
    left_out: list[LeftOut]
    problems: list[Problem] = field(compare=False)

    def place(self, index: int) -> str:
        """Return "FILE:LINE" of a pair."""
        return "{}:{}".format(*self.file_and_line(index))

    def file_and_line(self, index: int, side: int = 0) -> tuple[str, int]:
        """Return the file and the line of the source (side 0) or the target (side 1) of a pair."""
        start = bisect_right(self.starts, index, key=lambda entry: entry[0]) - 1
        return self.starts[start][1][side], self.lines[index]

    def problem(self, kind: str, indices: Sequence[int], side: int = 0, what: str = "") -> Problem:
        """Return a problem that the pairs at `indices` have; the first of them is the example."""
        place, example = self.file_and_line(indices[0], side), excerpt(*self.pairs[indices[0]])
        return Problem(kind, *place, what=what, example=example, count=len(indices))


def characters(pairs: Iterable[Pair]) -> set[str]:
    """Return the characters of the normalised text, without white space."""
    found: set[str] = set()
    for pair in pairs:
        for text in pair:
            found.update(text if text.isascii() else normalize(text))
    return {character for character in found if not character.isspace()}


@dataclass
class ParallelFiles:
    """The files of parallel text: `source` and `target`, aligned line by line, or another format.

    Files may be plain or compressed (gzip, xz, zstandard), with any name. Text is UTF-8; XML files
    declare their encoding.

    Args:
        source: file with one source sentence per line.
        target: file with the translations, line n for line n.
        tsv: file with one pair per line, separated by tabs; quotes have no meaning. A file whose
            name ends in .csv is read as CSV, with commas, semicolons or tabs, and quotes.
        columns: which columns of `tsv` hold source and target: numbers counted from 1, or the
            names in its first row.
        tmx: a translation memory.
        languages: codes of source and target in `tmx`; "en" means "en-US" and "EN" too.
        jsonl: file with one JSON object per line.
        parquet: a Parquet file; needs the datasets library.
        hub: name of a dataset on the Hugging Face hub, to download; needs the datasets library.
        subset: which configuration of the `hub` dataset, for example "de-en".
        split: which split of the `hub` dataset.
        fields: names of source and target in `jsonl`, `parquet` or `hub`; "translation.en" is
            "en" within "translation".

    Paths in a config file are relative to that file, others to the working directory.
    """

    source: Path | None = None
    target: Path | None = None
    tsv: Path | None = None
    columns: Columns = (1, 2)
    tmx: Path | None = None
    languages: tuple[str, str] = ("en", "de")
    jsonl: Path | None = None
    parquet: Path | None = None
    hub: str | None = None
    subset: str | None = None
    split: str = "train"
    fields: tuple[str, str] = ("en", "de")

    def read(self, setting: str = "") -> Corpus:
        """Read the pairs of this source alone, without filters: see `read_corpus`."""
        return read_corpus(self, setting)

    @property
    def given(self) -> list[str]:
        """The settings that name files: "source" and "target", or one of the other formats."""
        return [name for name in (*_FORMATS, "source", "target") if getattr(self, name) is not None]

    @property
    def names(self) -> tuple[str, str]:
        """The files of source and target, which may be the same one."""
        files = [str(getattr(self, name)) for name in self.given]
        return files[0], files[-1]

    def rows(self, setting: str, log: ProblemLog) -> Rows:
        """Return (line, source, target) of each row, blank ones too; problems go to `log`.

        Raises:
            UserError: see `read_corpus`.
        """
        prefix = f"{setting}." if setting else ""
        if self.source is not None and self.target is not None:
            return aligned_rows(self.source, self.target, prefix, log)
        (name,) = self.given
        read_rows, options = _FORMATS[name]
        settings = {option: getattr(self, option) for option in options}
        return read_rows(getattr(self, name), **settings, setting=f"{prefix}{name}", log=log)

    def check(self, setting: str = "") -> None:
        """Check that the settings do not contradict each other, without opening a file.

        Raises:
            UsageError: they do; the message says what to set.
        """
        prefix = f"{setting}." if setting else ""
        given = self.given
        if len(given) > 1 and given != ["source", "target"]:
            raise UsageError(
                f"{prefix}{given[0]} and {prefix}{given[1]} are both set: give either one file "
                "or a source and a target file (null unsets what a config file sets)"
            )
        if not given or given in (["source"], ["target"]):
            missing = "target" if given == ["source"] else "source"
            hint = "" if given else f", or {prefix}tsv for one file with both"
            raise UsageError(f"{prefix}{missing} is not set: give the path of its text file{hint}")
        if self.source is not None and self.source == self.target:
            raise UsageError(f"{prefix}source and {prefix}target are the same file: {self.source}")
        for option in ("columns", "languages", "subset", "split", "fields"):
            names = [name for name, (_, options) in _FORMATS.items() if option in options]
            if given[0] not in names and getattr(self, option) != getattr(ParallelFiles, option):
                raise UsageError(
                    f"{prefix}{option} is set, but it belongs to {' or '.join(names)}, "
                    f"not to {given[0]}"
                )
        if any(isinstance(column, int) and column < 1 for column in self.columns):
            raise UsageError(f"{prefix}columns is {list(self.columns)}: columns count from 1")
        for option in ("columns", "languages", "fields"):
            first, second = getattr(self, option)
            if first == second:
                raise UsageError(f"{prefix}{option}: source and target are both {first}")


Sources = ParallelFiles | list[ParallelFiles]

# The formats with both languages in one file: the function that reads each, and its settings.
_FORMATS: dict[str, tuple[Callable[..., Rows], tuple[str, ...]]] = {
    "tsv": (table_rows, ("columns",)),
    "tmx": (tmx_rows, ("languages",)),
    "jsonl": (json_rows, ("fields",)),
    "parquet": (parquet_rows, ("fields",)),
    "hub": (hub_rows, ("subset", "split", "fields")),
}


def read_corpus(
    sources: Sources,
    setting: str = "",
    filters: Filters | None = None,
    *,
    strict: bool = True,
) -> Corpus:
    """Read the pairs of one source, or of several, one after the other.

    A pair with a blank side is always left out: there is nothing to learn from it and nothing to
    score. "Blank" means that `normalize` returns an empty text.

    Args:
        setting: the section's name ("data.train"), for messages only.
        filters: which other pairs are left out; None for validation and test pairs.
        strict: raise the first unsafe problem. Otherwise `Corpus.problems` lists unsafe problems
            too, for `translate check`.

    Raises:
        UserError: contradictory settings, an unreadable file, unequal line counts, no pairs.
    """
    log = ProblemLog(strict=strict)
    pair_filter = PairFilter(filters)
    pairs: list[Pair] = []
    lines = array("Q")
    starts = []
    for name, files in named_sources(sources, setting):
        files.check(name)
        starts.append((len(pairs), files.names))
        checkers = [LineChecker(file, log) for file in dict.fromkeys(files.names)]
        with log.catch(files.names[0]):
            for line, source, target in files.rows(name, log):
                pair = Pair(source, target)
                by_file = (pair,) if len(checkers) == 1 else zip(pair)
                for checker, texts in zip(checkers, by_file, strict=True):
                    checker.check(line, *texts)
                if reason := pair_filter.reason(pair):
                    file = files.names[reason[0] == "blank-target"]
                    log.leave_out(*reason, file, line, *pair)
                else:
                    pairs.append(pair)
                    lines.append(line)
        for checker in checkers:
            checker.finish()
    if not pairs and not log.unsafe:
        name = " and ".join(dict.fromkeys(files.names))
        reasons = "; ".join(map(str, log.left_out.values())) or f"{name} has none"
        what = f"no sentence pairs in {setting or 'the data'}: {reasons}"
        log.add(Problem("no-pairs", files.names[0], what=what))
    return Corpus(pairs, lines, starts, list(log.left_out.values()), list(log))


def named_sources(sources: Sources, setting: str) -> list[tuple[str, ParallelFiles]]:
    """Return each source with its name: "data.train", or "data.train[1]" and so on in a list.

    Raises:
        UsageError: an empty list.
    """
    if isinstance(sources, ParallelFiles):
        return [(setting, sources)]
    if not sources:
        raise UsageError(f"{setting or 'the data'} is an empty list: name a file")
    return [(f"{setting}[{number}]", files) for number, files in enumerate(sources, 1)]
