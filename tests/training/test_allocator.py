"""The C library is told to keep freed memory, and does."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from translate.training import allocator

COUNT = """
import resource, sys, threading
from translate.training.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def step():
    held = [bytearray(b"x") * 4_000_000 for _ in range(40)]  # 160 MB in all
def run():  # glibc returns the memory of a thread to the system after every step
    worker = threading.Thread(target=step)
    worker.start()
    worker.join()
run(); run(); run()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    run()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries decide alone")
def test_a_step_takes_the_memory_of_the_step_before():
    def page_faults(way: str) -> int:
        command = [sys.executable, "-c", COUNT, way]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)

    assert page_faults("keep") < 0.1 * page_faults("default")


def test_other_c_libraries_are_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert allocator.keep_freed_memory() is False
