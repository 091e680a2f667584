"""The server behind an edge over HTTP: requests out and answers in, byte for byte, over connections that are kept open.

It follows no redirects, tries nothing twice and has no time-outs (wire rule 16). Refuses to know JSON-RPC.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterable
from contextlib import suppress
from time import monotonic
from typing import Protocol

import h11

from proxy.httpwords import Origin

CHUNK = 256 * 1024
HEAD_LIMIT = 256 * 1024
"""Bytes that the head of a request or an answer may have."""
KEPT = 3.0
"""Seconds that an idle connection is kept: less than servers do, which would close it just when it is used again."""


class UpstreamError(ValueError):
    """The server could not be reached, or what it sent is no HTTP; the message says which."""


class ServerLine(Protocol):
    """One exchange with a server, as an edge over HTTP has it. Each of these but `abort` may raise UpstreamError."""

    async def ask(self, head: h11.Request, body: "bytes | AsyncIterable[bytes]") -> None:
        """Send a request whole."""
        ...

    async def head(self) -> h11.Response:
        """The head of the answer."""
        ...

    async def body(self) -> tuple[bytes, bool]:
        """The next bytes of its body, and whether it ends with them."""
        ...

    def abort(self) -> None:
        """Give it up."""
        ...


class Server(Protocol):
    """A server at one origin, as an edge over HTTP has it."""

    origin: Origin

    async def line(self) -> ServerLine:
        """A place for one exchange. Raises UpstreamError."""
        ...

    def give_back(self, line: ServerLine) -> None:
        """An exchange is over, or given up."""
        ...

    def close(self) -> None:
        """The edge stops."""
        ...


class Line:
    """One connection to the server, with one exchange on it at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)
        self.idle_since = 0.0
        self._ended = False

    async def ask(self, head: h11.Request, body: "bytes | AsyncIterable[bytes]") -> None:
        """Send a request whole. Raises UpstreamError where the server takes no more."""
        try:
            first = self._wire.send(head) or b""
            if isinstance(body, bytes):
                if body:
                    first += self._wire.send(h11.Data(body)) or b""
            else:
                self._writer.write(first)
                first = b""
                async for chunk in body:
                    self._writer.write(self._wire.send(h11.Data(chunk)) or b"")
                    await self._writer.drain()
            self._writer.write(first + (self._wire.send(h11.EndOfMessage()) or b""))
            await self._writer.drain()
        except OSError as error:
            raise UpstreamError(f"the server takes no more: {error}") from None
        except h11.LocalProtocolError as error:
            raise UpstreamError(f"the request cannot be sent on: {error}") from None

    async def _event(self) -> "h11.Event | type[h11.NEED_DATA]":
        try:
            event = self._wire.next_event()
        except h11.RemoteProtocolError as error:
            raise UpstreamError(f"what the server sent is no HTTP, or not whole: {error}") from None
        return h11.NEED_DATA if event is h11.PAUSED or isinstance(event, type) else event

    async def _read(self) -> None:
        try:
            data = await self._reader.read(CHUNK)
        except OSError as error:
            raise UpstreamError(f"the connection to the server broke: {error}") from None
        self._wire.receive_data(data)

    async def head(self) -> h11.Response:
        """The head of the answer, interim ones left out. Raises UpstreamError."""
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event
            if isinstance(event, h11.ConnectionClosed):
                raise UpstreamError("the server closed the connection without an answer")
            if not isinstance(event, h11.Event):
                await self._read()

    async def body(self) -> tuple[bytes, bool]:
        """The next bytes of the answer's body, at once when there are any, and whether it ends with them.

        Raises UpstreamError, also where the body is cut short.
        """
        found: list[bytes] = []
        while True:
            try:
                event = await self._event()
            except UpstreamError:
                if found:  # what came before goes on first
                    return b"".join(found), False
                raise
            match event:
                case h11.Data():
                    found.append(bytes(event.data))
                case h11.EndOfMessage():
                    self._ended = True
                    return b"".join(found), True
                case _:
                    if found:
                        return b"".join(found), False
                    await self._read()

    def reusable(self) -> bool:
        """Whether another request can be sent here: the last exchange is over, and both sides go on."""
        if self._reader.at_eof() or self._writer.is_closing():
            return False
        if not self._ended or self._wire.our_state is not h11.DONE or self._wire.their_state is not h11.DONE:
            return False
        self._wire.start_next_cycle()
        self._ended = False
        return True

    def open(self) -> bool:
        """Whether the server has not closed it meanwhile."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    def abort(self) -> None:
        """Close it at once, whatever is under way: the server sees it as it would see the client go."""
        self._writer.transport.abort()


class Upstream:
    """The server, at one origin."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self._tls = ssl.create_default_context() if origin.scheme == "https" else None
        self._idle: deque[Line] = deque()

    async def line(self) -> Line:
        """A connection to ask on. Raises UpstreamError."""
        while self._idle:
            line = self._idle.pop()
            if line.open() and monotonic() - line.idle_since < KEPT:
                return line
            line.abort()
        origin = self.origin
        try:
            reader, writer = await asyncio.open_connection(origin.host, origin.port, ssl=self._tls, limit=CHUNK)
        except (OSError, UnicodeError) as error:
            raise UpstreamError(f"the server at {origin} cannot be reached: {error}") from None
        return Line(reader, writer)

    def give_back(self, line: ServerLine) -> None:
        """Keep a connection for the next request, where it can be; else close it."""
        with suppress(h11.LocalProtocolError):
            if isinstance(line, Line) and line.reusable():
                line.idle_since = monotonic()
                self._idle.append(line)
                while self._idle and monotonic() - self._idle[0].idle_since >= KEPT:
                    self._idle.popleft().abort()
                return
        line.abort()

    def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop().abort()
