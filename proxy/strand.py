"""The streams of messages of one connection: what each leads to, once what has to be on the record before is there.

Refuses to know how messages are cut out of bytes: a strand is given them whole, or in pieces where they are long.
"""

from collections.abc import Sequence
from time import monotonic_ns, time_ns

from proxy.connection import Step
from proxy.exchanges import OpenCall
from proxy.held import Answer, HeldCall
from proxy.ledger import Ledger, now, random_hex
from proxy.lines import Part, Piece
from proxy.longlines import LongMessage
from proxy.session import Session, Side
from proxy.spanfile import SpanFileError

_TOGETHER = 64
"""Messages whose records are written with one write at most: more of them at once cost memory and win no time."""


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

    def passes(self, raw: bytes) -> bool:
        """Whether one whole line of this side goes on as it is, with all on the record that has to be before.

        Where it does not, nothing has been done but that the record may have failed, and `line` has to take it.
        """
        connection = self.session.connection
        try:
            if self.side == "server":
                return connection.passes(raw, now())
            moment = monotonic_ns()
            decided = None if self.ledger.failure else self.session.plain.decided(raw, moment, time_ns())
            if decided is None:
                return False
            line, call = decided
            self.ledger.spans.append(line, moment)
            connection.from_client.calls[call[5]] = call
        except SpanFileError as error:
            self.ledger.fail(str(error))
            return False
        except Exception as error:
            self._fault(error)
            return False
        return True

    def passes_some(self, chunk: bytes) -> int:
        """How many bytes the lines have that the chunk begins with and that pass; their records share their writes."""
        connection = self.session.connection
        waiting: list[tuple[str, OpenCall]] = []
        at = recorded = 0
        try:
            while (end := chunk.find(b"\n", at) + 1) and not self.ledger.failure:
                raw = chunk[at:end]
                if self.side == "server":
                    if not connection.passes(raw, now()):
                        break
                else:
                    decided = self.session.plain.decided(raw, *now())
                    if decided is None:
                        break
                    waiting.append(decided)
                    call = decided[1]
                    connection.from_client.calls[call[5]] = call
                at = end
                if len(waiting) == _TOGETHER:
                    if not self._pass_recorded(waiting):
                        return recorded
                    recorded = at
            return at if self._pass_recorded(waiting) else recorded
        except Exception as error:
            self._fault(error)
            self._withdraw(waiting)
            return at if self.side == "server" else recorded

    def _pass_recorded(self, waiting: list[tuple[str, OpenCall]]) -> bool:
        """Write the decisions on calls that are to pass; where that fails none of them does."""
        if not self.ledger.write([line for line, _ in waiting]):
            self._withdraw(waiting)
            return False
        waiting.clear()
        return True

    def _withdraw(self, waiting: list[tuple[str, OpenCall]]) -> None:
        for _, call in waiting:
            self.session.connection.from_client.calls.pop(call[5], None)

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
