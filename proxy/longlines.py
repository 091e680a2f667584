"""What is recorded of messages past the cap, of which only the first bytes and a scan are there (wire rule 2).

Refuses to know whether such a line goes on: the two sides decide that.
"""

from typing import NamedTuple

from proxy import vocabulary as v
from proxy.connection import Connection
from proxy.exchange import SERVER_TO_CLIENT, Exchange, ended, error_attributes
from proxy.frames import CAP, read_loose
from proxy.ids import id_key
from proxy.judging import Judgement, judge_client_request, judge_request
from proxy.members import FrameError
from proxy.record import Place, Recorder, Stamp, payload
from proxy.refusals import NOT_READABLE
from proxy.scan import Envelope, EnvelopeScanner, decoded
from proxy.spans import encode_attribute

Begun = tuple[Place, int, Stamp]
"""Where a request stands, its seq, and when it came."""
BRIEF = 64 * 1024
"""Bytes that are recorded of an answer past the cap that flows."""


class LongMessage:
    """A message past its limit: the copy of it that is looked at, and a scanner for what lies beyond.

    Of one that flows on no more is held than is recorded of it: all up to the cap, and past it the beginning.
    """

    def __init__(self, head: bytes, *, flows: bool, brief: bool = False) -> None:
        """`brief`: it is known to go past the cap, and flows from the server."""
        self.kept = bytearray(head[:BRIEF] if brief else head)
        self.flows = flows
        self.cut = brief
        self._brief = brief
        self.scanner = EnvelopeScanner()
        self.scanner.feed(head)

    def take(self, data: bytes, *, shortens: bool = False) -> None:
        """Look at further bytes; `shortens`: of one past the cap only the beginning is kept."""
        self.look(data, 0, len(data), shortens=shortens)

    def look(self, data: bytes | bytearray, start: int, end: int, *, shortens: bool) -> None:
        """The same with bytes between two places."""
        if not self.scanner.passes(data, start, end):
            self.scanner.feed(bytes(data[start:end]))
        if self._brief:
            return
        piece = memoryview(data)[start:end]
        room = CAP - len(self.kept)
        if len(piece) <= room:
            self.kept += piece
            return
        self.cut = True
        if shortens:
            self._brief = True
            kept = min(BRIEF, CAP)
            self.kept = self.kept[:kept] + piece[: max(kept - len(self.kept), 0)]
        else:
            self.kept += piece[:room]


def seen_of(wire: Connection, envelope: Envelope, direction: str) -> Judgement | None:
    """A message of what was scanned, its canonical name beside it; None when its method was not seen.

    The decision in it is that without a policy: what is cut is not judged.
    """
    method = envelope.found.get("method")
    if method is None or envelope.text("method") is None:
        return None
    pieces = [b'{"jsonrpc":"2.0","method":' + method]
    if envelope.id_text is not None:
        pieces.append(b',"id":' + envelope.found["id"])
    for key in ("name", "uri"):
        if envelope.text(key) is not None:
            pieces.append(b',"params":{"' + key.encode() + b'":' + envelope.found[key] + b"}")
            break
    try:
        message = read_loose(b"".join(pieces) + b"}").messages[0]
    except FrameError:
        return None
    if direction == SERVER_TO_CLIENT:
        return judge_client_request(message, None)
    return judge_request(message, None, wire.server, wire.trust)


def first_seen(wire: Connection, scanner: EnvelopeScanner, direction: str) -> Judgement | None:
    """The first message of a line whose method was seen."""
    found = (seen_of(wire, envelope, direction) for envelope in scanner.envelopes)
    return next((one for one in found if one is not None), None)


def flowed(
    wire: Connection, head: bytes, scanner: EnvelopeScanner, begun: Begun | None, now: Stamp, direction: str
) -> tuple[list[str], list[Exchange]]:
    """The lines of a line past the cap that went on, and the exchanges that it opens.

    `begun` belongs to the decision that was written before it flowed; its first request is the one decided on.
    """
    from_client = direction != SERVER_TO_CLIENT
    records: list[str] = []
    opened: list[Exchange] = []
    for envelope in scanner.envelopes:
        one = seen_of(wire, envelope, direction)
        if one is not None:
            place, seq, moment = begun or (wire.recorder.place(None), wire.recorder.next_seq(), now)
            exchange = wire.exchange(one, place, seq, moment, direction, cut=True)
            if exchange is not None:
                begun = None
                (wire.from_client if from_client else wire.from_server).add(exchange)
                opened.append(exchange)
        else:
            exchange = _asked(wire, envelope, direction)
            if exchange is not None:
                seq = wire.recorder.next_seq()
                wire.owed.append(OwedCut(exchange, head, envelope, now, wire.version, seq))
    return records, opened


class OwedCut(NamedTuple):
    """An exchange that an answer past the cap ended, of which the line is made once the answer has gone on.

    `head` is what was kept of it; `seq` is the answer's.
    """

    exchange: Exchange
    head: bytes
    envelope: Envelope
    now: Stamp
    version: str
    seq: int

    def line(self, recorder: Recorder) -> str:
        """The line."""
        exchange, found = self.exchange, self.envelope.found
        is_tool = exchange.method == "tools/call"
        code = found.get("code")
        is_result = is_tool and code is None
        whole = self.head.decode("utf-8", "surrogateescape")
        more = payload(v.TOOL_RESULT if is_result else v.RESULT, "result", whole, truncated=True)
        outcome, failure = "ok", None
        if code is not None:
            outcome = "protocol_error"
            attributes, failure = error_attributes(decoded(code), "")
            more += attributes
        elif is_tool and found.get("is_error") == b"true":
            outcome, failure = "tool_error", "the tool's result is an error"
            more.append(encode_attribute(v.ERROR_TYPE, outcome))
        return ended(recorder, exchange, self.now, outcome, more, version=self.version, failure=failure, seq=self.seq)


def _asked(wire: Connection, envelope: Envelope, direction: str) -> Exchange | None:
    """The exchange that an answer ends; None when no request asked for it."""
    text = envelope.id_text
    if text is None:
        return None
    asked = wire.from_client if direction == SERVER_TO_CLIENT else wire.from_server
    return asked.take(id_key(decoded(text.encode()), text))


def withheld(wire: Connection, envelope: Envelope, now: Stamp, direction: str, said: str) -> str | None:
    """The line of the exchange that an answer past the cap would have ended, in whose place our error `said` goes on.

    None when no request asked for it. What came of the answer stands in the record of the line that it was.
    """
    exchange = _asked(wire, envelope, direction)
    if exchange is None:
        return None
    more = [encode_attribute(v.ERROR_TYPE, str(NOT_READABLE))]
    return ended(wire.recorder, exchange, now, "protocol_error", more, version=wire.version, failure=said, ours=True)
