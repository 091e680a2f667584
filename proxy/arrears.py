"""What is recorded of answers that have gone on, put off until a proxy has a moment: no client waits for it meanwhile.

Refuses to know what is recorded. Nothing of it says what may go on: that is on the record before (wire rule 8).
"""

import asyncio
from collections.abc import Callable

IDLE = 0.002
"""Seconds without an answer after which there is a moment."""
MOST, MOST_BYTES = 32, 256 * 1024
"""Answers, and bytes of them, that wait at most: then there has to be a moment."""


class Arrears:
    """Work that waits, in its order."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []
        self._size = 0
        self._seen = 0
        self._timer: asyncio.TimerHandle | None = None

    def put(self, work: Callable[[], None], size: int) -> None:
        """Have work wait that is about so many bytes; not for long, and not where too much waits."""
        self._waiting.append(work)
        self._size += size
        if len(self._waiting) >= MOST or self._size >= MOST_BYTES:
            self.clear()
        elif self._timer is None:
            self._seen = len(self._waiting)
            self._timer = asyncio.get_running_loop().call_later(IDLE, self._look)

    def clear(self) -> None:
        """Do all of it now."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        for work in waiting:
            work()

    def _look(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        if len(self._waiting) == self._seen:
            self.clear()
            return
        self._seen = len(self._waiting)
        self._timer = asyncio.get_running_loop().call_later(IDLE, self._look)
