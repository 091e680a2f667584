"""The answer to one request over HTTP while a bridge makes it: JSON where one message is all, else a stream of events.

It is what `proxy.http` takes for a connection to a server. Refuses to know which messages belong here.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress

from proxy.bridgechecks import Fault
from proxy.frames import CAP
from proxy.http1 import AnswerHead, RequestHead
from proxy.httpwords import Headers
from proxy.mcpheaders import INVALID_REQUEST
from proxy.pouring import Look, Sink
from proxy.serverline import UpstreamError
from proxy.sse import new_event

FIRST, QUIET = 2.0, 15.0
"""Seconds without a message after which a stream begins with a comment, and after which each further comment goes out,
so that nobody takes the connection for dead."""
UNREAD = 64 * 1024 * 1024
"""Bytes that may wait for a client that does not read; of more its stream is broken off."""
_JSON, _EVENTS = (b"content-type", b"application/json"), (b"content-type", b"text/event-stream")
_STREAM: Headers = [_EVENTS, (b"cache-control", b"no-cache, no-transform"), (b"x-accel-buffering", b"no")]

Take = Callable[["BridgeLine", Headers, RequestHead, bytes], Awaitable[None]]


class BridgeLine:
    """One exchange. `connection` is the id of its connection of the record."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self.connection = ""
        self.headers: Headers = []
        """Headers of the answer beside those that every answer has."""
        self.fault: Fault | None = None
        self.gone: Callable[[], None] | None = None
        """Called when the client goes away before the answer is over."""
        self.over = False
        self.streams = False
        self._broken = ""
        self._head: AnswerHead | None = None
        self._chunks: deque[bytes] = deque()
        self._unread = 0
        self._news = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    # What `proxy.http` calls.

    async def ask(self, head: RequestHead, body: "bytes | AsyncIterable[bytes]") -> None:
        """Take a request."""
        if not isinstance(body, bytes):
            found = bytearray()
            async for chunk in body:
                found += chunk
                if len(found) > CAP:
                    self.refuse(Fault(413, INVALID_REQUEST, f"the body is longer than {CAP} bytes"))
                    return
            body = bytes(found)
        await self._take(self, list(head.headers), head, body)

    async def head(self) -> AnswerHead:
        """The head of the answer. Raises UpstreamError where there is none."""
        while self._head is None:
            if self._broken:
                raise UpstreamError(self._broken)
            await self._wait()
        return self._head

    async def body(self) -> tuple[bytes, bool]:
        """What there is of its body, and whether that is all. Raises UpstreamError where it is cut short."""
        while not self._chunks:
            if self._broken:
                raise UpstreamError(self._broken)
            if self.over:
                return b"", True
            await self._wait()
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._unread = 0
        return data, self.over and not self._broken

    async def pour(self, look: Look, sink: Sink) -> None:
        """There is no shorter way than `body`."""

    def came(self) -> bool:
        """Whether more of its body is here."""
        return bool(self._chunks)

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()

    def abort(self) -> None:
        """Nobody reads the answer any more."""
        if not self.over:
            self._end()
            if self.gone is not None:
                self.gone()

    # What a room calls.

    def wait_for_message(self) -> None:
        """An answer is to come: from now on there is a sign of life where there is no message."""
        self._timer = asyncio.get_running_loop().call_later(QUIET if self.streams else FIRST, self._quiet)

    def _quiet(self) -> None:
        if not self.over:
            self.begin()
            self._push(b":\n\n")
            self.wait_for_message()

    def begin(self) -> None:
        """Begin a stream of events, unless it has begun."""
        if not self.over and not self.streams:
            self.streams = True
            self._head = AnswerHead(status_code=200, headers=[*_STREAM, *self.headers])
            self._news.set()

    def message(self, data: bytes) -> None:
        """Send one message of several."""
        if not self.over:
            self.begin()
            self._push(new_event("message", "", data.replace(b"\r", b" ")))

    def last(self, data: bytes, status: int = 200) -> None:
        """Send the last message; `status` counts where it is the only one."""
        if self.streams:
            self.message(data)
            self.finish()
        else:
            self.whole(status, data)

    def whole(self, status: int, data: bytes = b"") -> None:
        """Give the whole answer."""
        if self.over:
            return
        kind: Headers = [_JSON] if data else []
        length = (b"content-length", b"%d" % len(data))
        self._head = AnswerHead(status_code=status, headers=[*kind, length, *self.headers])
        if data:
            self._chunks.append(data)
        self._end()

    def refuse(self, fault: Fault) -> None:
        """Answer in the server's place."""
        self.fault = fault
        self.headers += fault.headers
        self.whole(fault.status, fault.body)

    def finish(self) -> None:
        """End a stream."""
        if not self.over:
            self.begin()
            self._end()

    def break_off(self, why: str) -> None:
        """There is no answer, or no more of it."""
        if not self.over:
            self._broken = why
            self._end()

    def _push(self, data: bytes) -> None:
        self._chunks.append(data)
        self._unread += len(data)
        self._news.set()
        if self._unread > UNREAD:
            self._chunks.clear()
            self.abort()
            self._broken = "the client does not read its stream"

    def _end(self) -> None:
        self.over = True
        self._news.set()
        if self._timer is not None:
            with suppress(RuntimeError):
                self._timer.cancel()
