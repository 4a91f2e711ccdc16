"""Translate pairs and score what comes out: validation and `translate test` do the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from translate.decoding.translator import Translator
from translate.text.corpus import Pair, ParallelFiles
from translate.training.data import TranslationData
from translate.training.messages import say
from translate.training.scores import Scores, copying, score


class Evaluation(NamedTuple):
    """`notes`: what a reader of the scores should know, a line each."""

    outputs: list[str]
    scores: Scores
    notes: list[str]


def evaluate(translator: Translator, pairs: Sequence[Pair]) -> Evaluation:
    """The model gets the source alone; references are used only to score what came out."""
    sources = [pair.source for pair in pairs]
    translations = translator.translate_detailed(sources)
    outputs = [translation.text for translation in translations]
    notes = []
    if cut := sum(bool(translation.dropped) for translation in translations):
        notes.append(f"{cut} of {len(pairs)} sources are longer than max_length and were cut")
    if strange := [translation.unknown for translation in translations if translation.unknown]:
        notes.append(
            f"{len(strange)} of {len(pairs)} sources have characters that the model has never "
            f"seen, such as {strange[0][0]!r}"
        )
    if endless := sum(translation.limit_reached for translation in translations):
        notes.append(f"{endless} of {len(pairs)} translations were stopped by the length limit")
    if warning := copying(sources, outputs):
        notes.append(warning)
    return Evaluation(outputs, score(outputs, [pair.target for pair in pairs]), notes)


def print_scores(translator: Translator, data: TranslationData) -> None:
    """Scores of the test set and of each challenge file on standard output."""
    _, scores, notes = evaluate(translator, data.read("test"))
    print(f"test: {scores.sentences} sentences, greedy")
    print(f"BLEU {scores.bleu:6.2f}  {scores.bleu_signature}")
    print(f"chrF {scores.chrf:6.2f}  {scores.chrf_signature}")
    print(f"exactly right {_share(scores)}")
    for note in notes:
        say(f"test: {note}")
    files = data.challenge_files()
    if files:
        print(f"\n{'challenge':<16} {'exactly right':>20} {'BLEU':>7} {'chrF':>7}")
    for path in files:
        pairs = ParallelFiles(tsv=path).read("data.challenge").pairs
        _, scores, notes = evaluate(translator, pairs)
        columns = f"{_share(scores):>20} {scores.bleu:7.2f} {scores.chrf:7.2f}"
        print(f"{path.stem:<16} {columns}", flush=True)
        for note in notes:
            say(f"{path.stem}: {note}")


def _share(scores: Scores) -> str:
    return f"{scores.exact_share:.1%} ({scores.exact} of {scores.sentences})"
