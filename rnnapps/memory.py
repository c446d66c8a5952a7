"""How the process keeps the memory that it has."""

import ctypes
import functools
import platform

# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8


@functools.cache
def keep_freed_memory() -> None:
    """Lets the process keep what it frees for what it asks for next.

    A step of training asks for the same large blocks as the step before. glibc returns a block of
    32 MiB or more to the system as soon as it is free, and the system clears the next one page by
    page: a sixth of a step where the softmax has ten thousand words. From this call on, the process
    keeps its blocks, in one place for all threads, and its size is what it once needed at most.
    Where the C library is another, nothing changes.

    Example:
    >>> keep_freed_memory()
    """
    if platform.libc_ver()[0] != "glibc":
        return
    set_option = ctypes.CDLL(None).mallopt
    set_option(_MMAP_MAX, 0)
    set_option(_TRIM_THRESHOLD, 2**31 - 1)
    set_option(_ARENA_MAX, 1)
