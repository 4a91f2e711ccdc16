"""The tables of `translate test`, and the files with translations and scores."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from translate.decoding.translator import Translator
from translate.errors import UserError
from translate.evaluation.evaluate import Evaluation, evaluate
from translate.evaluation.scores import RELIABLE_SENTENCES
from translate.io import check_can_create, write_atomically
from translate.text.corpus import Pair, ParallelFiles

logger = logging.getLogger(__name__)


def report(
    translator: Translator,
    pairs: Sequence[Pair],
    *,
    name: str,
    beam: int,
    length_penalty: float,
    checkpoint: str,
    results_path: Callable[[str], Path],
) -> Iterator[str]:
    """Translate with greedy search and with beam search; yield the lines of both tables.

    After each table, the translations and their scores are written to files. If this is not
    possible, a warning says so before the work starts.

    Args:
        name: name of the sentences: "test", or the name of the file given with --input.
        beam: beam width; 1 means greedy search only.
        length_penalty: length penalty of beam search.
        checkpoint: file name of the model, written beside the scores.
        results_path: returns the path of results without suffix, for a name such as "test.greedy".
    """
    logged: set[str] = set()
    searches: dict[str, dict[str, Any]] = {"greedy": {}}
    if beam > 1:
        searches[f"beam {beam}"] = {"beam": beam, "length_penalty": length_penalty}
    files = {search: results_path(f"{name}.{search.replace(' ', '')}") for search in searches}
    try:
        for path in files.values():
            check_can_create(Path(f"{path}_2.json"))
    except UserError as error:
        logger.warning("translations and scores are only printed, not saved: %s", error)
        files = {}
    for search, settings in searches.items():
        result = evaluate(translator, pairs, **settings, full=True)
        if settings:
            yield ""
        yield f"{name}: {len(pairs)} sentences, {search}"
        yield from _table(result)
        for note in result.notes:
            if note not in logged:  # both searches have the same notes about the sources
                logger.info("%s, %s: %s", name, search, note)
        logged.update(result.notes)
        values = {"checkpoint": checkpoint, "search": search, **settings}
        if files:
            _save(result, values, files[search])


def report_challenges(translator: Translator, files: Sequence[Path]) -> Iterator[str]:
    """Translate each challenge file with greedy search; yield one line per file."""
    if files:
        yield ""
        yield f"{'challenge, greedy':<17} {'exactly right':>20} {'BLEU':>7} {'chrF':>7}"
    for path in files:
        corpus = ParallelFiles(tsv=path).read("data.challenge")
        for entry in corpus.left_out:
            logger.info("data.challenge: %s", entry)
        result = evaluate(translator, corpus.pairs)
        exact = _share(result.scores.exact, len(corpus.pairs))
        yield f"{path.stem:<17} {exact:>20} {result.scores.bleu:7.2f} {result.scores.chrf:7.2f}"
        for note in result.notes:
            logger.info("%s: %s", path.stem, note)


def _table(result: Evaluation) -> Iterator[str]:
    for name, metric in result.scores.metrics.items():
        interval = "" if metric.interval is None else "{:.2f} to {:.2f}".format(*metric.interval)
        yield f"{name:<15} {metric.value:6.2f}  95 %: {interval:<15}  {metric.signature}"
    if result.scores.sentences < RELIABLE_SENTENCES:
        yield f"{'95 % intervals':<15} unreliable: fewer than {RELIABLE_SENTENCES} sentences"
    yield f"{'length ratio':<15} {result.scores.length_ratio:7.3f}"
    for name, number in {"exactly right": result.scores.exact, **result.counts}.items():
        yield f"{name.replace('_', ' '):<15} {_share(number, len(result.outputs))}"


def _share(part: int, count: int) -> str:
    return f"{part / count:.1%} ({part} of {count})"


def _save(result: Evaluation, values: dict[str, Any], path: Path) -> None:
    """Write the translations, one per line, and the scores as JSON."""
    values = {**values, **asdict(result.scores), **result.counts}
    contents = {
        ".txt": "".join(f"{output}\n" for output in result.outputs).encode(),
        ".json": (json.dumps(values, indent=2) + "\n").encode(),
    }
    first, number = path, 1
    while not all(_is_free(Path(f"{path}{end}"), content) for end, content in contents.items()):
        logger.info("%s.txt: existing result files are never overwritten", path)
        number += 1
        path = first.with_name(f"{first.name}_{number}")
    for suffix, content in contents.items():
        write_atomically(Path(f"{path}{suffix}"), content)
    logger.info("translations: %s.txt, scores: %s.json", path, path)


def _is_free(path: Path, content: bytes) -> bool:
    """Return whether `path` does not exist, or has this content already."""
    with contextlib.suppress(OSError):
        return path.read_bytes() == content
    return not os.path.lexists(path)
