"""How the C library keeps memory of large results. Refuses to know what is in them."""

import ctypes
from contextlib import suppress

_MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of <malloc.h>."""
_TRIM_THRESHOLD = -1
_LARGE = 1024 * 1024
_KEPT = 4 * _LARGE


def give_large_back() -> None:
    """Have what is larger than 1 MiB go back to the system as soon as it is free; where that can be asked for.

    Else glibc raises its own threshold with the first such block, and the holes between them add up to several more.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGE)
        # Without this the memory of every chunk that is read would be given back, and asked for again.
        mallopt(_TRIM_THRESHOLD, _KEPT)
