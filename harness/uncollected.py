"""Holds the cycle collector off while very many objects are made that all stay: it would walk them again and again.

Refuses to know what they are. Nothing of ours makes cycles, so nothing is left for longer than it would be.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection of cycles inside, nor after it where there was none before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
