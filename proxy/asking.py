"""The body of a request over HTTP as what it asks: judged and recorded, so that it may go on or is refused.

The body decides, never a header; a header that says something else is a reason to refuse. Refuses to know sockets.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from proxy.connection import BLANK, Step
from proxy.exchange import Exchange
from proxy.frames import Line, read_loose, read_strict
from proxy.held import Answer, HeldCall, Refused
from proxy.httprefusals import joined, said, status_of
from proxy.httpwords import Headers, disagreement, is_form, other_charset, value, values
from proxy.judging import VERSION_KEY, meta_text
from proxy.keys import fold
from proxy.lines import Part, Piece
from proxy.mcpheaders import Mirrors
from proxy.members import FrameError
from proxy.paramheaders import param_disagreement
from proxy.policy import Policy
from proxy.readings import hidden_readings, readings
from proxy.refusals import DENIED, NOT_READABLE, RECORDER_FAILED
from proxy.seats import Seat, Seats
from proxy.session import Session
from proxy.spanfile import SpanFileError
from proxy.strand import Strand
from proxy.unpack import unpacked

MODERN = "2026"
"""Versions from here on are of the era of 2026-07-28; they sort as text."""
_NAMES = frozenset(fold(name) for name in ("jsonrpc", "method", "result", "error"))
_PACKED = frozenset({b"gzip", b"x-gzip", b"deflate"})
_LIKE_ASCII = frozenset({"iso-8859-1", "iso-8859-15", "latin1", "latin-1", "windows-1252", "cp1252"})
"""Other encodings that clients name for forms, in which a message is spelled as in UTF-8."""


@dataclass(slots=True)
class Refusal:
    """An answer of ours in place of the server's."""

    status: int
    body: bytes
    headers: Headers = field(default_factory=list)


class Rest(NamedTuple):
    """Work that may wait a while, and about how many bytes it is."""

    work: Callable[[], None]
    size: int


@dataclass(slots=True)
class Asked:
    """What a request asked. `seat` and `session` are None where it is nothing of MCP.

    `opened` are the requests that it opened, `refusal` is set where it must not go on; `strand` takes the rest of a
    body that is past the cap, and then `flows` says whether it goes on.
    """

    seat: Seat | None = None
    session: Session | None = None
    opened: list[Exchange] = field(default_factory=list)
    held: HeldCall | None = None
    """What waits for an approval, before which nothing goes on."""
    refusal: Refusal | None = None
    strand: Strand | None = None
    flows: bool = True
    modern: bool = False
    opens: bool = False
    forward: bytes | None = None
    """What goes on in place of the body, where a trace context was spliced into it."""
    silent: bool = False
    """Whether a fault keeps it from the server, and nothing ever answers it."""
    gone: bool = False
    """Whether the client went away before the answer was whole."""
    rest: Rest | None = None
    """What is still to be recorded of an answer that has gone on whole."""


def _encodings(headers: Headers, name: bytes = b"content-encoding") -> list[bytes]:
    parts = [part.strip().lower() for one in values(headers, name) for part in one.split(b",")]
    return [part for part in parts if part not in (b"", b"identity")]


def _packed(encoding: bytes) -> str:
    return f"its body is encoded as {encoding.decode('latin-1')[:40]}, which is not judged; send it plain"


def _dressed(headers: Headers, encodings: list[bytes], line: Line | None) -> str | None:
    """How a body that looks like nothing of MCP may be another one to its server, in words; None where it cannot."""
    # A server behind a gateway may take Content_Encoding for Content-Encoding (RFC 3875, section 4.1.18).
    packed = encodings or _encodings(headers, b"content_encoding")
    if packed:
        return _packed(packed[0])
    charset = other_charset(headers)
    if line is None and charset is not None and charset not in _LIKE_ASCII:
        return f"its content type names the characters {charset[:40]!r}, in which it is not read"
    return None


def _read(text: bytes) -> Line | None:
    try:
        return read_loose(text)
    except FrameError:
        return None


def _touches(line: Line | None, session: Session) -> bool:
    """Whether it makes a difference to a message that a call before it is over: it has its id, or may name it."""
    still = session.connection.from_client.open
    if not still:
        return False
    return line is None or any(one.id_key is None or one.id_key in still for one in line.messages)


def _unreadable(text: bytes) -> str | None:
    """Why a body has no one reading, None where it has one."""
    try:
        line = read_strict(text)
    except FrameError as problem:
        return str(problem)
    if hidden_readings(text):
        return "a lone carriage return gives it a second reading"
    return "it is an array" if line.batch else None


class Asking:
    """Reads what clients send to one server."""

    def __init__(
        self,
        seats: Seats,
        policy: Policy | None,
        read: Callable[[str | None], Policy | None],
        mirrors: Mirrors | None = None,
    ) -> None:
        """`read` gives the policy of a file, which connections that are opened later have; it raises PolicyError.

        `mirrors` knows which arguments headers say again.
        """
        self.seats = seats
        self._mirrors = Mirrors() if mirrors is None else mirrors
        self.in_force = policy is not None and policy.in_force
        self._read = read

    def reload(self, path: str | None) -> Policy | None:
        """Judge by the policy of this file, None for none, from the next message on. Raises PolicyError."""
        policy = self._read(path)
        self.in_force = policy is not None and policy.in_force
        self.seats.adopt(policy)
        return policy

    def whole(self, headers: Headers, target: bytes, body: bytes) -> Asked:
        """What a request with this body asks; `target` is its path and query."""
        encodings = _encodings(headers)
        # A copy that is unpacked tells the record what was asked, whether it goes on or not.
        text = unpacked(body) if encodings and encodings[0] in _PACKED else body
        line = _read(text)
        if self._foreign(headers, text, line):
            why = _dressed(headers, encodings, line) if self.in_force and body else None
            return Asked() if why is None else self._turned_away(headers, target, why)
        asked = self._seated(headers, target, line)
        if asked.session is None or asked.seat is None:
            return asked
        strand = asked.seat.relay.strand("client", asked.session)
        why = self._outside(headers, encodings, line) if self.in_force else None
        step = strand.take(Piece(Part.WHOLE, text)) if why is None else strand.refuse(text, why)
        asked.opened = list(step.opened)
        if step.forward and not encodings:
            asked.forward = step.forward
        if step.held:
            (asked.held,) = step.held
        elif step.kept and not step.back:
            asked.silent = True
        elif not step.forward:
            asked.refusal = self._refusal(asked, step, why or _unreadable(text))
            if encodings and self.in_force:
                asked.refusal.status = 415
                asked.refusal.headers = [(b"accept-encoding", b"identity")]
        return asked

    def answered(self, asked: Asked, said: Answer) -> None:
        """An approval came for what waits, or none: it may go on, or is refused."""
        held, asked.held = asked.held, None
        if held is None or asked.session is None or asked.seat is None:
            return
        step = asked.seat.relay.strand("client", asked.session).answer(held, said)
        asked.opened = list(step.opened)
        asked.forward = step.forward or None
        if not step.forward:
            asked.refusal = self._refusal(asked, step, said.why if isinstance(said, Refused) else None)

    def _turned_away(self, headers: Headers, target: bytes, why: str) -> Asked:
        """Refuse what says that it is nothing of MCP and cannot be read; secrets of a form are not recorded."""
        asked = self._seated(headers, target, None)
        if asked.session is not None and asked.seat is not None:
            step = asked.seat.relay.strand("client", asked.session).refuse(b"", why)
            asked.refusal = self._refusal(asked, step, why)
            asked.refusal.status = 415
            asked.refusal.headers = [(b"accept-encoding", b"identity")]
        return asked

    def long(self, headers: Headers, target: bytes, head: bytes) -> Asked:
        """What a request asks whose body is past the cap, of which `head` is there."""
        asked = self._seated(headers, target, None)
        if asked.session is None or asked.seat is None:
            return asked
        asked.strand = asked.seat.relay.strand("client", asked.session)
        asked.flows = bool(asked.strand.take(Piece(Part.FIRST, head)).forward)
        return asked

    def rest(self, asked: Asked, data: bytes, *, ended: bool) -> None:
        """More of a body past the cap; at its end what was opened or refused is known."""
        if asked.strand is None:
            return
        step = asked.strand.take(Piece(Part.LAST if ended else Part.MORE, data))
        if not ended:
            return
        asked.opened = list(step.opened)
        if not asked.flows:
            asked.refusal = self._refusal(asked, step, "it is longer than what policy looks at")
            asked.refusal.status = 413

    def _seated(self, headers: Headers, target: bytes, line: Line | None) -> Asked:
        messages = () if line is None else line.messages
        opens = any(message.method == "initialize" for message in messages)
        try:
            seat = self.seats.of(headers, target, opens=opens)
        except SpanFileError as error:
            self.seats.fail(str(error))
            ids = [message.id_text for message in messages if message.id_key is not None and message.id_text]
            body = said(RECORDER_FAILED, "Wiretrap cannot record this connection, so nothing is let through", ids)
            return Asked(refusal=Refusal(500, body))
        session = seat.session()
        if not seat.shared and _touches(line, session):
            # An answer that told nothing has ended its call, though the record of it waits (see Arrears).
            self.seats.arrears.clear()
        versions = [meta_text(message, VERSION_KEY) or "" for message in messages]
        version = max(versions, default="") or session.connection.version
        if line is None:
            version = value(headers, b"mcp-protocol-version").decode("latin-1")
        return Asked(seat, session, modern=version >= MODERN, opens=opens)

    def _foreign(self, headers: Headers, text: bytes, line: Line | None) -> bool:
        """Whether a body is nothing that any reader takes for a message of MCP: a form, a client's registration."""
        if not text.strip(BLANK):
            return not values(headers, b"content-encoding")
        if line is None:
            return is_form(headers) and not readings(text)
        if values(headers, b"mcp-method") or values(headers, b"mcp-name"):
            return False
        if any(fold(key) in _NAMES for message in line.messages for key in message.fields):
            return False
        return not readings(text)

    def _outside(self, headers: Headers, encodings: list[bytes], line: Line | None) -> str | None:
        """Why a body must not go on for what stands around it, in words."""
        if encodings:
            return _packed(encodings[0])
        charset = other_charset(headers)
        if charset is not None:
            return f"its content type names the characters {charset[:40]!r}, and JSON is UTF-8"
        if line is None:
            return None  # its own reading says what is wrong with it
        one = line.messages[0] if len(line.messages) == 1 and not line.batch else None
        return disagreement(headers, one) or param_disagreement(headers, one, self._mirrors)

    def _refusal(self, asked: Asked, step: Step, why: str | None) -> Refusal:
        if step.back.strip():
            return Refusal(status_of(step.back, modern=asked.modern), joined(step.back))
        failed = asked.session is not None and asked.session.connection.failed
        code = RECORDER_FAILED if failed else DENIED if why is None else NOT_READABLE
        return Refusal(400, said(code, f"Wiretrap refused this message: {why or 'policy denies it'}"))
