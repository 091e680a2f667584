"""One connection to the server behind an edge over HTTP: requests out and answers in, byte for byte.

It has no time-outs (wire rule 16). Refuses to know JSON-RPC, and who has a connection when.
"""

import asyncio
import os
from collections.abc import AsyncIterable

from proxy.http1 import (
    AnswerHead,
    BodyReader,
    FramingError,
    RequestHead,
    answer_body,
    is_kept,
    read_answer,
    request_head,
)
from proxy.httpwords import values
from proxy.pouring import SIZE, Look, Pour, Sink, room
from proxy.serverline import UpstreamError

CHUNK = 256 * 1024
"""Bytes that are taken from the server beyond what the client has been sent."""
TURNS = 4
"""Times that a body is received from before others have their turn."""
_TOGETHER = 64 * 1024
"""Bytes of a body that are worth a copy to be sent with the head."""


class Line(asyncio.BufferedProtocol):
    """One connection to the server, with one exchange on it at a time."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._came: list[bytes] = []
        self._size = 0
        self._broken: Exception | None = None
        self._closed = False
        self._reading = True
        self._waiting: asyncio.Future[None] | None = None
        self._full: asyncio.Future[None] | None = None
        self._method = b""
        self._asked = False
        self._body: BodyReader | None = None
        self._kept = True
        self._room = room()
        self._socket = -1
        self._pour: Pour | None = None
        self._last = b""
        self._problem: FramingError | None = None

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if transport.get_extra_info("sslcontext") is None:
            self._socket = transport.get_extra_info("socket").fileno()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where bytes are received."""
        return self._room.view

    def buffer_updated(self, nbytes: int) -> None:
        """Pour what comes, or keep it, and stop the server when it is too much."""
        if self._pour is not None:
            self._poured(self._pour, nbytes)
            return
        self._came.append(bytes(self._room.view[:nbytes]))
        self._size += nbytes
        if self._size > CHUNK:
            self._pause()
        self._wake()

    def _poured(self, pour: Pour, count: int) -> None:
        """Pour what came, and what more has come meanwhile, for which the loop need not be asked."""
        here, body = self._room, pour.body
        turns = TURNS if self._socket >= 0 else 1
        try:
            while True:
                pour.take(here, count)
                turns -= 1
                if body.ended or pour.full is not None or not turns or count < SIZE:
                    break
                count = os.readv(self._socket, (here.view,))
                if not count:
                    break  # the end, of which the loop tells too
        except FramingError as problem:
            self._problem = problem
        except OSError:  # nothing more is here, or it broke, of which the loop tells
            pass
        if body.ended or self._problem is not None:
            self._pour = None
            self._wake()
        elif pour.full is not None:
            self._pause()
            pour.full.add_done_callback(self._go_on)

    def _pause(self) -> None:
        if self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def _go_on(self, _: object = None) -> None:
        if not self._reading and self._transport is not None and not self._transport.is_closing():
            self._reading = True
            self._transport.resume_reading()

    def eof_received(self) -> None:
        """The server sends no more."""
        self._closed = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._closed = True
        self._broken = exc
        self._wake()
        self.resume_writing()

    def pause_writing(self) -> None:
        """The server does not read as fast as we write."""
        self._full = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """It has read."""
        full, self._full = self._full, None
        if full is not None and not full.done():
            full.set_result(None)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    # What the edge calls

    async def ask(self, head: RequestHead, body: "bytes | AsyncIterable[bytes]") -> None:
        """Send a request whole; its headers say how long its body is. Raises UpstreamError where no more is taken."""
        self._method = head.method
        try:
            first = request_head(head)
        except FramingError as error:
            raise UpstreamError(f"the request cannot be sent on: {error}") from None
        if isinstance(body, bytes):
            if len(body) <= _TOGETHER:
                await self._write(first + body)
            else:
                await self._write(first)
                await self._write(body)
        else:
            chunked = bool(values(head.headers, b"transfer-encoding"))
            await self._write(first)
            async for chunk in body:
                if chunk:
                    await self._write(b"%x\r\n%s\r\n" % (len(chunk), chunk) if chunked else chunk)
            if chunked:
                await self._write(b"0\r\n\r\n")
        self._asked = True

    async def _write(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise UpstreamError(f"the server takes no more{'' if self._broken is None else f': {self._broken}'}")
        self._transport.write(data)
        if self._full is not None:
            await self._full

    async def _data(self) -> bytes:
        """What came since, b"" at the end of all. Raises UpstreamError."""
        while not self._came:
            if self._broken is not None:
                raise UpstreamError(f"the connection to the server broke: {self._broken}")
            if self._closed:
                return b""
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        data = self._came[0] if len(self._came) == 1 else b"".join(self._came)
        self._came.clear()
        self._size = 0
        self._go_on()
        return data

    async def head(self) -> AnswerHead:
        """The head of the answer, interim ones left out. Raises UpstreamError."""
        data = b""
        while True:
            more = await self._data()
            if not more:
                said = "the server closed the connection " + ("inside of a head" if data else "without an answer")
                raise UpstreamError(said)
            data += more
            try:
                while (found := read_answer(data)) is not None:
                    head, data = found
                    if head.status_code >= 200:
                        self._body = answer_body(head, self._method)
                        self._kept = is_kept(head.headers, head.minor)
                        if data:
                            self._came.insert(0, data)
                            self._size += len(data)
                        return head
                    if head.status_code == 101:
                        raise FramingError("it changes to a protocol that nobody asked for")
            except FramingError as error:
                raise UpstreamError(f"what the server sent is no HTTP: {error}") from None

    async def body(self) -> tuple[bytes, bool]:
        """The next bytes of the answer's body, at once when there are any, and whether it ends with them.

        Raises UpstreamError, also where the body is cut short.
        """
        body = self._body
        if body is None:
            raise UpstreamError("no answer has begun")
        try:
            while not body.ended:
                data = await self._data()
                if data:
                    found = body.feed(data)
                    if found:
                        return found, body.ended
                elif self._closed:
                    body.end()
            last, self._last = self._last, b""
            return last, True
        except FramingError as error:
            raise UpstreamError(f"what the server sent is no HTTP, or not whole: {error}") from None

    async def pour(self, look: Look, sink: Sink) -> None:
        """Have the rest of the body go to `sink` as it comes, each piece shown to `look` first.

        `body` has its last bytes, or says why there are none. Raises UpstreamError.
        """
        body = self._body
        if body is None:
            raise UpstreamError("no answer has begun")
        pour = Pour(body, look, sink)
        try:
            if self._came:
                pour.whole(await self._data())
                if pour.full is not None:
                    await pour.full
                if self._came:  # meanwhile
                    return
            self._pour = pour
            while not (body.ended or self._problem is not None or self._closed or self._broken is not None):
                self._waiting = asyncio.get_running_loop().create_future()
                await self._waiting
            if self._problem is not None:
                raise self._problem
        except FramingError as error:
            raise UpstreamError(f"what the server sent is no HTTP, or not whole: {error}") from None
        finally:
            self._pour = None
            self._last = pour.last

    def came(self) -> bool:
        """Whether more of the body is here, so that `body` gives it without a wait."""
        body = self._body
        return body is not None and (body.ended or (bool(self._came) and not body.chunked))

    def reusable(self) -> bool:
        """Whether another request can be sent here: the last exchange is over, and both sides go on."""
        body = self._body
        if body is None or not body.ended or body.rest or not self._asked or not self._kept or body.left is None:
            return False
        self._asked = False
        self._body = None
        return self.open()

    @property
    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Address and port of the server, and of our side. Raises UpstreamError once it is broken off."""
        there, here = (
            None if self._transport is None else self._transport.get_extra_info(name)
            for name in ("peername", "sockname")
        )
        if there is None or here is None:
            raise UpstreamError("the connection to the server broke")
        return (there[0], there[1]), (here[0], here[1])

    def open(self) -> bool:
        """Whether the server has not closed it meanwhile, or sent what nobody asked for."""
        return not (self._closed or self._came or self._transport is None or self._transport.is_closing())

    def abort(self) -> None:
        """Close it at once, whatever is under way: the server sees it as it would see the client go."""
        if self._transport is not None:
            self._transport.abort()
