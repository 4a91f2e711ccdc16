"""The C library is told to keep freed memory, and does."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, sys, threading, torch
from translate.training.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def step():
    held = [torch.ones(1000, 1000) for _ in range(40)]  # 160 MB in all
def on_threads():  # as `training/parts.py` does: new ones every time
    workers = [threading.Thread(target=step) for _ in range(2)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
run = on_threads if sys.argv[2] == "threads" else step
run(); run(); run()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    run()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries decide alone")
def test_a_step_takes_the_memory_of_the_step_before():
    def faults(way: str, where: str) -> int:
        command = [sys.executable, "-c", COUNT, way, where]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)

    # On threads memory goes back after every step by default, 390,000 pages of 4 KiB (huge ones,
    # where the system makes them, are fewer); on one thread glibc keeps it at times.
    returned = faults("default", "threads")
    assert faults("keep", "threads") < 0.1 * returned
    assert faults("keep", "here") < 0.1 * returned


def test_other_c_libraries_are_left_alone(monkeypatch):
    from translate.training import allocator

    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: ("", ""))
    assert allocator.keep_freed_memory() is False
