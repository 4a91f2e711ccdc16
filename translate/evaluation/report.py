"""What `translate test` prints, and what it leaves beside the model."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from translate.decoding.translator import Translator
from translate.errors import UsageError
from translate.evaluation.evaluate import Evaluation, evaluate
from translate.io import write_atomically
from translate.text.corpus import Pair, ParallelFiles
from translate.training.config_errors import say
from translate.training.run_folder import RunFolder


def other_pairs(source: Path | None, reference: Path | None) -> list[Pair] | None:
    """The pairs of --input and --reference, line by line; None if neither is given.

    A pair that is blank on either side is left out, as in the files of a config, and counted.

    Raises:
        UsageError: one without the other, or one file for both.
        UserError: a file that cannot be read, unequal counts, nothing but blank lines.
    """
    if source is None and reference is None:
        return None
    if source is None or reference is None:
        given, missing = ("input", "reference") if reference is None else ("reference", "input")
        raise UsageError(
            f"--{given} without --{missing}: line n of one belongs to that of the other"
        )
    if source == reference:
        raise UsageError(f"--input and --reference are the same file: {source}")
    corpus = ParallelFiles(source=source, target=reference).read()
    for entry in corpus.left_out:
        say(str(entry))
    return corpus.pairs


def report(
    translator: Translator,
    pairs: Sequence[Pair],
    *,
    name: str,
    checkpoint: Path,
    beam: int,
    length_penalty: float,
) -> None:
    """Translate with greedy search and with beam search; print both tables, leave both files.

    Args:
        name: of the set of sentences: "test", or the name of the file given with --input.
        checkpoint: where the model came from; the files are written beside it.
        beam: hypotheses at a time; 1 leaves greedy search alone.
        length_penalty: of beam search.
    """
    said: set[str] = set()
    for width in dict.fromkeys((1, beam)):
        search = "greedy" if width == 1 else f"beam {width}"
        settings = {} if width == 1 else {"beam": width, "length_penalty": length_penalty}
        result = evaluate(translator, pairs, **settings, full=True)
        gap = "" if width == 1 else "\n"
        print(f"{gap}{name}: {len(pairs)} sentences, {search}")
        print("\n".join(_table(result)), flush=True)
        for note in result.notes:
            if note not in said:  # greedy search has said what there is to say about the sources
                say(f"{name}, {search}: {note}")
        said.update(result.notes)
        values = {"checkpoint": checkpoint.name, "search": search, **settings}
        _save(result, values, checkpoint, f"{name}.{search.replace(' ', '')}")


def report_challenges(translator: Translator, files: Sequence[Path]) -> None:
    """A line for each challenge file, greedy."""
    if files:
        print(f"\n{'challenge, greedy':<17} {'exactly right':>20} {'BLEU':>7} {'chrF':>7}")
    for path in files:
        corpus = ParallelFiles(tsv=path).read("data.challenge")
        for entry in corpus.left_out:
            say(f"data.challenge: {entry}")
        result = evaluate(translator, corpus.pairs)
        columns = f"{_share(result.scores.exact, len(corpus.pairs)):>20} "
        columns += f"{result.scores.bleu:7.2f} {result.scores.chrf:7.2f}"
        print(f"{path.stem:<17} {columns}", flush=True)
        for note in result.notes:
            say(f"{path.stem}: {note}")


def _table(result: Evaluation) -> list[str]:
    lines = []
    for name, metric in result.scores.metrics.items():
        interval = "" if metric.interval is None else "{:.2f} to {:.2f}".format(*metric.interval)
        lines.append(f"{name:<15} {metric.value:6.2f}  95 %: {interval:<15}  {metric.signature}")
    lines.append(f"{'length ratio':<15} {result.scores.length_ratio:7.3f}")
    counts = {"exactly right": result.scores.exact, **result.counts}
    for name, number in counts.items():
        lines.append(f"{name.replace('_', ' '):<15} {_share(number, len(result.outputs))}")
    return lines


def _share(part: int, count: int) -> str:
    return f"{part / count:.1%} ({part} of {count})"


def _save(result: Evaluation, values: dict[str, Any], checkpoint: Path, name: str) -> None:
    """Write the translations, a line each, and the scores as JSON beside the model.

    In the run's folder; a model that lies elsewhere has them beside its file. Unless the model is
    a run's best, its name stands before theirs: of two models in one place each keeps its own.
    """
    run = RunFolder.of_checkpoint(checkpoint)
    folder = checkpoint.parent if run is None else run.path
    if run is None or checkpoint.stem != "best":
        name = f"{checkpoint.stem}.{name}"
    values = {**values, **asdict(result.scores), **result.counts}
    texts = {
        ".txt": "".join(f"{output}\n" for output in result.outputs),
        ".json": json.dumps(values, indent=2) + "\n",
    }
    stem = _free(folder / name, texts)
    for ending, text in texts.items():
        write_atomically(Path(f"{stem}{ending}"), text.encode())
    say(f"translations: {stem}.txt, scores: {stem}.json")


def _free(stem: Path, texts: dict[str, str]) -> Path:
    """`stem`, or with the first number at which nothing else stands: results are not replaced."""
    place, number = stem, 1
    while not all(_is_free(Path(f"{place}{ending}"), text) for ending, text in texts.items()):
        say(f"{place}.txt: other results stand there and stay as they are")
        number += 1
        place = stem.with_name(f"{stem.name}_{number}")
    return place


def _is_free(path: Path, text: str) -> bool:
    if not os.path.lexists(path):
        return True
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False
