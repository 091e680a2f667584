"""The children of a bridge: started one by one, and ended with all that they leave behind (wire rule 11).

Refuses to know what goes through their pipes.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from shutil import which
from time import monotonic

from proxy.child import Child, StartError, descendants, send_signal, server_environment, start_child

GRACE = 2.0
"""Seconds that a server has from the end of its input to SIGTERM, and from there to SIGKILL: what the SDK gives."""
STOP_GRACE = 0.7
"""Seconds between SIGTERM and SIGKILL when the bridge itself is told to stop."""
_LOOK = 0.01

Start = Callable[[Sequence[str], Mapping[str, str]], Child]


def start_here(command: Sequence[str], environment: Mapping[str, str]) -> Child:
    """Start a child from the main thread, which goes on to get signals. Raises StartError."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        return start_child(command, environment)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def check_command(command: Sequence[str]) -> None:
    """Raise StartError where no child could be started."""
    name = command[0]
    if which(name) is not None:
        return
    if os.path.exists(name) and os.path.dirname(name):
        raise StartError(f"cannot start {name!r}: it is no program", 126)
    raise StartError(f"cannot start {name!r}: it is not found", 127)


class Nursery:
    """Starts children of one command. `start` is how; `adopts`: what their children leave is reaped here too."""

    def __init__(self, command: Sequence[str], start: Start = start_here, *, adopts: bool = True) -> None:
        self.command = command
        self._start = start
        self._adopts = adopts
        self._alive: set[int] = set()

    def start(self, connection: str) -> Child:
        """Start a child for a connection. Raises StartError."""
        self._reap()
        child = self._start(self.command, server_environment(os.environ, connection))
        self._alive.add(child.pid)
        return child

    def _reap(self) -> None:
        for which_one in (-1,) if self._adopts else tuple(self._alive):
            with suppress(ChildProcessError):
                while (pid := os.waitpid(which_one, os.WNOHANG)[0]) > 0:
                    self._alive.discard(pid)

    async def _over(self, pids: set[int], seconds: float) -> bool:
        """Whether all of them have ended in time."""
        until = monotonic() + seconds
        while True:
            self._reap()
            if not pids & self._alive:
                return True
            if monotonic() >= until:
                return False
            await asyncio.sleep(_LOOK)

    def _signal(self, pid: int, number: int) -> None:
        if pid in self._alive:
            os.kill(pid, number)

    async def end(self, pid: int) -> None:
        """End a child whose input is closed, by and by."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if await self._over({pid}, GRACE):
                return
            self._signal(pid, number)
        await self._over({pid}, GRACE)

    async def end_all(self) -> None:
        """End all children at once, and what they left in our group."""
        for number, seconds in ((signal.SIGTERM, STOP_GRACE), (signal.SIGKILL, STOP_GRACE)):
            left = [pid for pid in descendants(os.getpgrp()) if pid not in self._alive] if self._adopts else []
            for pid in left:
                send_signal(pid, number)
            for pid in tuple(self._alive):
                self._signal(pid, number)
            until = monotonic() + seconds
            await self._over(set(self._alive), seconds)
            while left and monotonic() < until:
                self._reap()
                here = descendants(os.getpgrp())
                left = [pid for pid in left if pid in here]
                await asyncio.sleep(_LOOK if left else 0)
            if not self._alive and not left:
                return
