"""The client of an edge over HTTP: requests in and answers out over one connection, as an ASGI server has it.

uvicorn runs it. When the client goes away, the application's task is cancelled at once (wire rule 16), which the scope
says under `CANCELS`. Refuses to know what a request asks.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

import uvicorn
from uvicorn.server import ServerState

from proxy.http1 import FramingError, RequestHead, answer_head, is_kept, read_request, request_body
from proxy.httpwords import Headers, values

CANCELS = "wiretrap.cancels"
"""The ASGI extension by which an application knows that it is cancelled when its client goes."""
_AHEAD = 64 * 1024
"""Bytes of a body, or of further requests, that are taken from a client before somebody asks for them."""

Application: TypeAlias = Callable[
    [
        MutableMapping[str, object],
        Callable[[], Awaitable[MutableMapping[str, object]]],
        Callable[[MutableMapping[str, object]], Awaitable[None]],
    ],
    Awaitable[None],
]


class Exchange:
    """One request and its answer, of which the application sees `receive` and `send`."""

    def __init__(self, client: "Downstream", head: RequestHead) -> None:
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
            "extensions": {CANCELS: {}},
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
        if head and len(body) > _AHEAD:
            self.client.write(head)
            head = b""
        if head or body:
            self.client.write(head + body if head else body)
        if last:
            self.complete = True
            short = self._left not in {None, 0} and not self._bare
            self.client.over(self, kept=self.kept and self.body.ended and not short)
        await self.client.written()

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
            sent = [*sent, (b"connection", b"close")]
        elif not self.head.minor:
            sent = [*sent, (b"connection", b"keep-alive")]
        self._head = answer_head(status, sent)
        self.started = True
        asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        head, self._head = self._head, b""
        if head and not self.gone:
            self.client.write(head)


class Downstream(asyncio.Protocol):
    """One connection of a client, with one exchange on it at a time."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # uvicorn's own signature
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._application = cast("Application", config.app)
        self._idle = float(config.timeout_keep_alive)
        self._state = server_state
        self._loop = _loop or asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._data = b""
        self._exchange: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._reading = True
        self._stopping = False
        self._full: asyncio.Future[None] | None = None
        self._used = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # What asyncio and uvicorn call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._state.connections.add(cast("Any", self))  # uvicorn's union names its own protocols only
        self._used = self._loop.time()
        self._timer = self._loop.call_later(self._idle, self._look)

    def data_received(self, data: bytes) -> None:
        """Bytes of the client's."""
        self._data = self._data + data if self._data else data
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._state.connections.discard(cast("Any", self))
        if self._timer is not None:
            self._timer.cancel()
        self.resume_writing()
        if self._exchange is not None:
            self._exchange.gone = True
            self._exchange.wake()
            if self._task is not None:
                self._task.cancel()

    def pause_writing(self) -> None:
        """The client does not read as fast as we write."""
        self._full = self._loop.create_future()

    def resume_writing(self) -> None:
        """It has read."""
        full, self._full = self._full, None
        if full is not None and not full.done():
            full.set_result(None)

    def shutdown(self) -> None:
        """Close when what is under way is over (uvicorn calls this when it stops)."""
        self._stopping = True
        if self._exchange is None:
            self._close()
        else:
            self._exchange.kept = False

    # What an exchange calls

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def written(self) -> None:
        """Wait until the client has read enough of what was sent."""
        if self._full is not None:
            await self._full

    def go_on(self) -> None:
        """What came is taken; more may come."""
        if not self._reading and self._transport is not None and not self._transport.is_closing():
            self._reading = True
            self._transport.resume_reading()

    def over(self, exchange: Exchange, *, kept: bool) -> None:
        """An answer is whole; `kept`: another request may follow."""
        exchange.wake()
        self._exchange = self._task = None
        self._used = self._loop.time()
        if not kept or self._stopping:
            self._close()
        elif self._data:
            self._loop.call_soon(self._advance)
        else:
            self.go_on()

    # Its own

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _look(self) -> None:
        """Close the connection when it was idle too long."""
        left = self._idle - (self._loop.time() - self._used)
        if self._exchange is None and left <= 0:
            self._close()
            return
        self._timer = self._loop.call_later(max(left, 1.0), self._look)

    def _advance(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        try:
            exchange = self._exchange or self._next()
            if exchange is None:
                return
            if not exchange.body.ended:
                data, self._data = self._data, b""
                self._data = exchange.take(data)
        except FramingError as problem:
            self._refuse(problem)
            return
        if self._reading and exchange.size + len(self._data) > _AHEAD:
            self._reading = False
            transport.pause_reading()

    def _next(self) -> Exchange | None:
        """The next request, when its head is whole."""
        if self._data[:2] == b"\r\n":  # RFC 9112, section 2.2
            self._data = self._data.lstrip(b"\r\n")
        found = read_request(self._data)
        if found is None:
            return None
        head, self._data = found
        exchange = Exchange(self, head)
        self._exchange = exchange
        self._state.total_requests += 1
        if not exchange.body.ended:
            data, self._data = self._data, b""
            self._data = exchange.take(data)
        task = self._loop.create_task(self._run(exchange))
        self._task = task
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)
        return exchange

    async def _run(self, exchange: Exchange) -> None:
        try:
            await self._application(exchange.scope, exchange.receive, exchange.send)
        except Exception:  # the application says what went wrong; the client sees that something did
            return
        finally:
            if not exchange.complete and not exchange.gone:
                self._break_off(exchange)

    def _break_off(self, exchange: Exchange) -> None:
        """The application left an answer unfinished: the client is to see that."""
        if self._exchange is exchange:
            self._exchange = self._task = None
        if not exchange.started:
            self.write(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self._close()

    def _refuse(self, problem: FramingError) -> None:
        """What came is no request that can be read in one way only."""
        exchange, task = self._exchange, self._task
        if exchange is not None:
            exchange.gone = True
            exchange.wake()
            if task is not None:
                task.cancel()
        if exchange is None or not exchange.started:
            body = f"{problem}\n".encode()
            head = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
            self.write(answer_head(problem.status, head) + body)
        self._close()
