"""The record of one connection as it is being written, and the streams of messages that lead to it.

Refuses to know how messages are cut out of bytes: a strand is given them whole, or in pieces where they are long.
"""

import os
from time import CLOCK_REALTIME, clock_gettime_ns, monotonic_ns

from proxy.connection import Step
from proxy.frames import CAP
from proxy.lines import Part, Piece
from proxy.record import Stamp
from proxy.scan import EnvelopeScanner
from proxy.session import Session, Side
from proxy.spanfile import SpanFile, SpanFileError


def random_hex(digits: int) -> str:
    """Random lower-case hex digits, an even number of them."""
    return os.urandom(digits // 2).hex()


def now() -> Stamp:
    """This moment."""
    return Stamp(monotonic_ns(), clock_gettime_ns(CLOCK_REALTIME))


class Ledger:
    """A span file and what became of it; `failure` is "" while the record is whole."""

    def __init__(self, spans: SpanFile) -> None:
        self.spans = spans
        self.failure = ""

    def write(self, records: list[str]) -> bool:
        """Write span lines; whether all of them are on the file."""
        try:
            for record in records:
                self.spans.append(record)
        except SpanFileError as error:
            self.fail(str(error))
            return False
        return True

    def fail(self, why: str) -> None:
        """Note the first thing that went wrong."""
        self.failure = self.failure or why

    def close(self) -> None:
        """Close the span file."""
        try:
            self.spans.close()
        except SpanFileError as error:
            self.fail(str(error))


class LongMessage:
    """A message past its limit: the copy of it that is looked at, and a scanner for what lies beyond."""

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


class Strand:
    """One ordered stream of messages of one side. What a piece leads to is written before its Step is returned."""

    def __init__(self, session: Session, side: Side, ledger: Ledger) -> None:
        self.session = session
        self.side = side
        self.ledger = ledger
        self._long: LongMessage | None = None

    def take(self, piece: Piece) -> Step:
        """What a piece leads to. Never raises: a fault of ours lets no call through, and keeps no answer back."""
        if self.ledger.failure:
            self.session.connection.failed = True
        try:
            return self._piece(piece)
        except Exception as error:
            self._fail(f"a fault of the proxy's own: {type(error).__name__}: {error}")
            self._long = None
            return self._unseen(piece.data)

    def refuse(self, data: bytes, why: str) -> Step:
        """Refuse a message from the client for what is known of it besides its text; `why` in words."""
        try:
            step = self.session.client.refuse(data, why, now())
            self._write(step.records)
        except Exception as error:
            self._fail(f"a fault of the proxy's own: {type(error).__name__}: {error}")
            return Step([])
        return step

    def _unseen(self, data: bytes) -> Step:
        return Step([], data if self.side == "server" and not self.session.edits else b"")

    def _piece(self, piece: Piece) -> Step:
        match piece.part:
            case Part.WHOLE:
                moment = now()
                return self._recorded(self.session.line(self.side, piece.data, moment), moment)
            case Part.FIRST:
                return self._first(piece.data)
            case Part.MORE:
                return self._more(piece.data)
            case Part.LAST:
                return self._last(piece.data)

    def _first(self, data: bytes) -> Step:
        long = self._long = LongMessage(data, flows=self.side == "server" and not self.session.edits)
        if self.side == "client":
            begun = self.session.client.long_line(data, long.scanner, now())
            # A record that fails here leaves no call let through: the message is refused at its end.
            long.flows = begun is not None and self._write(begun.records)
        return Step([], data if long.flows else b"")

    def _more(self, data: bytes) -> Step:
        long = self._long
        if long is None:
            return self._unseen(data)
        long.take(data)
        return Step([], data if long.flows else b"")

    def _last(self, data: bytes) -> Step:
        long = self._long
        self._long = None
        if long is None:
            return self._unseen(data)
        long.take(data)
        moment = now()
        head = bytes(long.kept)
        if self.side == "client":
            step = self.session.client.long_end(head, long.scanner, moment, flows=long.flows)
        elif long.flows and not long.cut and not self.session.connection.failed:
            step = self.session.server.line(head, moment)
        else:
            step = self.session.server.long_end(head, long.scanner, moment, flows=long.flows)
        self._write(step.records)
        return step._replace(records=[], forward=data, back=b"") if long.flows else step

    def _recorded(self, step: Step, moment: Stamp) -> Step:
        """Write a step's records; the step, or the one in its place when they could not be written."""
        return step if self._write(step.records) else self.session.unrecorded(self.side, step, moment)

    def _write(self, records: list[str]) -> bool:
        if self.ledger.write(records):
            return True
        self.session.connection.failed = True
        return False

    def _fail(self, why: str) -> None:
        self.ledger.fail(why)
        self.session.connection.failed = True
