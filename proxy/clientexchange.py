"""One request of a client and its answer, as ASGI has them: the body in parts, and the answer framed as it is sent.

Refuses to know sockets, and what a request asks.
"""

import asyncio
from collections.abc import MutableMapping, Sequence
from typing import Protocol, cast
from urllib.parse import unquote

from proxy.http1 import RequestHead, answer_head, is_kept, request_body
from proxy.httpwords import Headers, values

CANCELS = "wiretrap.cancels"
"""The ASGI extension by which an application knows that it is cancelled when its client goes."""
FOLLOWED = "wiretrap.followed"
"""What the head of an answer has where its body follows before its sender waits for anything."""
POURS = "wiretrap.pours"
"""The ASGI extension that is a `pouring.Sink` for the body of an answer that has begun."""
AHEAD = 64 * 1024
"""Bytes of a body, or of further requests, that are taken from a client before somebody asks for them."""


class Client(Protocol):
    """The connection on which it came."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    async def written(self) -> None:
        """Wait until the client has read enough of what was sent."""

    def pour(self, parts: Sequence[bytes | memoryview]) -> "asyncio.Future[None] | None":
        """Send bytes that are not kept; the future, if any, is done when the client has read enough."""

    def go_on(self) -> None:
        """What came is taken; more may come."""

    def over(self, exchange: "Exchange", *, kept: bool) -> None:
        """An answer is whole; `kept`: another request may follow."""


class Exchange:
    """One request and its answer, of which the application sees `receive` and `send`."""

    def __init__(self, client: Client, head: RequestHead) -> None:
        self.client = client
        self.head = head
        self.body = request_body(head)
        self.kept = is_kept(head.headers, head.minor)
        self.started = False
        self.complete = False
        self.gone = False
        self.waits_to_send = any(one.lower() == b"100-continue" for one in values(head.headers, b"expect"))
        self.came: list[bytes] = []
        self.size = 0
        self._told = False
        self._news: asyncio.Future[None] | None = None
        self._head = b""
        self._chunked = False
        self._left: int | None = None
        self._bare = False

    @property
    def scope(self) -> MutableMapping[str, object]:
        """What ASGI tells of a request."""
        path, _, query = self.head.target.partition(b"?")
        shown = path.decode("ascii")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": f"1.{self.head.minor}",
            "method": self.head.method.decode("ascii"),
            "scheme": "http",
            "path": unquote(shown) if "%" in shown else shown,
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": self.head.headers,
            "extensions": {CANCELS: {}, POURS: self.pour},
        }

    def take(self, data: bytes) -> bytes:
        """The next bytes of the connection; what of them is behind the body. Raises FramingError."""
        found = self.body.feed(data)
        if found:
            self.came.append(found)
            self.size += len(found)
        self.wake()
        return self.body.rest if self.body.ended else b""

    def wake(self) -> None:
        """There is something for who waits in `receive`."""
        news, self._news = self._news, None
        if news is not None and not news.done():
            news.set_result(None)

    async def receive(self) -> MutableMapping[str, object]:
        """The body in parts, and when that and the answer are over, or the client is gone, the news of it."""
        if self.waits_to_send and not self.started and not self.body.ended:
            self.client.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.waits_to_send = False
        while True:
            if self.gone or self.complete:
                return {"type": "http.disconnect"}
            if not self._told and (self.came or self.body.ended):
                self._told = self.body.ended
                data = self.came[0] if len(self.came) == 1 else b"".join(self.came)
                self.came.clear()
                self.size = 0
                self.client.go_on()
                return {"type": "http.request", "body": data, "more_body": not self._told}
            self._news = asyncio.get_running_loop().create_future()
            await self._news

    async def send(self, message: MutableMapping[str, object]) -> None:
        """A part of the answer. The head waits for the body as long as nothing else is to be done."""
        if self.gone or self.complete:
            return
        if message["type"] == "http.response.start":
            self._start(cast("int", message["status"]), cast("Headers", message.get("headers", [])))
            if not message.get(FOLLOWED):
                asyncio.get_running_loop().call_soon(self.flush)
            return
        body = cast("bytes", message.get("body", b""))
        last = not message.get("more_body", False)
        head, self._head = self._head, b""
        if self._bare:
            body = b""
        elif self._chunked:
            if body:
                body = b"%x\r\n%s\r\n" % (len(body), body)
            if last:
                body += b"0\r\n\r\n"
        elif self._left is not None:
            self._left -= len(body)
        if head and len(body) > AHEAD:
            self.client.write(head)
            head = b""
        if head or body:
            self.client.write(head + body if head else body)
        if last:
            self.complete = True
            short = self._left not in {None, 0} and not self._bare
            self.client.over(self, kept=self.kept and self.body.ended and not short)
        await self.client.written()

    def pour(self, data: bytes | memoryview) -> "asyncio.Future[None] | None":
        """A part of the body, which is sent or copied when this returns; it is not the last one."""
        if self.gone or self.complete or self._bare or not data:
            return None
        parts = [b"%x\r\n" % len(data), data, b"\r\n"] if self._chunked else [data]
        if self._head:
            parts.insert(0, self._head)
            self._head = b""
        if self._left is not None:
            self._left -= len(data)
        return self.client.pour(parts)

    def _start(self, status: int, headers: Headers) -> None:
        lengths = values(headers, b"content-length")
        self._bare = self.head.method == b"HEAD" or status < 200 or status in {204, 304}
        self._left = int(lengths[0]) if lengths else None
        sent = headers
        if not lengths and not self._bare:
            self._chunked = self.head.minor > 0
            if self._chunked:
                sent = [*headers, (b"transfer-encoding", b"chunked")]
        self.kept = self.kept and (self._chunked or self._bare or bool(lengths)) and is_kept(headers, 1)
        if not (self.kept and self.body.ended):
            if not values(sent, b"connection"):
                sent = [*sent, (b"connection", b"close")]
        elif not self.head.minor:
            sent = [*sent, (b"connection", b"keep-alive")]
        self._head = answer_head(status, sent)
        self.started = True

    def flush(self) -> None:
        """Send the head that waits for the body."""
        head, self._head = self._head, b""
        if head and not self.gone:
            self.client.write(head)
