"""Signals as events that one thread waits for, and who else got one.

Refuses to know what is done about a signal.
"""

import os
import select
import signal
import sys
from collections import deque
from contextlib import suppress
from types import FrameType
from typing import NamedTuple

from proxy.child import HANDLED, die_with_parent

_SI_USER = 0
"""Codes above it are the kernel's own, as for the keys of a terminal (sigaction(2))."""


class Caught(NamedTuple):
    """A signal that came; `by_terminal` where the kernel sent it to the whole foreground group."""

    number: int
    by_terminal: bool


class SignalWait:
    """Waits for the signals in HANDLED, which are blocked in every thread."""

    def next(self, seconds: float) -> Caught | None:
        """The next signal, or None when none came in time."""
        info = signal.sigtimedwait(HANDLED, seconds)
        return None if info is None else Caught(info.si_signo, info.si_code > _SI_USER)


class HandlerWait:
    """The same where the kernel has no sigtimedwait (macOS): by handlers, so nobody knows who sent a signal.

    SIGINT and SIGHUP on a terminal of ours are taken for the terminal's.
    """

    def __init__(self) -> None:
        self._caught: deque[int] = deque()
        self._read, write = os.pipe()
        os.set_blocking(write, False)
        os.set_blocking(self._read, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in HANDLED:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._handle)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._caught.append(number)

    def next(self, seconds: float) -> Caught | None:
        """The next signal, or None when none came in time."""
        if not self._caught:
            select.select([self._read], [], [], seconds)
        with suppress(BlockingIOError):
            os.read(self._read, 512)
        if not self._caught:
            return None
        number = self._caught.popleft()
        return Caught(number, number in {signal.SIGINT, signal.SIGHUP} and os.isatty(2))


def signal_wait() -> SignalWait | HandlerWait:
    """The better of the two that this system has."""
    return SignalWait() if sys.platform == "linux" else HandlerWait()


class Canary:
    """A process of ours in our group that does nothing: a signal that it has too was sent to the whole group.

    Without it a signal to the group would have to be passed on to a server that has it already, or one to us alone kept
    back. It blocks every signal, holds no pipe, and dies with us. Only the leader of a group needs one.
    """

    def __init__(self) -> None:
        self.pid = 0
        if sys.platform != "linux" or os.getpgrp() != os.getpid():
            return
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                die_with_parent(parent)
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
                os.closerange(0, 1 << 20)
                while True:
                    signal.sigwait({signal.SIGUSR2})
            finally:
                os._exit(0)
        self.pid = pid

    def has(self, number: int) -> bool:
        """Whether this signal is pending at the canary."""
        if not self.pid:
            return False
        try:
            with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
                for line in status:
                    if line.startswith("ShdPnd:"):
                        return bool(int(line.split()[1], 16) >> (number - 1) & 1)
        except OSError:
            return False
        return False

    def end(self) -> None:
        """End it, so that nobody else has to reap it."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
