"""What the process does with memory that a training step frees."""

from __future__ import annotations

import ctypes
import platform

# Names and numbers of <malloc.h>.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8


def keep_freed_memory() -> bool:
    """Let the C library keep memory that a step frees; return whether it does.

    The next step needs the memory again at once. Without this, glibc returns it to the system, and
    every 4 KiB cost a page fault when they are used again. Other C libraries have no such setting
    (``man mallopt``).
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    largest = 32 * 2**20  # bytes; the highest value that glibc accepts
    settings = {M_MMAP_THRESHOLD: largest, M_TRIM_THRESHOLD: 2**31 - 1, M_ARENA_MAX: 1}
    return all(mallopt(name, value) for name, value in settings.items())
