"""A session with its span file: bytes in, bytes out, with the record written in between.

It is what the edges share. Refuses to know pipes, processes and sockets.
"""

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from proxy.faults import FaultPlan
from proxy.frames import CAP
from proxy.ledger import Ledger, RandomHex, now
from proxy.lines import LineBuffer, Part, Piece
from proxy.policy import Policy
from proxy.record import Identity
from proxy.session import Session, Side
from proxy.spanfile import SpanFile
from proxy.strand import Strand

if TYPE_CHECKING:
    from proxy.connection import Step
    from proxy.held import Answer, HeldCall
    from proxy.redact import Redactor
    from proxy.waiting import Waiting

HELD_FROM_SERVER = 64 * 1024
"""Bytes of a server's line that are held before it flows, where policy need not see it whole (wire rule 2)."""

OWED_ANSWERS, OWED_BYTES = 32, 256 * 1024
"""Answers that may have gone on and not be recorded yet, and their bytes, before they are, however busy it is."""


class Passage(NamedTuple):
    """What goes on because of some bytes: to the server, and to the client. `to_*` of the sender are answers of ours.

    `mid_line`: the bytes for the other side end inside a line, so nothing else may be written there yet. `later` are
    whole lines for the client, and in how many seconds each is due.
    """

    to_server: bytes = b""
    to_client: bytes = b""
    mid_line: bool = False
    later: tuple[tuple[float, bytes], ...] = ()


def _nowhere(passage: Passage) -> None:
    """Where nothing is held, nothing comes."""


class Relay:
    """One connection. Its two sides may be fed from two threads; what one call returns is to be sent in order, and then
    `settle` called, or `settle_due` and soon `settle`.

    `redactor` takes the secrets out of what is recorded, never out of what is sent; None where there are none. With
    `splice` our span ids are written over the parent ids of the trace contexts that go on to the server. `faults` are
    those that its calls meet.
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
        faults: FaultPlan | None = None,
    ) -> None:
        self.session = Session(identity, policy, version, RandomHex(), now())
        self.session.recorder.redactor = redactor
        self.session.connection.splice = splice
        self.session.connection.faults = faults
        self.ledger = Ledger(spans)
        self._lock = Lock()
        self._edits = self.session.edits
        self._lines = {
            "client": LineBuffer(CAP),
            "server": LineBuffer(CAP if self._edits else HELD_FROM_SERVER),
        }
        self._strands = {"client": self.strand("client"), "server": self.strand("server")}
        self._mid_line = {"client": False, "server": False}
        self.asked = 0
        """Calls that waited for an approval; for each `deliver` is called once."""
        self._waiting: Waiting | None = None
        self._deliver: Callable[[Passage], None] = _nowhere
        self._write(self.session.opened().records)

    def hold_calls(self, waiting: "Waiting", deliver: "Callable[[Passage], None]") -> None:
        """Have calls that need an approval wait, from the next line on, in place of being refused at once.

        `deliver` sends what an approval, or the lack of one, leads to, whole lines, from whatever thread it comes.
        """
        self._waiting = waiting
        self._deliver = deliver
        self.session.connection.holds = True

    @property
    def failure(self) -> str:
        """What went wrong with the record first, "" while it is whole."""
        return self.ledger.failure

    def strand(self, side: Side, session: Session | None = None) -> Strand:
        """A stream of messages beside the two that `from_client` and `from_server` read (edges over HTTP have many)."""
        return Strand(session or self.session, side, self.ledger)

    def from_client(self, chunk: bytes) -> Passage:
        """Bytes from the client, cut anywhere."""
        lines = self._lines["client"]
        if lines.is_whole(chunk):
            return self._line("client", chunk)
        return self._feed("client", lines.feed(chunk))

    def from_server(self, chunk: bytes) -> Passage:
        """Bytes from the server, cut anywhere."""
        lines = self._lines["server"]
        if lines.is_whole(chunk):
            return self._line("server", chunk)
        return self._feed("server", lines.feed(chunk))

    def passes(self, side: Side, chunk: bytes) -> int:
        """How many of these bytes of a side are lines that go on as they are, with on the record what has to be before.

        Of most it is all; the rest `from_client` or `from_server` has to take.
        """
        # An answer that policy may have to look at is recorded first.
        if (self._edits and side == "server") or not self._lines[side].begins_line(chunk):
            return 0
        strand = self._strands[side]
        first = chunk.find(b"\n") + 1
        with self._lock:
            if first == len(chunk):
                return first if first and strand.passes(chunk) else 0
            return strand.passes_some(chunk)

    def client_ended(self) -> Passage:
        """The client sends no more: its unterminated last line, if it has one. What waits for approval is refused."""
        passage = self._feed("client", self._lines["client"].end())
        return passage._replace(to_client=passage.to_client + self._abandon())

    def server_ended(self) -> Passage:
        """The server sends no more: its unterminated last line, if it has one."""
        return self._feed("server", self._lines["server"].end())

    def client_line(self, line: bytes) -> Passage:
        """One whole line from the client."""
        return self.from_client(line)

    def server_line(self, line: bytes) -> Passage:
        """One whole line from the server."""
        return self.from_server(line)

    def adopt(self, policy: Policy | None) -> None:
        """Judge by this policy from the next line of either side on."""
        with self._lock:
            self.session.adopt(policy)
            if self.session.edits:
                self._lines["server"].limit = CAP

    def close(self, reason: str, not_exported: int | None = None) -> None:
        """Record how the connection ended, and close the span file; `not_exported` counts what a live export lost."""
        self._abandon()
        with self._lock:
            self._settle()
            spans = self.ledger.spans
            self._write(self.session.closed(reason, now(), spans.recorded, spans.dropped, not_exported).records)
            self.ledger.close()

    @property
    def owes(self) -> bool:
        """Whether anything that has been sent on is not recorded yet."""
        return self.session.owes

    def settle_due(self) -> None:
        """The same as `settle`, but of answers that nobody has looked at only where they are many.

        An edge that calls this calls `settle` too as soon as nothing more comes for some time: until then the next call
        does not wait for the record of the last answer.
        """
        wire = self.session.connection
        if wire.owed or wire.late or len(wire.passed) >= OWED_ANSWERS or wire.passed_bytes >= OWED_BYTES:
            with self._lock:
                self._settle()

    def settle(self) -> None:
        """Record the answers that have been sent on. Call it once what `from_client` and `from_server` gave is sent.

        So no peer waits for what it need not wait for: a call is on disk before the server sees it, and by the time
        that its answer goes on its effect is done (wire rules 8 and 9).
        """
        if self.session.owes:
            with self._lock:
                self._settle()

    def _settle(self) -> None:
        self._strands["server"].settle()
        self._failing()

    def _line(self, side: Side, line: bytes) -> Passage:
        """What `_feed` does of a whole line."""
        if self._edits or self._waiting is not None:
            return self._feed(side, [Piece(Part.WHOLE, line)])
        with self._lock:
            step = self._strands[side].line(line)
            if self.ledger.failure:
                self._failing()
        forward = step.forward
        if forward:
            self._mid_line[side] = forward[-1] != 10
        if side == "client":
            return Passage(forward, step.back, self._mid_line[side])
        return Passage(step.back, forward, self._mid_line[side])

    def _feed(self, side: Side, pieces: list[Piece]) -> Passage:
        with self._lock:
            steps = self._strands[side].take_all(pieces)
            # An answer that policy may have to look at is recorded first: what is seen of it is then all there is.
            if side == "server" and self._edits:
                self._settle()
            elif self.ledger.failure:
                self._failing()
        if self._waiting is not None and side == "client":
            self._ask(self._waiting, steps)
        later: tuple[tuple[float, bytes], ...] = ()
        if self._edits and any(step.wait for step in steps):
            later = tuple((step.wait, step.forward) for step in steps if step.wait)
            steps = [step._replace(forward=b"") if step.wait else step for step in steps]
        if len(steps) == 1:
            ahead, behind = steps[0].forward, steps[0].back
        else:
            ahead, behind = b"".join([step.forward for step in steps]), b"".join([step.back for step in steps])
        if ahead:
            self._mid_line[side] = not ahead.endswith(b"\n")
        mid_line = self._mid_line[side]
        return Passage(ahead, behind, mid_line) if side == "client" else Passage(behind, ahead, mid_line, later)

    def _ask(self, waiting: "Waiting", steps: "list[Step]") -> None:
        """Ask for the approvals that some lines need, and for those no more that their client gave up."""
        for step in steps:
            for held in step.held:
                self.asked += 1
                waiting.ask(held, self.session.recorder, partial(self._answered, held))
        self._forget(waiting)

    def _forget(self, waiting: "Waiting") -> None:
        freed = self.session.connection.freed
        while freed:
            waiting.forget(freed.pop())

    def _answered(self, held: "HeldCall", said: "Answer") -> None:
        with self._lock:
            step = self._strands["client"].answer(held, said)
            if self.ledger.failure:
                self._failing()
        self._deliver(Passage(step.forward, step.back))

    def _abandon(self) -> bytes:
        """The client is gone: what answers the calls that waited."""
        if not self.session.connection.held:
            return b""
        with self._lock:
            step = self._strands["client"].abandon()
        if self._waiting is not None:
            self._forget(self._waiting)
        return step.back

    def _failing(self) -> None:
        if self.ledger.failure:
            # What the server asks of the client is looked at from now on, so it must be there whole.
            self._lines["server"].limit = CAP

    def _write(self, records: list[str]) -> None:
        if not self.ledger.write(records):
            self.session.connection.failed = True
            self._failing()
