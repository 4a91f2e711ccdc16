"""Run in a child process: measure decoding with this program, MarianMTModel or CTranslate2.

Every engine also turns text into pieces and pieces into text. This program reads its checkpoint;
the other engines read exported weights and do not import this program.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.child_processes import answer
from benchmarks.corpus import read_lines
from benchmarks.engine_weights import EOS, PAD, marian_model, save_ctranslate2

REPEATS = 3
# (sentences, batch size) -> the pieces of each translation, with end-of-sentence
Translate = Callable[[Sequence[str], int], list[list[int]]]


def this_program(settings: dict[str, Any]) -> Translate:
    """Load the version of this program that is on PYTHONPATH."""
    import torch

    from translate import Translator

    torch.set_num_threads(settings["threads"])
    translator = Translator.load(settings["checkpoint"])

    def translate(sentences: Sequence[str], batch_size: int) -> list[list[int]]:
        limit = settings["max_new"]
        done = translator.translate_detailed(sentences, batch_size=batch_size, max_new=limit)
        return [each.ids if each.limit_reached else [*each.ids, EOS] for each in done]

    return translate


def marian(settings: dict[str, Any]) -> Translate:
    """Load Hugging Face's MarianMTModel."""
    import sentencepiece
    import torch

    torch.set_num_threads(settings["threads"])
    processor = sentencepiece.SentencePieceProcessor(model_file=settings["tokenizer"])
    model = marian_model(torch.load(settings["weights"]))
    # The limits of the peers count the end-of-sentence piece.
    greedy = {"do_sample": False, "num_beams": 1, "max_new_tokens": settings["max_new"] + 1}

    @torch.inference_mode()
    def translate(sentences: Sequence[str], batch_size: int) -> list[list[int]]:
        sources = [[*ids, EOS] for ids in processor.encode(list(sentences))]
        order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
        outputs: list[list[int]] = [[] for _ in sources]
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            width = len(sources[rows[-1]])
            src = torch.tensor([(sources[row] + [PAD] * width)[:width] for row in rows])
            written = model.generate(src, attention_mask=(src != PAD).long(), **greedy)
            for row, (_, *ids) in zip(rows, written.tolist(), strict=True):
                outputs[row] = ids[: ids.index(EOS) + 1] if EOS in ids else ids
        processor.decode(outputs)
        return outputs

    return translate


def ctranslate2(settings: dict[str, Any]) -> Translate:
    """Load CTranslate2; the setting "ctranslate2" has its own options."""
    import ctranslate2
    import sentencepiece
    import torch

    processor = sentencepiece.SentencePieceProcessor(model_file=settings["tokenizer"])
    pieces = [processor.id_to_piece(index) for index in range(len(processor))]
    folder = Path(settings["folder"])
    save_ctranslate2(torch.load(settings["weights"]), pieces, folder)
    translator = ctranslate2.Translator(str(folder), device="cpu", **settings["ctranslate2"])
    # As in the other engines, a translation may be empty.
    limits = {"min_decoding_length": 0, "max_decoding_length": settings["max_new"] + 1}
    greedy = {"beam_size": 1, "return_end_token": True, **limits}

    def translate(sentences: Sequence[str], batch_size: int) -> list[list[int]]:
        sources = [[*each, "</s>"] for each in processor.encode(list(sentences), out_type=str)]
        results = translator.translate_batch(sources, max_batch_size=batch_size, **greedy)
        outputs = [processor.piece_to_id(result.hypotheses[0]) for result in results]
        processor.decode(outputs)
        return outputs

    return translate


ENGINES = {"this_program": this_program, "marian": marian, "ctranslate2": ctranslate2}


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Return both speeds, as the median of some repeats, and the pieces of all translations."""
    translate = ENGINES[settings["engine"]](settings)
    sentences = read_lines(settings["sentences"])[: settings["count"]]
    singles = sentences[:: max(1, len(sentences) // settings["singles"])]
    outputs = translate(sentences, settings["batch_size"])  # warms up
    batch, single = [], []
    for _ in range(REPEATS):
        started = time.perf_counter()
        written = sum(map(len, translate(sentences, settings["batch_size"])))
        batch.append(written / (time.perf_counter() - started))
        started = time.perf_counter()
        written = sum(len(translate([sentence], 1)[0]) for sentence in singles)
        single.append(1000 * (time.perf_counter() - started) / written)
    speeds = {"batch": statistics.median(batch), "single": statistics.median(single)}
    # An output that reaches the limit may have no end-of-sentence piece.
    return {**speeds, "outputs": [ids[: settings["max_new"]] for ids in outputs]}


if __name__ == "__main__":
    answer(measure)
