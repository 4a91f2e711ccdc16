"""How the process deals with memory that a training step frees."""

from __future__ import annotations

import ctypes
import platform

# Names and numbers of <malloc.h>.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8


def keep_freed_memory() -> bool:
    """Let the C library keep what a step frees, because the next one needs it again at once.

    Given back to the system, every 4 KiB of it cost a page fault when they are taken again: about
    a twentieth of a step. Threads share what is kept: of an arena of its own a thread gives back
    whatever its part of the batch has left free. Only glibc can be told (``man mallopt``); returns
    whether it was.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    largest = 32 * 2**20  # bytes; glibc accepts no more. Above it memory is given back in any case.
    settings = {M_MMAP_THRESHOLD: largest, M_TRIM_THRESHOLD: 2**31 - 1, M_ARENA_MAX: 1}
    return all(mallopt(name, value) for name, value in settings.items())
