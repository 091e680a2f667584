"""The proxy over stdio: a child process, two pumps and the signals between them (wire rule 11).

Refuses to know what a line says.
"""

import os
import signal
import sys
from time import monotonic
from typing import TYPE_CHECKING

from proxy.child import Child, descendants, send_signal, server_environment, start_child
from proxy.faults import FaultPlan
from proxy.policy import Policy
from proxy.pumps import Pumps
from proxy.record import Identity
from proxy.relay import Relay
from proxy.saying import say
from proxy.signals import Canary, Caught, HandlerWait, SignalWait, signal_wait
from proxy.spanfile import SpanFile

if TYPE_CHECKING:
    from proxy.offered import Offered
    from proxy.otlp import Exporter
    from proxy.redact import Redactor
    from proxy.waiting import Waiting

RECORD_FAILED = 74
"""Exit code when spans could not be written and the server's own code was 0 (EX_IOERR of sysexits.h)."""

GROUP_GRACE = 1.5
"""Seconds that the child has before a signal is passed on to it where nobody can tell whether it has it already."""
BACKSTOP = 60.0
"""Seconds after the end of input before a server that does not end is told to: far behind any client's own."""
OUTPUT_GRACE = 1.0
"""Seconds that output may still come when the server has ended and the client sends no more."""
SWITCH = 0.0002
"""Seconds for which one pump may keep the interpreter from the other: Python's own 5 ms are many calls."""
LEFT_GRACE = 2.0
"""Seconds that processes which the server left behind have between SIGTERM and SIGKILL."""


class Watch:
    """What the main thread does: reap the child, pass signals on, and end what is left."""

    def __init__(self, child: Child, canary: Canary, pumps: Pumps, signals: SignalWait | HandlerWait) -> None:
        self.child = child
        self.canary = canary
        self.pumps = pumps
        self.signals = signals
        self.status: int | None = None
        self.signalled = ""
        self._group_signalled = 0.0
        self._pass_on: tuple[float, int] | None = None
        self._backstop: float | None = None
        self._output: float | None = None

    def until_ended(self) -> int:
        """Wait for the end of the server and of its output; its wait status."""
        while self.status is None or (self.pumps.downward.is_alive() and not self._output_overdue()):
            caught = self.signals.next(self._next_wait())
            if caught is not None and caught.number != signal.SIGCHLD:
                self._signal(caught)
            self._reap()
            self._due()
        return self.status

    def _next_wait(self) -> float:
        if self.status is not None:
            return 0.01
        due = [moment for moment in (self._pass_on[0] if self._pass_on else None, self._backstop) if moment is not None]
        return max(min(due) - monotonic(), 0.01) if due else 1.0

    def _output_overdue(self) -> bool:
        """Whether the server has ended at the client's wish, and only something that it left holds its output.

        While the client still sends, and has not signalled, the session goes on as it would directly.
        """
        if self.pumps.upward.is_alive() and not self.signalled:
            return False
        if self._output is None:
            self._output = monotonic() + OUTPUT_GRACE
        return monotonic() >= self._output

    def _signal(self, caught: Caught) -> None:
        self.signalled = signal.Signals(caught.number).name
        if caught.by_terminal or self.canary.has(caught.number):
            self._group_signalled = monotonic()
        elif self.canary.pid:
            # The kernel may still be on its way through the group.
            self._pass_on = (monotonic() + 0.02, caught.number)
        elif os.getpgrp() == os.getpid():
            self._pass_on = (monotonic() + GROUP_GRACE, caught.number)
        else:
            self._kill(caught.number)

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
            elif pid == self.canary.pid:
                self.canary.pid = 0

    def _due(self) -> None:
        now = monotonic()
        if self._pass_on is not None and now >= self._pass_on[0]:
            number = self._pass_on[1]
            self._pass_on = None
            if self.canary.has(number):
                self._group_signalled = now
            else:
                self._kill(number)
        if self._backstop is None:
            if not self.pumps.upward.is_alive():
                self._backstop = now + BACKSTOP
        elif now >= self._backstop:
            self._kill(signal.SIGTERM if now < self._backstop + LEFT_GRACE else signal.SIGKILL)

    def end_left(self) -> None:
        """End what the server left in our group, by pid: SIGTERM unless it has had one, and SIGKILL later."""
        group = os.getpgrp()
        left = self._left(group)
        since = self._group_signalled
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not (number == signal.SIGTERM and since):
                for pid in left:
                    send_signal(pid, number)
                since = monotonic()
            while left and monotonic() < since + LEFT_GRACE:
                self.signals.next(0.02)
                self._reap()
                left = self._left(group)

    def while_sending(self, exporter: "Exporter", since: float) -> None:
        """Give a live export the rest of its time, which began at `since`; a signal that comes now ends that."""
        while not exporter.wait(0) and exporter.seconds_left(since) > 0:
            caught = self.signals.next(0.005)
            if caught is not None and caught.number != signal.SIGCHLD:
                return

    def _left(self, group: int) -> list[int]:
        return [pid for pid in descendants(group) if pid != self.canary.pid]


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


def serve(
    identity: Identity,
    policy: Policy | None,
    version: str,
    spans: SpanFile,
    command: tuple[str, ...],
    redactor: "Redactor | None" = None,
    *,
    splice: bool = False,
    faults: FaultPlan | None = None,
    exporter: "Exporter | None" = None,
    waiting: "Waiting | None" = None,
    offered: "Offered | None" = None,
) -> None:
    """Run the server behind us until it ends, and end as it did. Raises StartError where it does not start.

    `waiting` is where calls wait for an approval; None where none has to.
    """
    if exporter is not None:
        spans.tap = exporter.offer
    relay = Relay(identity, policy, version, spans, redactor, splice=splice, faults=faults)
    relay.session.recorder.offered = offered
    try:
        child = start_child(command, server_environment(os.environ, identity.connection))
    except ValueError:
        relay.close("start_failed")
        if exporter is not None:
            exporter.start()
            say(exporter.wind_up(spans.path), redactor)
        raise
    reasons: list[str] = []
    pumps = Pumps(relay, (0, 1), (child.stdout, child.stdin), reasons.append)
    if waiting is not None:
        relay.hold_calls(waiting, pumps.deliver)
    canary = Canary()
    watch = Watch(child, canary, pumps, signal_wait())
    sys.setswitchinterval(SWITCH)
    pumps.start()
    if exporter is not None:
        exporter.start()
    status = watch.until_ended()
    reason = watch.signalled or (reasons[0] if reasons else "server_ended")
    relay.close(reason, None if exporter is None else exporter.tally.dropped)
    ended = monotonic()
    if exporter is not None:
        exporter.finish()
    watch.end_left()
    canary.end()
    if exporter is not None:
        watch.while_sending(exporter, ended)
        say(exporter.shortfall(spans.path), redactor)
    if relay.failure:
        say(f"the record is not whole: {relay.failure}", redactor)
        if status == 0:
            status = RECORD_FAILED << 8
    exit_as(status)
