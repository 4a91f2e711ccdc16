"""One decoding contestant as a process: this program, MarianMTModel or CTranslate2.

    python -m benchmark_parts.decode_worker '{"contestant": "CTranslate2 int8", ...}'

Sentences in, translations out: pieces made of text and text of pieces are in every time. Only
this program's worker needs this program; the others get its weights from a file.

Commands: "outputs" gives the pieces of every translation, "batch" and "single" give seconds and
the number of pieces written, end signs counted.

How threads are best used depends on the machine and on what is translated, so a peer has several
ways to use them. "outputs" also times each of them, and the fastest of each kind is what counts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmark_parts.weights import EOS, PAD

# sentences, how many at a time -> pieces of each translation with its end sign, and its text
Translate = Callable[[Sequence[str], int], tuple[list[list[int]], list[str]]]
Ways = dict[str, Translate]  # by what is special about them


def this_program(settings: dict[str, Any]) -> Ways:
    import torch

    from translate import Translator

    torch.set_num_threads(settings["threads"])
    translator = Translator.load(settings["checkpoint"])

    def translate(sentences: Sequence[str], batch_size: int) -> tuple[list[list[int]], list[str]]:
        done = translator.translate_detailed(
            sentences, batch_size=batch_size, max_new=settings["max_new"]
        )
        ids = [each.ids if each.limit_reached else [*each.ids, EOS] for each in done]
        return ids, [each.text for each in done]

    return {"as it is": translate}


def marian(settings: dict[str, Any]) -> Ways:
    import sentencepiece
    import torch

    from benchmark_parts.weights import load_weights, marian_model

    processor = sentencepiece.SentencePieceProcessor(model_file=settings["tokenizer"])
    model = marian_model(load_weights(settings["weights"]))

    def generate(rows: list[list[int]]) -> list[list[int]]:
        width = max(map(len, rows))
        padded = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
        written = model.generate(
            input_ids=padded,
            attention_mask=(padded != PAD).long(),
            do_sample=False,
            num_beams=1,
            max_new_tokens=settings["max_new"] + 1,  # the end sign counts
        )
        return [_until_end(ids[1:]) for ids in written.tolist()]

    @torch.inference_mode()
    def translate(
        threads: int, sentences: Sequence[str], batch_size: int
    ) -> tuple[list[list[int]], list[str]]:
        torch.set_num_threads(threads)
        sources = [[*ids, EOS] for ids in processor.encode(list(sentences))]
        order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
        ids: list[list[int]] = [[] for _ in sources]
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            for row, written in zip(rows, generate([sources[row] for row in rows]), strict=True):
                ids[row] = written
        return ids, processor.decode([_without_end(each) for each in ids])

    return {f"threads {n}": partial(translate, n) for n in {settings["threads"], 1}}


def ctranslate2(settings: dict[str, Any]) -> Ways:
    import ctranslate2
    import sentencepiece

    from benchmark_parts.weights import load_weights, save_ctranslate2

    processor = sentencepiece.SentencePieceProcessor(model_file=settings["tokenizer"])
    pieces = [processor.id_to_piece(index) for index in range(len(processor))]
    name, _, layout = settings["contestant"].partition(", ")
    compute_type = name.split()[-1]
    folder = Path(settings["folder"]) / compute_type
    save_ctranslate2(load_weights(settings["weights"]), pieces, folder)

    def translate(
        translator: ctranslate2.Translator, sentences: Sequence[str], batch_size: int
    ) -> tuple[list[list[int]], list[str]]:
        sources = [[*each, "</s>"] for each in processor.encode(list(sentences), out_type=str)]
        results = translator.translate_batch(
            sources,
            beam_size=1,
            max_batch_size=batch_size,
            min_decoding_length=0,  # an empty translation is one, as for the others
            max_decoding_length=settings["max_new"] + 1,  # the end sign counts
            return_end_token=True,
        )
        ids = [
            [processor.piece_to_id(piece) for piece in result.hypotheses[0]] for result in results
        ]
        return ids, processor.decode([_without_end(each) for each in ids])

    # All threads for one batch at a time, or a batch on each.
    layouts = {(1, settings["threads"])}
    if not layout:
        layouts.add((settings["threads"], 1))
    return {
        f"inter_threads {inter}, intra_threads {intra}": partial(
            translate,
            ctranslate2.Translator(
                str(folder),
                device="cpu",
                compute_type=compute_type,
                inter_threads=inter,
                intra_threads=intra,
            ),
        )
        for inter, intra in layouts
    }


def _until_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(EOS) + 1] if EOS in ids else ids


def _without_end(ids: list[int]) -> list[int]:
    return ids[:-1] if ids[-1:] == [EOS] else ids


class Contestant:
    """Ways to translate, and the fastest of them for each command."""

    def __init__(self, ways: Ways, settings: dict[str, Any]) -> None:
        self.ways = ways
        self.settings = settings
        lines = Path(settings["sentences"]).read_text("utf-8").removesuffix("\n").split("\n")
        self.sentences = lines[: settings["count"]]
        step = max(1, len(self.sentences) // settings["singles"])
        self.singles = self.sentences[::step][: settings["singles"]]
        self.fastest: dict[str, str] = {}

    def outputs(self) -> dict[str, Any]:
        """Pieces of all translations. Warms every way up, then chooses among them."""
        for translate in self.ways.values():
            ids, _ = translate(self.sentences, self.settings["batch_size"])
            translate(self.singles[:2], 1)
        for command in ("batch", "single"):
            speed = {way: self.measure(command, way)["seconds"] for way in self.ways}
            self.fastest[command] = min(speed, key=speed.__getitem__)
        return {"ids": ids, "fastest": self.fastest}

    def measure(self, command: str, way: str | None = None) -> dict[str, Any]:
        translate = self.ways[way or self.fastest[command]]
        started = time.perf_counter()
        if command == "batch":
            ids, _ = translate(self.sentences, self.settings["batch_size"])
        else:
            ids = [translate([sentence], 1)[0][0] for sentence in self.singles]
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "tokens": sum(map(len, ids)), "sentences": len(ids)}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    settings = json.loads(sys.argv[1])
    load = {"MarianMTModel": marian, "CTranslate2": ctranslate2}
    ways = load.get(settings["contestant"].split()[0], this_program)(settings)
    contestant = Contestant(ways, settings)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        command = json.loads(line)["command"]
        result = contestant.outputs() if command == "outputs" else contestant.measure(command)
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()
