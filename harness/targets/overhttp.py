"""A channel to a server over Streamable HTTP: each line is a POST of its own, and its answers come as lines again.

Refuses to know MCP but for the two headers that go with a session. Opens no listening stream.
"""

import json
import select
import socket
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import h11

from harness.targets.client import ProtocolError, ServerEndedError
from harness.targets.deadline import Deadline, TimeUpError
from proxy.lines import Part
from proxy.spans import JSON
from proxy.sse import EventReader

_CHUNK = 1 << 16
_LONGEST = 1 << 30


@dataclass(slots=True)
class _Exchange:
    """One POST and its answer, on a connection of its own: a stream may stay open while others are sent."""

    name: str
    socket: socket.socket
    deadline: Deadline
    wire: h11.Connection = field(default_factory=lambda: h11.Connection(h11.CLIENT))
    events: EventReader | None = None

    def send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self.deadline.wait({self.socket.fileno(): select.POLLOUT})
            try:
                rest = rest[self.socket.send(rest) :]
            except BlockingIOError:
                continue
            except OSError:
                return  # the answer, or its absence, tells

    def next(self) -> h11.Event:
        while True:
            try:
                event = self.wire.next_event()
                if event is not h11.NEED_DATA:
                    return _told(event, self.name)
                self.deadline.wait({self.socket.fileno(): select.POLLIN})
                self.wire.receive_data(self.socket.recv(_CHUNK))
            except BlockingIOError:
                continue
            except (OSError, h11.RemoteProtocolError) as error:
                raise ServerEndedError(f"server {self.name}: the answer broke off: {error}") from error


def _told(event: object, name: str) -> h11.Event:
    if isinstance(event, h11.Event):
        return event
    raise ServerEndedError(f"server {name} closed the connection")


@dataclass(slots=True)
class HttpChannel:
    """Lines to and from the server at `url`. `deadline` may be replaced while it is used."""

    name: str
    url: str
    deadline: Deadline
    _headers: dict[str, str] = field(default_factory=dict)
    _lines: deque[bytes] = field(default_factory=deque)
    _streams: list[_Exchange] = field(default_factory=list)

    def send(self, line: bytes) -> None:
        """Post one line, and take in an answer that is no stream."""
        exchange = self._ask("POST", line.strip())
        try:
            head = exchange.next()
        except TimeUpError:
            exchange.socket.close()
            raise
        assert isinstance(head, h11.Response | h11.InformationalResponse)
        headers = {key.decode(): value.decode("latin-1") for key, value in head.headers}
        if "mcp-session-id" in headers:
            self._headers["mcp-session-id"] = headers["mcp-session-id"]
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and head.status_code == 200:
            exchange.events = EventReader(_LONGEST)
            self._streams.append(exchange)
            return
        body = self._body(exchange)
        if kind == "application/json" and _is_message(body):
            self._take(body)
        elif head.status_code not in (200, 202, 204):
            raise ProtocolError(f"server {self.name} answered with the HTTP status {head.status_code}")

    def receive(self) -> bytes:
        """The next line of any answer; that of the latest request comes first."""
        while not self._lines:
            if not self._streams:
                raise ServerEndedError(f"server {self.name} ended its answer without one to the request")
            stream = self._streams[-1]
            stream.deadline = self.deadline
            event = stream.next()
            if isinstance(event, h11.Data):
                assert stream.events is not None
                for one in stream.events.feed(bytes(event.data)):
                    if one.piece.part is Part.WHOLE and one.piece.data:
                        self._take(one.piece.data)
            else:
                self._streams.remove(stream)
                stream.socket.close()
        return self._lines.popleft()

    def close_input(self) -> None:
        """Close what is open; the session is ended by `close`."""
        for stream in self._streams:
            stream.socket.close()
        self._streams.clear()

    def close(self) -> None:
        """End the session."""
        self.close_input()
        if "mcp-session-id" in self._headers:
            self._body(self._ask("DELETE", b""))

    def abandon(self) -> None:
        """Let go of everything."""
        self.close_input()

    def _ask(self, method: str, body: bytes) -> _Exchange:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        try:
            connection = socket.create_connection((parts.hostname, parts.port), self.deadline.left() or 0.01)
        except OSError as error:
            raise ServerEndedError(f"server {self.name}: its proxy cannot be reached: {error}") from error
        connection.setblocking(False)
        exchange = _Exchange(self.name, connection, self.deadline)
        headers = {
            "host": parts.netloc,
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "content-length": str(len(body)),
            "connection": "close",
            **self._headers,
        }
        head = h11.Request(method=method, target=parts.path or "/", headers=list(headers.items()))
        events = (head, h11.Data(data=body), h11.EndOfMessage())
        exchange.send(b"".join(exchange.wire.send(event) or b"" for event in events))
        return exchange

    def _body(self, exchange: _Exchange) -> bytes:
        """What is left of an answer, and its connection closed."""
        found = b""
        with exchange.socket:
            while not isinstance(event := exchange.next(), h11.EndOfMessage | h11.ConnectionClosed):
                found += bytes(event.data) if isinstance(event, h11.Data) else b""
        return found

    def _take(self, data: bytes) -> None:
        # One line each, whatever line ends stand in it: JSON has none inside of its texts.
        self._lines.append(data.replace(b"\r", b" ").replace(b"\n", b" "))
        if "mcp-protocol-version" not in self._headers:
            with suppress(ValueError):
                version = _version(json.loads(data))
                if version:
                    self._headers["mcp-protocol-version"] = version


def _version(message: JSON) -> str:
    match message:
        case {"result": {"protocolVersion": str(version)}}:
            return version
        case _:
            return ""


def _is_message(body: bytes) -> bool:
    try:
        message: JSON = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and "jsonrpc" in message
