"""A corpus of a million pairs: seconds and memory to read it, encode it and make batches of it.

The text is made from that of the benchmark: sentences shorter than usual are joined with others,
longer ones are put together from two halves, so that no line repeats and lengths stay natural.

    python -m benchmarks.corpus '{"source": FILE, ...}'        the process that is measured
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.child_processes import run
from benchmarks.corpus import SEED
from benchmarks.memory import MIB, peak_bytes, resident_bytes
from benchmarks.options import Bench
from benchmarks.rounds import figure

PAIRS, QUICK_PAIRS = 1_000_000, 50_000
BATCH_TOKENS = 8192
SHORT = 9  # words; below, sentences are joined, and from there on halved
# Numbers of one run, in the order in which they come about.
PHASES = {
    "read": "reading both files",
    "encode": "the rest of setup: encoding, leaving out what is too long",
    "sample": "making the data loader",
    "iterate": "one epoch of padded batches",
}


def units(rounds: int) -> int:
    """Steps of the progress bar."""
    return 1 + rounds


def measure(bench: Bench, rounds: int) -> dict[str, Any]:
    """The whole of it in a process of its own, `rounds` times; JSON-able."""
    options = bench.options
    pairs = QUICK_PAIRS if options.quick else PAIRS
    results = []
    with tempfile.TemporaryDirectory(dir=options.work, prefix="corpus-") as name:
        folder = Path(name)
        bench.progress.now(f"corpus: writing {pairs:,} pairs")
        source, target = write_corpus(bench.corpus.once, folder, pairs)
        settings = {
            "source": source,
            "target": target,
            "valid": bench.corpus.valid,
            "tokenizer": bench.corpus.tokenizer,
            "threads": options.threads,
            "answer": folder / "answer.json",
        }
        bench.progress.done()
        for round_ in range(rounds):
            bench.progress.now(f"corpus, round {round_ + 1}")
            command = [sys.executable, "-m", "benchmarks.corpus"]
            run(
                [*command, json.dumps(settings, default=str)],
                options,
                options.work / "logs" / "corpus.log",
            )
            results.append(json.loads(settings["answer"].read_text("utf-8")))
            bench.progress.done()
    contest = f"{pairs:,} pairs"
    rows = [
        figure(contest, what, "s (less is better)", [result["seconds"][key] for result in results])
        for key, what in {**PHASES, "all": "all of it"}.items()
    ]
    peaks = [result["peak_mib"]["iterate"] / 1024 for result in results]
    rows.append(figure(contest, "peak memory of the process", "GiB (less is better)", peaks))
    return {"pairs": pairs, "batch_tokens": BATCH_TOKENS, "figures": rows, "raw": results}


def write_corpus(base: tuple[Path, Path], folder: Path, count: int) -> tuple[Path, Path]:
    """Write `count` pairs that differ into two files of `folder`."""
    sides = [file.read_text("utf-8").removesuffix("\n").split("\n") for file in base]
    pairs = list(zip(*sides, strict=True))
    words = sum(len(source.split()) for source in sides[0]) / len(pairs)
    combine = _join if words < SHORT else _cross
    draw = random.Random(SEED).randrange
    files = folder / "train.en", folder / "train.de"
    with (
        files[0].open("w", encoding="utf-8") as sources,
        files[1].open("w", encoding="utf-8") as targets,
    ):
        for _ in range(count):
            first, second = pairs[draw(len(pairs))], pairs[draw(len(pairs))]
            sources.write(combine(first[0], second[0]) + "\n")
            targets.write(combine(first[1], second[1]) + "\n")
    return files


def _join(first: str, second: str) -> str:
    return f"{first} {second}"


def _cross(first: str, second: str) -> str:
    head, tail = first.split(), second.split()
    return " ".join(head[: len(head) // 2] + tail[len(tail) // 2 :])


def main() -> None:
    """Measure in this process; the JSON answer goes into a file."""
    settings = json.loads(sys.argv[1])
    import torch
    from lightning.pytorch import Trainer

    from translate.text.corpus import ParallelFiles
    from translate.training.data import TranslationData

    torch.set_num_threads(settings["threads"])
    torch.manual_seed(SEED)
    seconds: dict[str, float] = {}
    peaks = {"imports": peak_bytes() / MIB}
    resident = {"imports": resident_bytes() / MIB}
    clock = time.perf_counter()

    def done(phase: str) -> None:
        nonlocal clock
        now = time.perf_counter()
        seconds[phase] = now - clock
        peaks[phase], resident[phase] = peak_bytes() / MIB, resident_bytes() / MIB
        clock = now

    class TimedData(TranslationData):
        def _read(self, name: str) -> Any:
            corpus = super()._read(name)
            if name == "train":
                done("read")
            return corpus

    data = TimedData(
        train=ParallelFiles(Path(settings["source"]), Path(settings["target"])),
        valid=ParallelFiles(*map(Path, settings["valid"])),
        tokenizer=Path(settings["tokenizer"]),
        batch_tokens=BATCH_TOKENS,
    )
    data.trainer = Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    clock = time.perf_counter()
    data.setup("fit")
    done("encode")
    loader = data.train_dataloader()
    done("sample")
    batches = cells = pad = 0
    for batch in loader:
        batches += 1
        cells += batch.src.numel() + batch.tgt_in.numel()
        pad += int((batch.src == 0).sum() + (batch.tgt_in == 0).sum())
    done("iterate")
    seconds["all"] = sum(seconds.values())
    answer = {
        "seconds": seconds, "peak_mib": peaks, "resident_mib": resident, "batches": batches,
        "tokens": cells - pad, "padding_share": pad / max(1, cells),
    }  # fmt: skip
    Path(settings["answer"]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
