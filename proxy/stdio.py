"""The proxy over stdio: a child process, two pumps and the signals between them (wire rule 11).

Refuses to know what a line says.
"""

import os
import signal
import sys
from time import monotonic

from proxy.child import HANDLED, Child, descendants, server_environment, start_child
from proxy.policy import Policy
from proxy.pumps import Pumps
from proxy.record import Identity
from proxy.relay import Relay
from proxy.spanfile import SpanFile

RECORD_FAILED = 74
"""Exit code when spans could not be written and the server's own code was 0 (EX_IOERR of sysexits.h)."""

GROUP_GRACE = 1.5
"""Seconds that the child has before a signal is passed on to it where the client may have killed its group."""
BACKSTOP = 60.0
"""Seconds after the end of input before a server that does not end is told to: far behind any client's own."""
LEFT_GRACE = 1.0
"""Seconds that processes which the server left behind have between SIGTERM and SIGKILL."""

_SI_USER = 0


class Watch:
    """What the main thread does: reap the child, pass signals on, and end what is left."""

    def __init__(self, child: Child, pumps: Pumps) -> None:
        self.child = child
        self.pumps = pumps
        self.status: int | None = None
        self.signalled = ""
        self._pass_on: tuple[float, int] | None = None
        self._backstop: float | None = None

    def until_ended(self) -> int:
        """Wait for the end of the server's output and of the server; its wait status."""
        while self.status is None or self.pumps.downward.is_alive():
            wait = 0.2 if self.status is not None else self._next_wait()
            info = signal.sigtimedwait(HANDLED, wait)
            if info is not None and info.si_signo != signal.SIGCHLD:
                self._signal(info)
            self._reap()
            self._due()
        return self.status

    def _next_wait(self) -> float:
        due = [moment for moment in (self._pass_on[0] if self._pass_on else None, self._backstop) if moment is not None]
        return max(min(due) - monotonic(), 0.01) if due else 1.0

    def _signal(self, info: signal.struct_siginfo) -> None:
        self.signalled = signal.Signals(info.si_signo).name
        if info.si_code > _SI_USER:
            return  # from the kernel: the terminal's driver sent it to the whole group, the child too
        if os.getpgrp() == os.getpid():
            # We lead the group, so the client may have killed the group, and the child has the signal already.
            self._pass_on = (monotonic() + GROUP_GRACE, info.si_signo)
        else:
            self._kill(info.si_signo)

    def _kill(self, number: int) -> None:
        if self.status is None:
            os.kill(self.child.pid, number)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.child.pid:
                self.status = status

    def _due(self) -> None:
        now = monotonic()
        if self._pass_on is not None and now >= self._pass_on[0]:
            number = self._pass_on[1]
            self._pass_on = None
            self._kill(number)
        if self._backstop is None:
            if not self.pumps.upward.is_alive():
                self._backstop = now + BACKSTOP
        elif now >= self._backstop:
            self._kill(signal.SIGTERM if self._backstop + 5 > now else signal.SIGKILL)

    def end_left(self) -> None:
        """End what the server left in our group, by pid: SIGTERM, and SIGKILL for what is there a second later."""
        group = os.getpgrp()
        left = descendants(group)
        for number, grace in ((signal.SIGTERM, LEFT_GRACE), (signal.SIGKILL, LEFT_GRACE)):
            for pid in left:
                _kill(pid, number)
            deadline = monotonic() + grace
            while left and monotonic() < deadline:
                signal.sigtimedwait(HANDLED, 0.05)
                self._reap()
                left = descendants(group)


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def exit_as(status: int) -> None:
    """End as the child ended: with its code, or by its signal. Does not return."""
    sys.stderr.flush()
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def serve(identity: Identity, policy: Policy | None, version: str, spans: SpanFile, command: tuple[str, ...]) -> None:
    """Run the server behind us until it ends, and end as it did. Raises StartError where it does not start."""
    relay = Relay(identity, policy, version, spans)
    try:
        child = start_child(command, server_environment(os.environ, identity.connection))
    except ValueError:
        relay.close("start_failed")
        raise
    reasons: list[str] = []
    pumps = Pumps(relay, (0, 1), (child.stdout, child.stdin), reasons.append)
    watch = Watch(child, pumps)
    pumps.start()
    status = watch.until_ended()
    reason = watch.signalled or (reasons[0] if reasons else "server_ended")
    relay.close(reason)
    watch.end_left()
    if relay.failure:
        sys.stderr.write(f"wiretrap: the record is not whole: {relay.failure}\n")
        if status == 0:
            status = RECORD_FAILED << 8
    exit_as(status)
