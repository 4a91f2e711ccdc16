"""Read thousands of damaged files, as people might hand them to us, and report what goes wrong.

    python scripts/fuzz.py [READER ...] [--inputs 1000] [--seconds 60] [--seed 1]

Each input is a small valid file with random changes; the first input of a reader has none. A reader
must accept an input or refuse it with a message for the user. These are faults: any exception
except UserError; a message with more than 2,000 characters, a control character or more than one
line (a config: one line per error); more than 5 seconds of processor time. Inputs with faults are
saved in fuzz-failures/. The same seed gives the same inputs. If the process ends without a table,
its last input is in a temporary folder named "fuzz-...".
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gzip
import io
import lzma
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch
import zstandard

from translate.decoding.checkpoint import checkpoint_entry, load_checkpoint
from translate.errors import UserError
from translate.model.transformer import Transformer, TransformerConfig
from translate.text.corpus import ParallelFiles, read_corpus
from translate.text.problems import Problem
from translate.text.tokenizer import Tokenizer
from translate.training.cli import TranslationCLI

LONGEST_MESSAGE = 2_000  # characters
LONGEST_TIME = 5  # seconds of processor time

SOURCE = b"Good morning\nI am tired.\nNo\n"
TSV = "Good morning\tGuten Morgen\nI am tired.\tIch bin müde.\nNo\tNein\n".encode()
CSV = b'en,de\n"Good morning, Tom","Guten Morgen, Tom"\n"No","Nein"\n'
JSONL = b'{"en": "Good morning", "de": "Guten Morgen"}\n{"en": "No", "de": "Nein"}\n'
TMX = b"""<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>No</seg></tuv><tuv xml:lang="de"><seg>Nein</seg></tuv></tu></body></tmx>
"""
CONFIG = b"""seed_everything: 1
data: {train: {tsv: a.tsv, columns: [1, 2]}, vocab_size: 100, filters: {length_ratio: 3.0}}
model:
  d_model: 16
  norm: pre
trainer: {max_epochs: 2, accelerator: cpu}
"""
# Text that is often read wrongly.
TOKENS = [
    *("\0", "\r", "\n", "\r\n", "\t", "\t" * 999, "\ufeff", "\u2028", "\x85", "\x1b[2J\x07"),
    *('"', "'", ",", ";", ":", "#", "&", "*", "!", "%", "|", ">", "- ", "? ", "---\n", "<<: *a"),
    *("[", "]", "{", "}", "[" * 5000, "{a: " * 500, "&a [*a]", "!!python/object:os.system {}"),
    *("null", "true", "nan", "-inf", "1e999", "-1", "0", "9" * 5000, "0x10", "1_0", "2001-01-01"),
    *("<", ">", "</", "<b>", "<tu>" * 5000, "<!--", "]]>", "&lt;", "&a;", "&#0;", "&#xD800;"),
    *('<!DOCTYPE a [<!ENTITY a "b">]>', '<!ENTITY a SYSTEM "/etc/passwd">', "\\ud800", "\\u0000"),
    *("a" * 100_000, "ä" * 3000, "\U0001f600", "e\u0301" * 3000, "\u202e", "\u200b", "▁", "⁇"),
]
BYTES = [b"\xff\xfe", b"\xed\xa0\x80", b"\x80", b"\xc3", *(token.encode() for token in TOKENS)]
VALUES: list[Any] = [
    *(None, True, -1, 0, 3, 2**31, 10**300, 0.5, float("nan"), float("inf"), "", "pre", b"x"),
    *("\x1b" * 9999, [], [1], (), {}, {"a": {1: 2}}, torch.tensor(1.0), torch.zeros(0)),
    *(torch.ones(3, 2).to_sparse(), torch.ones(2, device="meta"), torch.zeros(1).expand(2**31)),
    *(torch.full((8,), torch.nan), torch.ones(8, dtype=torch.complex64)),
]


@dataclass
class Reader:
    """A function that reads a file (it may return problems), and a valid file for it."""

    name: str  # ends with the suffix of the file
    valid: bytes
    read: Callable[[Path], object]
    compress: Callable[[bytes], bytes] = bytes

    def input(self, random: Random) -> bytes:
        """Return the valid file with random changes, made before or after the compression."""
        if self.name == "ckpt" and random.random() < 0.5:
            return changed_checkpoint(random, self.valid)
        if random.random() < 0.5:
            return changed(random, self.compress(self.valid))
        return self.compress(changed(random, self.valid))


def changed(random: Random, content: bytes) -> bytes:
    """Make one to four changes."""
    for _ in range(random.randint(1, 4)):
        start, end = sorted(random.randint(0, len(content)) for _ in range(2))
        words = [match.span() for match in re.finditer(rb"[\w.]+", content[:10_000])]
        kind = random.choice(("bit", "token", "word", "remove", "repeat", "cut"))
        if kind == "word" and words:
            start, end = random.choice(words)
        middle = content[start:end]
        if kind == "bit" and middle:
            middle = bytes([middle[0] ^ 1 << random.randrange(8)]) + middle[1:]
        elif kind == "token":
            middle = random.choice(BYTES) + middle
        elif kind in ("word", "remove"):
            middle = random.choice(BYTES) if kind == "word" else b""
        elif kind == "repeat":
            middle *= min(2 ** random.randint(1, 16), 10**6 // (1 + len(middle)))
        content = content[:start] + middle + (b"" if kind == "cut" else content[end:])
    return content


def changed_checkpoint(random: Random, content: bytes) -> bytes:
    """Replace, remove or add one value in a checkpoint."""
    checkpoint = torch.load(io.BytesIO(content), weights_only=True)
    entry = checkpoint["translate"]
    place = random.choice((checkpoint, entry, entry["config"], checkpoint["state_dict"]))
    key = random.choice([*place, *place, 7, "x" * 9999, "\x1b\n"])
    if key in place and random.random() < 0.3:
        del place[key]
    else:
        place[key] = random.choice(VALUES)
    file = io.BytesIO()
    torch.save(checkpoint, file)
    return file.getvalue()


def read_pairs(path: Path, setting: str = "tsv", **others: Path) -> list[Problem]:
    """Read pairs as `translate check` and as `translate fit` do; return the problems."""
    files = ParallelFiles(**{setting: path}, **others)
    problems = read_corpus(files, "data.train", strict=False).problems
    read_corpus(files, "data.train")
    return problems


def make_readers(folder: Path) -> list[Reader]:
    """Return all readers except those whose library is not installed."""
    target = folder / "target"
    target.write_bytes(SOURCE)
    tokenizer, _ = Tokenizer.train(TSV.decode().split("\n"), vocab_size=50)
    config = TransformerConfig(len(tokenizer), tokenizer.pad_id, 8, 2, 8, 1, 1, max_length=16)
    weights = {f"model.{name}": w for name, w in Transformer(config).state_dict().items()}
    entry = checkpoint_entry(config, tokenizer, weights)
    checkpoint, parquet = io.BytesIO(), io.BytesIO()
    torch.save({"state_dict": weights, "translate": entry}, checkpoint)
    readers = [
        Reader("source", SOURCE, partial(read_pairs, setting="source", target=target)),
        Reader("tsv", TSV, read_pairs),
        Reader("csv", CSV, read_pairs),
        Reader("jsonl", JSONL, partial(read_pairs, setting="jsonl")),
        Reader("tmx", TMX, partial(read_pairs, setting="tmx")),
        Reader("tsv.gz", TSV, read_pairs, gzip.compress),
        Reader("tsv.xz", TSV, read_pairs, lzma.compress),
        Reader("tsv.zst", TSV, read_pairs, zstandard.compress),
        Reader("model", tokenizer.to_bytes(), lambda path: Tokenizer.load(path).encode("No")),
        Reader("ckpt", checkpoint.getvalue(), load_checkpoint),
        Reader("yaml", CONFIG, lambda path: TranslationCLI("fit", ["--config", str(path)])),
    ]
    with contextlib.suppress(ImportError):
        import pyarrow.parquet

        table = pyarrow.table({"en": ["No"] * 9, "de": ["Nein"] * 9})
        pyarrow.parquet.write_table(table, parquet)
        read = partial(read_pairs, setting="parquet")
        readers.append(Reader("parquet", parquet.getvalue(), read))
    return readers


def outcome(reader: Reader, path: Path) -> tuple[str, str]:
    """Read the file; return "accepted", "refused" or "fault", and what the fault is."""
    try:
        found, result = reader.read(path), "accepted"
    except UserError as error:
        found, result = [error], "refused"
        if reader.name == "yaml":
            found = str(error).splitlines()
    except (Exception, SystemExit) as error:
        return "fault", f"{type(error).__name__}: {str(error)[:200]!r}"
    for message in map(str, found if isinstance(found, list) else ()):
        if len(message) > LONGEST_MESSAGE or not message.isprintable():
            return "fault", f"a message of {len(message)} characters: {message[:200]!r}"
    return result, ""


def main() -> int:
    """Run the readers; print a table and the faults; return 1 if there are faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readers", nargs="*", metavar="READER", help="default: all of them")
    parser.add_argument("--inputs", type=int, default=1000, help="inputs per reader")
    parser.add_argument("--seconds", type=float, default=60, help="time limit per reader")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    faulthandler.enable()
    folder, faults = Path(tempfile.mkdtemp(prefix="fuzz-")), []
    print(f"{'reader':8} {'inputs':>8} {'accepted':>9} {'refused':>8} {'faults':>7}  longest")
    for reader in make_readers(folder):
        if options.readers and reader.name not in options.readers:
            continue
        path, longest, counts = folder / f"input.{reader.name}", 0.0, Counter[str]()
        ends = time.monotonic() + options.seconds
        while (number := counts.total()) < options.inputs and time.monotonic() < ends:
            random = Random(f"{options.seed} {reader.name} {number}")
            path.write_bytes(reader.input(random) if number else reader.compress(reader.valid))
            faulthandler.dump_traceback_later(20 * LONGEST_TIME, exit=True)  # if it hangs
            started = time.process_time()
            result, what = outcome(reader, path)
            longest = max(longest, seconds := time.process_time() - started)
            if seconds > LONGEST_TIME or (number == 0 and result == "refused"):
                result, what = "fault", f"{result} after {seconds:.1f} seconds"
            counts[result] += 1
            if what:
                saved = Path("fuzz-failures") / f"{number}.{reader.name}"
                saved.parent.mkdir(exist_ok=True)
                shutil.copy(path, saved)
                faults.append(f"{saved}: {what}")
        faulthandler.cancel_dump_traceback_later()
        numbers = f"{counts['accepted']:9,} {counts['refused']:8,} {counts['fault']:7,}"
        print(f"{reader.name:8} {counts.total():8,} {numbers}  {longest:.2f} s", flush=True)
    shutil.rmtree(folder)
    for line in faults:
        print(line)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
