"""Sockets of a forward proxy before HTTP is spoken on them, and after it is known that none is: bytes as they come.

Refuses to know what the bytes say and whose they are.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from proxy.httpwords import Headers
from proxy.routes import Target

CHUNK = 256 * 1024
_NOW = struct.pack("ii", 1, 0)
_T = TypeVar("_T")


class DialError(ValueError):
    """A server that cannot be reached; the message says why."""


async def peek(one: socket.socket) -> bytes:
    """What has arrived, which stays where it is; b"" at the end. Raises OSError."""
    while True:
        try:
            return one.recv(CHUNK, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            await readable(one)


async def accepted(listening: socket.socket) -> socket.socket:
    """The next connection of a client. Raises OSError.

    A loop's own `sock_accept` loses the one that came when it was cancelled.
    """
    while True:
        try:
            client, _ = listening.accept()
        except (BlockingIOError, InterruptedError):
            await readable(listening)
        else:
            client.setblocking(False)
            return client


async def readable(one: socket.socket) -> None:
    """Wait until there is something to take."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[None] = loop.create_future()
    loop.add_reader(one, _settle, arrived)
    try:
        await arrived
    finally:
        loop.remove_reader(one)


def _settle(arrived: "asyncio.Future[None]") -> None:
    if not arrived.done():
        arrived.set_result(None)


async def take_until(one: socket.socket, seen: bytearray, verdict: Callable[[bytes], "tuple[_T, int] | None"]) -> _T:
    """Read until `verdict` says what it is, and how many of the bytes that it was given are read with that.

    `seen` is what was read. The rest stays in the socket, for whoever it is handed to. Raises EOFError and OSError.
    """
    while True:
        data = await peek(one)
        if not data:
            raise EOFError
        said = verdict(bytes(seen) + data)
        count = len(data) if said is None else said[1] - len(seen)
        if count > 0:
            seen += one.recv(count)
        if said is not None:
            return said[0]


async def dial(target: Target) -> socket.socket:
    """A connection to a server, by its addresses in turn. Raises DialError."""
    loop = asyncio.get_running_loop()
    failure: Exception | None = None
    try:
        found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        raise DialError(f"{target.authority} cannot be reached: {error}") from None
    for family, kind, protocol, _, address in found:
        try:
            one = socket.socket(family, kind, protocol)
        except OSError as error:
            failure = error
            continue
        try:
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(one, address)
        except OSError as error:
            failure = error
            one.close()
        except BaseException:
            one.close()
            raise
        else:
            return one
    raise DialError(f"{target.authority} cannot be reached: {failure or 'it has no address'}")


async def dial_for(client: socket.socket, target: Target) -> socket.socket:
    """The same for a client, as long as it waits for it. Raises DialError and, once the client is gone, EOFError."""
    dialling = asyncio.create_task(dial(target))
    waiting = asyncio.create_task(peek(client))
    try:
        await asyncio.wait({dialling, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done() and not dialling.done() and (waiting.exception() is not None or not waiting.result()):
            raise EOFError
        await asyncio.wait({dialling})
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return dialling.result()
    except BaseException:
        # Whenever we are cancelled, also in the very turn in which the connection is there, nobody else closes it.
        waiting.cancel()
        dialling.cancel()
        dialling.add_done_callback(_let_go)
        await asyncio.gather(waiting, dialling, return_exceptions=True)
        raise


def _let_go(dialled: "asyncio.Task[socket.socket]") -> None:
    if not dialled.cancelled() and dialled.exception() is None:
        dialled.result().close()


async def farewell(client: socket.socket, last: bytes, grace: float) -> None:
    """Send the last that we have to say, and read on until it has arrived: else what is unread takes it back.

    `grace` is how many seconds the client has to close. Raises OSError.
    """
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(client, last)
    client.shutdown(socket.SHUT_WR)
    with suppress(TimeoutError):
        async with asyncio.timeout(grace):
            while await loop.sock_recv(client, CHUNK):
                pass


def abort(*ends: socket.socket) -> None:
    """Close at once, so that the other sides see it break off."""
    for one in ends:
        with suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NOW)
        one.close()


def _close(*ends: socket.socket) -> None:
    for one in ends:
        one.close()


class Pouring:
    """Bytes between two sockets, both ways. `sent` and `received` count what the client and the server sent."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.sent = 0
        self.received = 0
        self.first_ended = ""
        """The side that ended first, client or server."""

    async def run(self, begun: bytes) -> None:
        """Until both sides have ended, or one broke off, which breaks off the other. `begun` was read already.

        Closes both sockets.
        """
        ways = [asyncio.create_task(self._up(begun)), asyncio.create_task(self._down())]
        close = abort
        try:
            await asyncio.gather(*ways)
            close = _close
        except OSError:
            return
        finally:
            for way in ways:
                way.cancel()
            try:
                await asyncio.gather(*ways, return_exceptions=True)
            finally:
                close(self.client, self.server)

    async def _up(self, begun: bytes) -> None:
        loop = asyncio.get_running_loop()
        data = begun
        while True:
            if data:
                self.sent += len(data)
                await loop.sock_sendall(self.server, data)
            data = await self._read(self.client, "client")
            if not data:
                self._end(self.server)
                return

    async def _down(self) -> None:
        loop = asyncio.get_running_loop()
        while data := await self._read(self.server, "server"):
            self.received += len(data)
            await loop.sock_sendall(self.client, data)
        self._end(self.client)

    async def _read(self, one: socket.socket, side: str) -> bytes:
        data = b""
        try:
            data = await asyncio.get_running_loop().sock_recv(one, CHUNK)
        finally:
            if not data:
                self.first_ended = self.first_ended or side
        return data

    def _end(self, other: socket.socket) -> None:
        # The other side may be gone by now, which its own reader learns of.
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)


def credentials(head: bytes) -> Headers:
    """What the client says of itself to us, by the head of its request for a tunnel."""
    pairs = [line.partition(b":") for line in head.split(b"\n")[1:]]
    name = b"proxy-authorization"
    return [(name, value.strip()) for key, _, value in pairs if key.strip().lower() == name]
