"""Lines from the client: judged, recorded and forwarded, or refused.

Refuses to know pipes, and what the server says.
"""

from proxy.connection import BLANK, Connection, Step
from proxy.exchange import CLIENT_TO_SERVER, Exchange, requested
from proxy.faulting import hold_back, strike
from proxy.frames import Line, Message, read_loose, read_strict
from proxy.holding import can_wait, cancel, hold
from proxy.judging import Judgement, is_judged, judge_reading, judge_request, meta_text
from proxy.longlines import Begun, first_seen, flowed
from proxy.members import FrameError
from proxy.policy import NO_POLICY, Decision
from proxy.readings import SHORTEST_BUFFER, Reading, answerable_ids, hidden_readings, ids_of, nested_readings, readings
from proxy.record import Place, Stamp
from proxy.refusals import NOT_READABLE, RECORDER_FAILED, error
from proxy.refusing import refusal
from proxy.scan import EnvelopeScanner
from proxy.tracecontext import spliced

BATCH_VERSION = "2025-03-26"
"""The one revision that has arrays (MCP 2025-03-26, basic/lifecycle; taken out again in 2025-06-18)."""

_FAILED = "the record cannot be written, so no call is let through"


def _reply(replies: list[str], *, batch: bool) -> bytes:
    """What answers a refused line: a line for each message on it, or of an array one array. Empty without replies."""
    if not replies:
        return b""
    text = f"[{','.join(replies)}]" if batch else "\n".join(replies)
    return text.encode("utf-8", "surrogateescape") + b"\n"


class ClientSide:
    """What the client sends on one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._begun: Begun | None = None

    def line(self, raw: bytes, now: Stamp) -> Step:
        """A whole line."""
        wire = self.connection
        if not raw.strip(BLANK):
            return Step([], raw)
        odd: str | None = None
        strict = True
        try:
            line = read_strict(raw)
            if b"\r" in raw and any(is_judged(reading.method) for reading in hidden_readings(raw)):
                raise FrameError("a lone carriage return may end a line inside it, which gives it a second reading")
            if len(raw) > SHORTEST_BUFFER and self._hides_call(line, raw):
                raise FrameError("a message stands inside it that is denied by itself")
        except FrameError as problem:
            odd, strict = str(problem), False
            if wire.strict:
                return self.refuse(raw, odd, now)
            try:
                line = read_loose(raw)
            except FrameError:
                return Step(wire.unread(raw, odd, now, CLIENT_TO_SERVER), raw, gate=True)
        if line.batch and odd is None and wire.version != BATCH_VERSION:
            odd = f"it is an array, which only protocol {BATCH_VERSION} has"
            if wire.strict:
                return self.refuse(raw, odd, now)
        judged = [self._judge(message, odd) for message in line.messages]
        for one in judged:
            if one.refused:
                if wire.holds and not line.batch and can_wait(wire, one):
                    return hold(wire, one, raw, now)
                return self._refuse(judged, line, now)
        return self._forward(judged, raw, odd, now, splice=wire.splice and strict, alone=not line.batch)

    def _hides_call(self, line: Line, raw: bytes) -> bool:
        if self.connection.policy is None and not self.connection.failed:
            return False
        own = sum(message.method is not None for message in line.messages)
        return any(self._denies(reading) for reading in nested_readings(raw, own))

    def _denies(self, reading: Reading) -> bool:
        """Whether a message inside another one would be refused, if a server took it for one."""
        wire = self.connection
        return is_judged(reading.method) and (
            wire.policy is None or judge_reading(reading, wire.policy, wire.server, wire.trust)
        )

    def _judge(self, message: Message, odd: str | None) -> Judgement:
        wire = self.connection
        one = judge_request(message, wire.policy, wire.server, wire.trust)
        if one.decision is None or one.refused:
            return one
        if wire.failed:
            return one._replace(decision=Decision("deny", "recorder failed", _FAILED, True), code=RECORDER_FAILED)
        if odd is not None and wire.policy is not None:
            return one._replace(decision=Decision("deny", "one reading", odd, False), code=NOT_READABLE)
        return one

    def _forward(
        self, judged: list[Judgement], raw: bytes, odd: str | None, now: Stamp, *, splice: bool, alone: bool
    ) -> Step:
        """Send a line on, or have a fault meet the call on it; `alone`: it is one message, and no array."""
        records: list[str] = []
        opened: list[Exchange] = []
        placed: list[tuple[Message, Place]] = []
        decided = False
        for one in judged:
            given = one.message.given
            parent = meta_text(one.message, "traceparent") if "_meta" in given else None
            place = self.connection.recorder.place(parent)
            exchange, lines = self._message(one, place, odd, now)
            decided = decided or one.decision is not None
            records += lines
            if splice and one.message.method is not None:
                placed.append((one.message, place))
            if exchange is not None:
                opened.append(exchange)
                struck, told = strike(self.connection, exchange, now) if alone else (None, [])
                records += told
                if struck is not None and struck.fault.held_back:
                    return hold_back(self.connection, struck.fault, exchange, records, raw, now)
                if struck is not None:
                    exchange.planned = struck.fault
                    self.connection.spoilt.add(exchange.key)
        if odd is not None and not decided:
            # Some reader may see a call where this one sees none: that is a decision all the same.
            records += self.connection.unread(raw, odd, now, CLIENT_TO_SERVER)
            decided = True
        return Step(records, spliced(raw, placed) if splice else raw, b"", decided, tuple(opened))

    def _message(self, one: Judgement, place: Place, odd: str | None, now: Stamp) -> tuple[Exchange | None, list[str]]:
        """Open the exchange of a message that goes on, and record what is known of it now; its own span is `place`."""
        wire = self.connection
        message = one.message
        if message.is_answer:
            return None, wire.answer(wire.from_server, message, now, CLIENT_TO_SERVER)
        method = message.method
        if method is None:
            return None, [wire.malformed(message.source, "neither a request nor an answer", now, CLIENT_TO_SERVER)]
        if message.id_key is None and one.decision is None:
            lines = [wire.notification(message, method, now, CLIENT_TO_SERVER, place)]
            if method == "notifications/cancelled":
                key = requested(message)
                wire.from_client.cancel(key)
                if wire.held:
                    lines += cancel(wire, key, now)
            return None, lines
        seq = wire.recorder.next_seq()
        exchange = wire.exchange(one, place, seq, now, CLIENT_TO_SERVER)
        if exchange is not None:
            if exchange.call is not None:
                exchange.leg = wire.rounds.next(message, exchange.call)
            wire.from_client.add(exchange)
        if one.decision is None:
            return exchange, []
        return exchange, [wire.decision(one, place, seq, now, CLIENT_TO_SERVER, odd, alone=exchange is None)]

    def _refuse(self, judged: list[Judgement], line: Line, now: Stamp) -> Step:
        """Refuse a line of which some message is denied: one refusal refuses an array whole (wire rule 7)."""
        records: list[str] = []
        replies: list[str] = []
        for one in judged:
            whole = Decision("deny", "whole array", "another message of its array is refused", True)
            refused = one if one.refused else one._replace(decision=whole)
            lines, reply = refusal(self.connection, refused, now, CLIENT_TO_SERVER)
            if not lines:
                why = "it stands in an array of which another message is refused"
                lines = [self.connection.malformed(one.message.source, why, now, CLIENT_TO_SERVER)]
            records += lines
            if reply is not None:
                replies.append(reply)
        return Step(records, back=_reply(replies, batch=line.batch))

    def refuse(self, raw: bytes, why: str, now: Stamp) -> Step:
        """Refuse a line that has no one reading, and say `why`; every id that it may ask under is answered."""
        seen = readings(raw)
        rule, code, why = ("recorder failed", RECORDER_FAILED, _FAILED) if self.connection.failed else (
            "one reading", NOT_READABLE, why)  # fmt: skip
        decision = Decision("deny", rule, why, True)
        record = self.connection.unread_decision(raw, why, seen, decision, now, CLIENT_TO_SERVER)
        ids, batch = answerable_ids(raw) if seen else ([], False)
        replies = [error(text, code, f"Wiretrap refused this message: {why}", rule, reason=why) for text in ids]
        return Step([record], back=_reply(replies, batch=batch))

    def long_line(self, head: bytes, scanner: EnvelopeScanner, now: Stamp) -> Step | None:
        """A line past the cap, of which the first bytes are here; None when it is refused once its end has come.

        A Step forwards `head`; the rest of the line then flows.
        """
        wire = self.connection
        if wire.strict:
            return None
        why = "it is longer than what is looked at"
        decision = NO_POLICY if wire.policy is None else Decision("deny", "one reading", why, False)
        self._begun = (wire.recorder.place(None), wire.recorder.next_seq(), now)
        seen = first_seen(wire, scanner, CLIENT_TO_SERVER)
        record = wire.cut_decision(head, why, seen, decision, self._begun, CLIENT_TO_SERVER)
        return Step([record], head, gate=True)

    def long_end(self, head: bytes, scanner: EnvelopeScanner, now: Stamp, *, flows: bool) -> Step:
        """The end of a line past the cap; `scanner` has seen all of it, `flows` says whether it went on."""
        wire = self.connection
        if flows:
            records, opened = flowed(wire, head, scanner, self._begun, now, CLIENT_TO_SERVER)
            return Step(records, opened=tuple(opened))
        why = _FAILED if wire.failed else "it is longer than what policy looks at"
        rule, code = ("recorder failed", RECORDER_FAILED) if wire.failed else ("one reading", NOT_READABLE)
        begun = (wire.recorder.place(None), wire.recorder.next_seq(), now)
        seen = first_seen(wire, scanner, CLIENT_TO_SERVER)
        decision = Decision("deny", rule, why, True)
        record = wire.cut_decision(head, why, seen, decision, begun, CLIENT_TO_SERVER, alone=True)
        replies = [
            error(text, code, f"Wiretrap refused this message: {why}", rule, reason=why) for text in ids_of(scanner)
        ]
        return Step([record], back=_reply(replies, batch=scanner.array))
