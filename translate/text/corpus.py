"""Parallel text of every format to pairs."""

from __future__ import annotations

import dataclasses
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from translate.errors import UsageError
from translate.text.faults import Fault, Findings
from translate.text.filters import Filters, LeftOut, PairFilter, Tally
from translate.text.formats import Row, aligned_rows, table_rows
from translate.text.normalize import normalize
from translate.text.records import hub_rows, json_rows, parquet_rows
from translate.text.sentences import SentenceWatch


class Pair(NamedTuple):
    """A source sentence and its translation, as they stand in the file."""

    source: str
    target: str


@dataclass(frozen=True)
class Corpus:
    """Pairs in the order of the files, where each comes from, and what was left out.

    Args:
        pairs: the text as it stands in the files.
        left_out: one entry a reason.
        lines: of each pair, its line in its file (of the source, where there are two).
        starts: of each source, the index of its first pair, and its `names`.
    """

    pairs: list[Pair]
    left_out: list[LeftOut]
    lines: array[int]
    starts: list[tuple[int, tuple[str, str]]]

    def place(self, index: int) -> str:
        """Where a pair stands: "FILE:LINE"."""
        return "{}:{}".format(*self.file_and_line(index))

    def file_and_line(self, index: int, side: int = 0) -> tuple[str, int]:
        """The two parts of `place`; where the target of the pair stands for `side` 1."""
        start = bisect_right(self.starts, index, key=lambda entry: entry[0]) - 1
        return self.starts[start][1][side], self.lines[index]

    @cached_property
    def characters(self) -> set[str]:
        """Those of the normalised text, white space aside."""
        found: set[str] = set()
        for pair in self.pairs:
            for text in pair:
                found.update(text if text.isascii() else normalize(text))
        return {character for character in found if not character.isspace()}


@dataclass
class ParallelFiles:
    """Where parallel text lies: `source` and `target` line by line, or one of the other forms.

    Files may be plain or compressed (gzip, xz, zstandard), whatever their names say. Text is
    UTF-8; XML says itself what it is.

    Args:
        source: file with one source sentence a line.
        target: file with its translations, line for line.
        tsv: a file with a pair a line, separated by tabs; quotes mean nothing.
        columns: which columns of `tsv` hold source and target, counted from 1.
        tmx: a translation memory.
        languages: codes of source and target in `tmx`; "en" means "en-US" and "EN" too.
        jsonl: a file with a JSON object a line.
        parquet: a Parquet file; needs the datasets library.
        hub: name of a dataset of the Hugging Face hub, which is downloaded; needs that library too.
        subset: which configuration of the `hub` dataset, "de-en" for example.
        split: which part of the `hub` dataset.
        fields: names of source and target in `jsonl`, `parquet` or `hub`; "translation.en" is
            "en" within "translation".

    In a YAML file a relative path is meant from that file, elsewhere from the working directory.
    """

    source: Path | None = None
    target: Path | None = None
    tsv: Path | None = None
    columns: tuple[int, int] = (1, 2)
    tmx: Path | None = None
    languages: tuple[str, str] = ("en", "de")
    jsonl: Path | None = None
    parquet: Path | None = None
    hub: str | None = None
    subset: str | None = None
    split: str = "train"
    fields: tuple[str, str] = ("en", "de")

    def read(self, setting: str = "") -> Corpus:
        """The pairs of this source alone, without filters: see `read_corpus`."""
        return read_corpus(self, setting)

    @property
    def names(self) -> tuple[str, str]:
        """The files of the source and of the target, which may be the same one."""
        single = self.tsv or self.tmx or self.jsonl or self.parquet or self.hub
        return (str(single), str(single)) if single else (str(self.source), str(self.target))

    def rows(self, setting: str, left_out: Tally) -> Iterator[Row]:
        """(line, source, target), blank ones too; what is no pair goes to `left_out`.

        Raises:
            UserError: see `read_corpus`.
        """
        self.check(setting)
        prefix = f"{setting}." if setting else ""
        if self.tsv is not None:
            return table_rows(self.tsv, self.columns, prefix, left_out)
        if self.tmx is not None:
            from translate.text.tmx import tmx_rows  # lxml is slow to import

            return tmx_rows(self.tmx, self.languages, prefix, left_out)
        if self.jsonl is not None:
            return json_rows(self.jsonl, self.fields, prefix, left_out)
        if self.parquet is not None:
            return parquet_rows(self.parquet, self.fields, prefix, left_out)
        if self.hub is not None:
            return hub_rows(self.hub, self.subset, self.split, self.fields, prefix, left_out)
        return aligned_rows(self.source, self.target, prefix, left_out)

    def check(self, setting: str = "") -> None:
        """Refuse settings that contradict each other, before any file is opened.

        Raises:
            UsageError: with what to set.
        """
        prefix = f"{setting}." if setting else ""
        given = [
            name
            for name in ("tsv", "tmx", "jsonl", "parquet", "hub", "source", "target")
            if getattr(self, name) is not None
        ]
        if len(given) > 1 and given != ["source", "target"]:
            raise UsageError(
                f"{prefix}{given[0]} and {prefix}{given[1]} are both set: give either one file "
                "or a source and a target file (null takes back what a config file sets)"
            )
        if not given or given in (["source"], ["target"]):
            missing = "target" if given == ["source"] else "source"
            hint = "" if given else f", or {prefix}tsv for one file with both"
            raise UsageError(f"{prefix}{missing} is not set: give the path of its text file{hint}")
        if given == ["source", "target"] and self.source == self.target:
            raise UsageError(f"{prefix}source and {prefix}target are the same file: {self.source}")
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for option, forms in _OPTIONS.items():
            if getattr(self, option) != defaults[option] and given[0] not in forms:
                raise UsageError(
                    f"{prefix}{option} is set, but it belongs to {' or '.join(forms)}, "
                    f"not to {given[0]}"
                )
        if min(self.columns) < 1:
            raise UsageError(f"{prefix}columns is {list(self.columns)}: columns count from 1")
        for option in ("columns", "languages", "fields"):
            first, second = getattr(self, option)
            if first == second:
                raise UsageError(f"{prefix}{option}: source and target are both {first}")


# Which forms an option belongs to.
_OPTIONS = {
    "columns": ("tsv",),
    "languages": ("tmx",),
    "subset": ("hub",),
    "split": ("hub",),
    "fields": ("jsonl", "parquet", "hub"),
}


def read_corpus(
    sources: ParallelFiles | list[ParallelFiles],
    setting: str = "",
    filters: Filters | None = None,
    findings: Findings | None = None,
) -> Corpus:
    """Read the pairs of one source, or of several, one after the other.

    A pair that is blank on either side is always left out: there is nothing to learn from it and
    nothing to score. "Blank" is what `normalize` leaves nothing of. Without `filters` nothing
    else is: pairs to validate and to test on come as the files have them.

    Args:
        setting: the section's name ("data.train"), for messages only.
        findings: take what is wrong with the text. Those of `translate check` are not strict and
            take what is unsafe too; by default that is raised.

    Raises:
        UserError: contradicting settings, an unreadable file, unequal line counts, no pairs.
    """
    findings = Findings(strict=True) if findings is None else findings
    unsafe = findings.unsafe()
    left_out = Tally(findings)
    judge = PairFilter(filters)
    pairs: list[Pair] = []
    lines = array("Q")
    starts = []
    for name, files in named_sources(sources, setting):
        starts.append((len(pairs), files.names))
        watches = [SentenceWatch(file, findings) for file in dict.fromkeys(files.names)]
        with findings.collect(files.names[0]):
            for line, source, target in files.rows(name, left_out):
                pair = Pair(source, target)
                if len(watches) == 1:
                    watches[0].look(line, *pair)
                else:
                    for watch, text in zip(watches, pair, strict=True):
                        watch.look(line, text)
                reason = judge.fault(pair)
                if reason is None:
                    pairs.append(pair)
                    lines.append(line)
                else:
                    file = files.names[reason.kind == "blank-target"]
                    left_out.add(reason, file, line, *pair)
        for watch in watches:
            watch.finish()
    if not pairs:
        name = " and ".join(dict.fromkeys(files.names))
        reasons = "; ".join(map(str, left_out.entries())) or f"{name} holds none"
        what = f"no sentence pairs in {setting or 'the data'}: {reasons}"
        if not findings.unsafe() - unsafe:
            findings.add(Fault("no-pairs", files.names[0], what=what))
    return Corpus(pairs, left_out.entries(), lines, starts)


def named_sources(
    sources: ParallelFiles | list[ParallelFiles], setting: str
) -> list[tuple[str, ParallelFiles]]:
    """Each source with its name: "data.train", or "data.train[1]" and so on in a list.

    Raises:
        UsageError: an empty list.
    """
    if isinstance(sources, ParallelFiles):
        return [(setting, sources)]
    if not sources:
        raise UsageError(f"{setting or 'the data'} is an empty list: name a file")
    return [(f"{setting}[{number}]", files) for number, files in enumerate(sources, 1)]
