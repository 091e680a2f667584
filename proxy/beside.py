"""Work in a thread beside an event loop, whose other streams go on meanwhile.

Refuses to know what the work is. It loads asyncio, so what serves stdio alone leaves it out.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_BESIDE = ThreadPoolExecutor(1, "large records")


def begin(work: Callable[[], _T]) -> "Future[_T]":
    """Begin it; one at a time, in the order in which they were begun."""
    return _BESIDE.submit(work)


async def over(work: "Future[_T]") -> None:
    """Wait until it is over. Who is cancelled meanwhile does not stop it. Raises what it raised."""
    await asyncio.shield(asyncio.wrap_future(work))
