"""A session with its span file: bytes in, bytes out, with the record written in between.

It is what the edges share. Refuses to know pipes, processes and sockets.
"""

import os
from threading import Lock
from time import CLOCK_REALTIME, clock_gettime_ns, monotonic_ns
from typing import TYPE_CHECKING, NamedTuple

from proxy.connection import Step
from proxy.frames import CAP
from proxy.lines import LineBuffer, Part, Piece
from proxy.policy import Policy
from proxy.record import Identity, Stamp
from proxy.scan import EnvelopeScanner
from proxy.session import Session, Side
from proxy.spanfile import SpanFile, SpanFileError

if TYPE_CHECKING:
    from proxy.redact import Redactor

HELD_FROM_SERVER = 64 * 1024
"""Bytes of a server's line that are held before it flows, where policy need not see it whole (wire rule 2)."""


class Passage(NamedTuple):
    """What goes on because of some bytes: to the server, and to the client. `to_*` of the sender are answers of ours.

    `mid_line`: the bytes for the other side end inside a line, so nothing else may be written there yet.
    """

    to_server: bytes = b""
    to_client: bytes = b""
    mid_line: bool = False


class LongLine:
    """A line past its limit: the copy of it that is looked at, and a scanner for what lies beyond."""

    def __init__(self, head: bytes, *, flows: bool) -> None:
        self.kept = bytearray(head)
        self.flows = flows
        self.cut = False
        self.scanner = EnvelopeScanner()
        self.scanner.feed(head)

    def take(self, data: bytes) -> None:
        """Look at further bytes."""
        room = CAP - len(self.kept)
        self.kept += data[:room]
        self.cut = self.cut or len(data) > room
        self.scanner.feed(data)


def random_hex(digits: int) -> str:
    """Random lower-case hex digits, an even number of them."""
    return os.urandom(digits // 2).hex()


def now() -> Stamp:
    """This moment."""
    return Stamp(monotonic_ns(), clock_gettime_ns(CLOCK_REALTIME))


class Relay:
    """One connection. Its two sides may be fed from two threads; what one call returns is to be sent in order, and then
    `settle` called.

    `redactor` takes the secrets out of what is recorded, never out of what is sent; None where there are none. With
    `splice` our span ids are written over the parent ids of the trace contexts that go on to the server.
    """

    def __init__(
        self,
        identity: Identity,
        policy: Policy | None,
        version: str,
        spans: SpanFile,
        redactor: "Redactor | None" = None,
        *,
        splice: bool = False,
    ) -> None:
        self.session = Session(identity, policy, version, random_hex, now())
        self.session.recorder.redactor = redactor
        self.session.connection.splice = splice
        self.spans = spans
        self.failure = ""
        self._lock = Lock()
        self._lines = {
            "client": LineBuffer(CAP),
            "server": LineBuffer(CAP if self.session.edits else HELD_FROM_SERVER),
        }
        self._long: dict[str, LongLine | None] = {"client": None, "server": None}
        self._mid_line = {"client": False, "server": False}
        self._write(self.session.opened())

    def from_client(self, chunk: bytes) -> Passage:
        """Bytes from the client, cut anywhere."""
        return self._feed("client", self._lines["client"].feed(chunk))

    def from_server(self, chunk: bytes) -> Passage:
        """Bytes from the server, cut anywhere."""
        return self._feed("server", self._lines["server"].feed(chunk))

    def client_ended(self) -> Passage:
        """The client sends no more: its unterminated last line, if it has one."""
        return self._feed("client", self._lines["client"].end())

    def server_ended(self) -> Passage:
        """The server sends no more: its unterminated last line, if it has one."""
        return self._feed("server", self._lines["server"].end())

    def client_line(self, line: bytes) -> Passage:
        """One whole line from the client."""
        return self.from_client(line)

    def server_line(self, line: bytes) -> Passage:
        """One whole line from the server."""
        return self.from_server(line)

    def close(self, reason: str, not_exported: int | None = None) -> None:
        """Record how the connection ended, and close the span file; `not_exported` counts what a live export lost."""
        with self._lock:
            self._settle()
            self._write(self.session.closed(reason, now(), self.spans.recorded, self.spans.dropped, not_exported))
            try:
                self.spans.close()
            except SpanFileError as error:
                self.failure = self.failure or str(error)

    def settle(self) -> None:
        """Record the answers that have been sent on. Call it once what `from_client` and `from_server` gave is sent.

        So no peer waits for what it need not wait for: a call is on disk before the server sees it, and by the time
        that its answer goes on its effect is done (wire rules 8 and 9).
        """
        with self._lock:
            self._settle()

    def _settle(self) -> None:
        try:
            self._append(self.session.connection.settle())
        except Exception as error:  # an answer that has gone on cannot be called back; no call follows it
            self._fail(f"a fault of the proxy's own: {type(error).__name__}: {error}")

    def _feed(self, side: Side, pieces: list[Piece]) -> Passage:
        with self._lock:
            steps = self._steps(side, pieces)
            # An answer that policy may have to look at is recorded first: what is seen of it is then all there is.
            if side == "server" and self.session.edits:
                self._settle()
        ahead, behind = b"".join([step.forward for step in steps]), b"".join([step.back for step in steps])
        if ahead:
            self._mid_line[side] = not ahead.endswith(b"\n")
        mid_line = self._mid_line[side]
        return Passage(ahead, behind, mid_line) if side == "client" else Passage(behind, ahead, mid_line)

    def _steps(self, side: Side, pieces: list[Piece]) -> list[Step]:
        """The steps of some pieces, their records written: those of whole lines behind each other with one write."""
        done: list[Step] = []
        waiting: list[tuple[Step, Stamp]] = []
        for piece in pieces:
            if piece.part is Part.WHOLE:
                moment = now()
                step = self._guarded(side, piece, moment)
                waiting.append((step, moment))
            else:
                done += self._written(side, waiting)
                waiting = []
                done.append(self._guarded(side, piece, now()))
        return done + self._written(side, waiting)

    def _written(self, side: Side, waiting: list[tuple[Step, Stamp]]) -> list[Step]:
        """Write the records of whole lines; their steps, or those in their place when they could not be written."""
        if self._append([record for step, _ in waiting for record in step.records]):
            return [step for step, _ in waiting]
        return [self.session.unrecorded(side, step, moment) for step, moment in waiting]

    def _guarded(self, side: Side, piece: Piece, moment: Stamp) -> Step:
        try:
            return self._piece(side, piece, moment)
        except Exception as error:  # a fault of ours lets no call through, and keeps no answer back
            self._fail(f"a fault of the proxy's own: {type(error).__name__}: {error}")
            self._long[side] = None
            return self._unseen(side, piece.data)

    def _unseen(self, side: Side, data: bytes) -> Step:
        return Step([], data if side == "server" and not self.session.edits else b"")

    def _piece(self, side: Side, piece: Piece, moment: Stamp) -> Step:
        match piece.part:
            case Part.WHOLE:
                return self.session.line(side, piece.data, moment)
            case Part.FIRST:
                return self._first(side, piece.data)
            case Part.MORE:
                return self._more(side, piece.data)
            case Part.LAST:
                return self._last(side, piece.data)

    def _first(self, side: Side, data: bytes) -> Step:
        long = self._long[side] = LongLine(data, flows=side == "server" and not self.session.edits)
        if side == "client":
            begun = self.session.client.long_line(data, long.scanner, now())
            # A record that fails here leaves no call let through: the line is refused at its end.
            long.flows = begun is not None and self._write(begun)
        return Step([], data if long.flows else b"")

    def _more(self, side: Side, data: bytes) -> Step:
        long = self._long[side]
        if long is None:
            return self._unseen(side, data)
        long.take(data)
        return Step([], data if long.flows else b"")

    def _last(self, side: Side, data: bytes) -> Step:
        long = self._long[side]
        self._long[side] = None
        if long is None:
            return self._unseen(side, data)
        long.take(data)
        moment = now()
        head = bytes(long.kept)
        if side == "client":
            step = self.session.client.long_end(head, long.scanner, moment, flows=long.flows)
        elif long.flows and not long.cut and not self.session.connection.failed:
            step = self.session.server.line(head, moment)
        else:
            step = self.session.server.long_end(head, long.scanner, moment, flows=long.flows)
        self._write(step)
        return Step([], data) if long.flows else step

    def _write(self, step: Step) -> bool:
        return self._append(step.records)

    def _append(self, records: list[str]) -> bool:
        try:
            self.spans.append_all(records)
        except SpanFileError as error:
            self._fail(str(error))
            return False
        return True

    def _fail(self, why: str) -> None:
        self.failure = self.failure or why
        self.session.connection.failed = True
        # What the server asks of the client is looked at from now on, so it must be there whole.
        self._lines["server"].limit = CAP
