"""Worker: one decoding engine, this program, MarianMTModel or CTranslate2.

Text in, text out: every engine also turns text into pieces and pieces into text. This program
reads its checkpoint; the others read exported weights and need nothing of this program.

Commands: "outputs" returns the pieces of every translation, "batch" and "single" return seconds
and the number of pieces written, end-of-sentence included.

Which use of threads is fastest depends on the machine and on the text. A peer therefore has
several variants; "outputs" times each, and the fastest counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.child_processes import serve
from benchmarks.engine_weights import EOS, PAD

# (sentences, batch size) -> the pieces of each translation with end-of-sentence, and its text
Translate = Callable[[Sequence[str], int], tuple[list[list[int]], list[str]]]
Variants = dict[str, Translate]


def this_program(settings: dict[str, Any]) -> Variants:
    """Return this program, in the version that PYTHONPATH finds."""
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

    return {"default": translate}


def marian(settings: dict[str, Any]) -> Variants:
    """Return Hugging Face's MarianMTModel with all threads and with one."""
    import sentencepiece
    import torch

    from benchmarks.engine_weights import marian_model

    processor = sentencepiece.SentencePieceProcessor(model_file=settings["tokenizer"])
    model = marian_model(torch.load(settings["weights"]))

    def generate(rows: list[list[int]]) -> list[list[int]]:
        width = max(map(len, rows))
        padded = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
        written = model.generate(
            input_ids=padded,
            attention_mask=(padded != PAD).long(),
            do_sample=False,
            num_beams=1,
            max_new_tokens=settings["max_new"] + 1,  # end-of-sentence counts
        )
        outputs = [ids[1:] for ids in written.tolist()]
        return [ids[: ids.index(EOS) + 1] if EOS in ids else ids for ids in outputs]

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

    return {f"threads {count}": partial(translate, count) for count in {settings["threads"], 1}}


def ctranslate2(settings: dict[str, Any]) -> Variants:
    """Return CTranslate2: all threads on one batch or, by default also, one batch per thread."""
    import ctranslate2
    import sentencepiece
    import torch

    from benchmarks.engine_weights import save_ctranslate2

    processor = sentencepiece.SentencePieceProcessor(model_file=settings["tokenizer"])
    pieces = [processor.id_to_piece(index) for index in range(len(processor))]
    name, _, layout = settings["contestant"].partition(", ")
    compute_type = name.split()[-1]
    folder = Path(settings["folder"]) / compute_type
    save_ctranslate2(torch.load(settings["weights"]), pieces, folder)

    def translate(
        translator: ctranslate2.Translator, sentences: Sequence[str], batch_size: int
    ) -> tuple[list[list[int]], list[str]]:
        sources = [[*each, "</s>"] for each in processor.encode(list(sentences), out_type=str)]
        results = translator.translate_batch(
            sources,
            beam_size=1,
            max_batch_size=batch_size,
            min_decoding_length=0,  # as in the other engines, a translation may be empty
            max_decoding_length=settings["max_new"] + 1,  # end-of-sentence counts
            return_end_token=True,
        )
        outputs = [result.hypotheses[0] for result in results]
        ids = [[processor.piece_to_id(piece) for piece in output] for output in outputs]
        return ids, processor.decode([_without_end(each) for each in ids])

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


def _without_end(ids: list[int]) -> list[int]:
    return ids[:-1] if ids[-1:] == [EOS] else ids


class Engine:
    """The variants of an engine, and the fastest of them for each command."""

    def __init__(self, variants: Variants, settings: dict[str, Any]) -> None:
        self.variants = variants
        self.batch_size = settings["batch_size"]
        lines = Path(settings["sentences"]).read_text("utf-8").removesuffix("\n").split("\n")
        self.sentences = lines[: settings["count"]]
        step = max(1, len(self.sentences) // settings["singles"])
        self.singles = self.sentences[::step][: settings["singles"]]
        self.fastest: dict[str, str] = {}

    def outputs(self) -> dict[str, Any]:
        """Return the pieces of all translations. Also warms up every variant and times it."""
        for translate in self.variants.values():
            ids, _ = translate(self.sentences, self.batch_size)
            translate(self.singles[:2], 1)
        for command in ("batch", "single"):
            seconds = {name: self.measure(command, name)["seconds"] for name in self.variants}
            self.fastest[command] = min(seconds, key=seconds.__getitem__)
        return {"ids": ids, "fastest": self.fastest}

    def measure(self, command: str, variant: str | None = None) -> dict[str, Any]:
        """Return seconds and pieces of one command."""
        translate = self.variants[variant or self.fastest[command]]
        started = time.perf_counter()
        if command == "batch":
            ids, _ = translate(self.sentences, self.batch_size)
        else:
            ids = [translate([sentence], 1)[0][0] for sentence in self.singles]
        return {"seconds": time.perf_counter() - started, "tokens": sum(map(len, ids))}


def prepare(settings: dict[str, Any]) -> dict[str, Callable[[], dict[str, Any]]]:
    """Load the engine and return its commands."""
    load = {"MarianMTModel": marian, "CTranslate2": ctranslate2}
    variants = load.get(settings["contestant"].split()[0], this_program)(settings)
    engine = Engine(variants, settings)
    return {
        "outputs": engine.outputs,
        "batch": partial(engine.measure, "batch"),
        "single": partial(engine.measure, "single"),
    }


if __name__ == "__main__":
    serve(prepare)
