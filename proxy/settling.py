"""A thread that records what has gone on once nothing more of it comes for a moment, so that no pump waits or looks.

Refuses to know what is recorded, and pipes.
"""

from collections.abc import Callable
from threading import Lock, Thread
from time import sleep

PAUSE = 0.001
"""Seconds without a line of the server after which its last answers are recorded (docs/spans.md)."""


class Settler:
    """Calls `settle` after the last of some answers. It sleeps while none comes, and has nobody wait for it."""

    def __init__(self, settle: Callable[[], None]) -> None:
        self._settle = settle
        self._noted = 0
        self._awake = self._ended = False
        self._call = Lock()
        self._call.acquire()
        self._thread = Thread(target=self._run, name="settle", daemon=True)
        self._thread.start()

    def note(self) -> None:
        """An answer is about to go on, which may then wait for its peer. Not for several threads at once."""
        self._noted += 1
        if not self._awake:
            self._awake = True
            self._call.release()

    def end(self) -> None:
        """Record what is left, and return when no more is done."""
        self._ended = True
        self.note()
        self._thread.join()
        self._settle()

    def _run(self) -> None:
        while not self._ended:
            self._call.acquire()
            noted = -1
            while noted != self._noted and not self._ended:
                noted = self._noted
                sleep(PAUSE)
            # In this order: what is noted from here on calls again, and all that was noted before is settled now.
            self._awake = False
            self._settle()
