"""The C library's memory allocator, told to keep nothing that a large model's pass has freed."""

import ctypes
import sys
from contextlib import suppress

# From glibc's malloc.h.
_M_MMAP_THRESHOLD = -3
# What glibc begins with, and raises to 32 MiB when blocks are freed, unless it is set.
_THRESHOLD = 128 * 1024


def return_freed_memory() -> None:
    """Let blocks above 128 KiB go back to the system when they are freed, where that is glibc's.

    Otherwise the holes that activations leave between gradients stay with the process: about 1 GB
    at half a billion parameters. Small models would lose time by it, since new blocks are zeroed.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # musl has neither the name nor the call
            ctypes.CDLL("libc.so.6").mallopt(_M_MMAP_THRESHOLD, _THRESHOLD)
