"""The record of one connection as it is being written, and the streams of messages that lead to it.

Refuses to know how messages are cut out of bytes: a strand is given them whole, or in pieces where they are long.
"""

import os
from collections.abc import Sequence
from time import monotonic_ns, time_ns

from proxy.connection import Step
from proxy.held import Answer, HeldCall
from proxy.lines import Part, Piece
from proxy.longlines import LongMessage
from proxy.record import Stamp
from proxy.session import Session, Side
from proxy.spanfile import SpanFile, SpanFileError

_TOGETHER = 64
"""Messages whose records are written with one write at most: more of them at once cost memory and win no time."""
_POOL = 512


def random_hex(digits: int) -> str:
    """Random lower-case hex digits, an even number of them."""
    return os.urandom(digits // 2).hex()


class RandomHex:
    """The same for one connection, asked of the system in one go for many ids. Not for several threads at once."""

    def __init__(self) -> None:
        self._pool = ""
        self._at = 0

    def __call__(self, digits: int) -> str:
        """So many digits, at most 512."""
        at = self._at
        if at + digits > len(self._pool):
            self._pool, at = os.urandom(_POOL // 2).hex(), 0
        self._at = at + digits
        return self._pool[at : at + digits]


def now() -> Stamp:
    """This moment."""
    return Stamp(monotonic_ns(), time_ns())


class Ledger:
    """A span file and what became of it; `failure` is "" while the record is whole."""

    def __init__(self, spans: SpanFile) -> None:
        self.spans = spans
        self.failure = ""

    def write(self, records: "Sequence[str | bytes | bytearray]", *, checked: bool = True) -> bool:
        """Write span lines at once; whether they are on the file. `checked`: see `SpanFile.append_all`."""
        try:
            self.spans.append_all(records, checked=checked)
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


class Strand:
    """One ordered stream of messages of one side. What a piece leads to is written before its Step is returned."""

    def __init__(self, session: Session, side: Side, ledger: Ledger) -> None:
        self.session = session
        self.side = side
        self.ledger = ledger
        self._long: LongMessage | None = None
        self.brief = False
        """Whether the message that comes next is known to go past the cap."""

    def take(self, piece: Piece) -> Step:
        """What a piece leads to, with all that is known now on the record, the answers that are about to go on too."""
        (step,) = self.take_all([piece])
        if self.session.owes:
            self.settle()
        return step

    def take_all(self, pieces: list[Piece]) -> list[Step]:
        """What some pieces lead to; of whole messages behind each other the records are written with one write.

        Never raises: a fault of ours lets no call through, and keeps no answer back. Answers are still owed a record.
        """
        if self.ledger.failure:
            self.session.connection.failed = True
        if len(pieces) == 1 and pieces[0].part is Part.WHOLE:
            return [self.line(pieces[0].data)]
        done: list[Step] = []
        waiting: list[Step] = []
        for piece in pieces:
            if piece.part is Part.WHOLE:
                waiting.append(self._guarded(piece))
                if len(waiting) == _TOGETHER:
                    done += self._written(waiting)
                    waiting = []
            else:
                done += self._written(waiting)
                waiting = []
                done.append(self._guarded(piece))
        return done + self._written(waiting)

    def line(self, data: bytes) -> Step:
        """What one whole line leads to, as `take_all` has it."""
        if self.ledger.failure:
            self.session.connection.failed = True
        try:
            step = self.session.line(self.side, data, now())
        except Exception as error:
            self._fault(error)
            self._long = None
            return self._unseen(data)
        if not step.records or self._write(step.records):
            return step
        return self.session.unrecorded(self.side, step, now())

    def answer(self, held: HeldCall, said: Answer) -> Step:
        """What an answer to a held call leads to, once that is on the record. Never raises: a fault lets nothing on."""
        if self.ledger.failure:
            self.session.connection.failed = True
        try:
            step = self.session.answer(held, said, now())
        except Exception as error:
            self._fault(error)
            return Step([])
        return step if self._write(step.records) else self.session.unrecorded(self.side, step, now())

    def abandon(self) -> Step:
        """Refuse every call that waits, since the client is gone."""
        try:
            step = self.session.abandon(now())
            self._write(step.records)
        except Exception as error:
            self._fault(error)
            return Step([])
        return step

    def settle(self) -> None:
        """Record the answers that are owed a record."""
        try:
            more = True
            while more:
                records = self.session.settle(_TOGETHER)
                more = bool(self.session.connection.passed)
                # Whether the file is still the one that was written to, the next decision asks; an answer need not.
                if records and not self.ledger.write(records, checked=False):
                    self.session.connection.failed = True
        except Exception as error:  # an answer that has gone on cannot be called back; no call follows it
            self._fault(error)

    async def settle_beside(self) -> None:
        """The same for large answers: other streams go on meanwhile, and what is written is whole when this ends."""
        connection = self.session.connection
        try:
            self.session.server.catch_up()
        except Exception as error:  # as in `settle`
            self._fault(error)
        owed, connection.owed = connection.owed, []
        self.settle()
        from proxy.beside import begin, over  # noqa: PLC0415  (it loads asyncio, which costs stdio's start a fifth)
        from proxy.largeline import large_line  # noqa: PLC0415  (nor is it needed there)

        def encode() -> "list[str | bytes | bytearray]":
            owed.reverse()
            return [large_line(owed.pop(), connection.recorder, random_hex(32)) for _ in range(len(owed))]

        encoding = begin(encode)
        try:
            await over(encoding)
        finally:
            try:
                self._write(encoding.result())
            except Exception as error:  # as in `settle`
                self._fault(error)

    def _written(self, waiting: list[Step]) -> list[Step]:
        """Write the records of whole messages; their steps, or those in their place when they were not written."""
        records = [one for step in waiting for one in step.records]
        if not self._write(records):
            return [self.session.unrecorded(self.side, step, now()) for step in waiting]
        for step in waiting:
            step.records.clear()  # what is on the file is not held until its line has gone on
        return waiting

    def _guarded(self, piece: Piece) -> Step:
        try:
            if piece.part is Part.WHOLE:
                return self.session.line(self.side, piece.data, now())
            self.session.server.catch_up()
            return self._part(piece)
        except Exception as error:
            self._fault(error)
            self._long = None
            return self._unseen(piece.data)

    def refuse(self, data: bytes, why: str) -> Step:
        """Refuse a message from the client for what is known of it besides its text; `why` in words."""
        try:
            step = self.session.client.refuse(data, why, now())
            self._write(step.records)
        except Exception as error:
            self._fault(error)
            return Step([])
        return step

    def _unseen(self, data: bytes) -> Step:
        return Step([], data if self.side == "server" and not self.session.edits else b"")

    def _part(self, piece: Piece) -> Step:
        match piece.part:
            case Part.FIRST:
                return self._first(piece.data)
            case Part.MORE:
                return self._more(piece.data)
            case _:
                return self._last(piece.data)

    def _first(self, data: bytes) -> Step:
        flows = self.side == "server" and not self.session.edits
        long = self._long = LongMessage(data, flows=flows, brief=self.brief and flows)
        if self.side == "client":
            begun = self.session.client.long_line(data, long.scanner, now())
            # A record that fails here leaves no call let through: the message is refused at its end.
            long.flows = begun is not None and self._write(begun.records)
        return Step([], data if long.flows else b"")

    def _more(self, data: bytes) -> Step:
        long = self._long
        if long is None:
            return self._unseen(data)
        long.take(data, shortens=long.flows and self.side == "server")
        return Step([], data if long.flows else b"")

    def look(self, data: bytes | bytearray, start: int, end: int) -> None:
        """See further bytes of a long message of the server's that goes on, between two places of what is reused."""
        long = self._long
        if long is None:
            return
        try:
            long.look(data, start, end, shortens=True)
        except Exception as error:
            self._fault(error)
            self._long = None

    def _last(self, data: bytes) -> Step:
        long = self._long
        self._long = None
        if long is None:
            return self._unseen(data)
        long.take(data, shortens=long.flows and self.side == "server")
        moment = now()
        head = bytes(long.kept)
        long.kept.clear()
        if self.side == "client":
            step = self.session.client.long_end(head, long.scanner, moment, flows=long.flows)
        elif long.flows and not long.cut and not self.session.connection.failed:
            step = self.session.server.line(head, moment)
        else:
            step = self.session.server.long_end(head, long.scanner, moment, flows=long.flows)
        self._write(step.records)
        return step._replace(records=[], forward=data, back=b"") if long.flows else step

    def _write(self, records: "Sequence[str | bytes | bytearray]") -> bool:
        if not records or self.ledger.write(records):
            return True
        self.session.connection.failed = True
        return False

    def _fault(self, error: Exception) -> None:
        self.ledger.fail(f"a fault of the proxy's own: {type(error).__name__}: {error}")
        self.session.connection.failed = True
