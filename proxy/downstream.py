"""The client of an edge over HTTP: requests in and answers out over one connection, as an ASGI server has it.

uvicorn runs it. When the client goes away, the application's task is cancelled at once (wire rule 16), which the scope
says under `clientexchange.CANCELS`. Refuses to know what a request asks.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, TypeAlias, cast

import uvicorn
from uvicorn.server import ServerState

from proxy.clientexchange import AHEAD, Exchange
from proxy.http1 import FramingError, answer_head, read_request
from proxy.pouring import unsent

Application: TypeAlias = Callable[
    [
        MutableMapping[str, object],
        Callable[[], Awaitable[MutableMapping[str, object]]],
        Callable[[MutableMapping[str, object]], Awaitable[None]],
    ],
    Awaitable[None],
]


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
        self._socket = -1
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
        plain = transport.get_extra_info("sslcontext") is None
        if plain:
            self._socket = transport.get_extra_info("socket").fileno()
            # What the system does not take is held by whoever has it, not copied here.
            transport.set_write_buffer_limits(high=0)
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

    def abort(self) -> None:
        """Break the connection off."""
        if self._transport is not None:
            self._transport.abort()

    # What an exchange calls

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def pour(self, parts: Sequence[bytes | memoryview]) -> "asyncio.Future[None] | None":
        """Send bytes that are not kept: what the client does not take at once is copied."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return None
        sent = 0
        if self._socket >= 0 and not transport.get_write_buffer_size():
            try:
                sent = os.writev(self._socket, parts)
            except OSError:  # what is wrong with it, if anything, the transport finds out
                sent = 0
        if sent < (len(parts[0]) if len(parts) == 1 else sum(map(len, parts))):
            transport.write(unsent(parts, sent))
        return self._full

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
        if self._reading and exchange.size + len(self._data) > AHEAD:
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
        self._task = self._loop.create_task(self._run(exchange))
        return exchange

    async def _run(self, exchange: Exchange) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._state.tasks.add(task)
        try:
            await self._application(exchange.scope, exchange.receive, exchange.send)
        except Exception:  # the application says what went wrong; the client sees that something did
            return
        finally:
            self._state.tasks.discard(task)
            if not exchange.complete and not exchange.gone:
                self._break_off(exchange)

    def _break_off(self, exchange: Exchange) -> None:
        """The application left an answer unfinished: the client is to see that."""
        if self._exchange is exchange:
            self._exchange = self._task = None
        if exchange.started:
            exchange.flush()
        else:
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
