"""The connections of clients to the forward proxy: HTTP is spoken on them, or a tunnel opened and looked into.

Refuses to know what a request says, and how the process begins and ends.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from uvicorn.server import ServerState

from proxy.downstream import Application, Downstream
from proxy.forward import Forward, Inside, leads_to
from proxy.http1 import HEAD_LIMIT
from proxy.httprefusals import said
from proxy.httpserve import STOP_GRACE, http_config
from proxy.httpwords import Headers, Origin
from proxy.refusals import DENIED, SERVER_ENDED
from proxy.routes import RouteError, Target, read_authority, speech_of
from proxy.spanfile import SpanFileError
from proxy.tunnels import DialError, Pouring, abort, accepted, credentials, dial_for, farewell, take_until
from proxy.unread import Unread

if TYPE_CHECKING:
    from proxy.certificates import Authority

_TUNNEL = b"CONNECT "
_OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    508: "Loop Detected",
}
_ACCESS_DENIED = bytes((0x15, 3, 3, 0, 2, 2, 49))
"""A fatal alert over TLS (RFC 8446, section 6.2), so that a client learns more than that its connection closed."""
_BY_ANOTHER_NAME = "it is asked for by a name that --server does not give it"
_BUSY = 0.5
"""Seconds after which accepting is tried again when the system has no more files for us."""


def _connect_head(data: bytes) -> tuple[bytes, int] | None:
    """The head of a request for a tunnel and its length; an empty one where it asks for another thing."""
    if data[: len(_TUNNEL)] != _TUNNEL[: len(data)]:
        return b"", 0
    ends = [at + len(mark) for mark in (b"\r\n\r\n", b"\n\n") if (at := data.find(mark)) >= 0]
    if not ends:
        return (_TUNNEL, len(data)) if len(data) > HEAD_LIMIT else None
    return data[: min(ends)], min(ends)


def _speech(data: bytes) -> tuple[str, int] | None:
    found = speech_of(data, HEAD_LIMIT)
    return None if found is None else (found, 0)


class _Spoken(Downstream):
    """HTTP on a connection of which some was read already."""

    begun = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        super().connection_made(transport)
        if self.begun:
            self.data_received(self.begun)


@dataclass(slots=True)
class Switchboard:
    """Takes connections of clients and hands them on. `tell` says something to people; `authority` reads TLS."""

    forward: Forward
    authority: "Authority | None"
    tell: Callable[[str], None]
    failure: str = ""
    """The first thing that went wrong with the record of a tunnel."""
    reason: str = ""
    """Why all ends."""
    not_exported: Callable[[], int | None] = lambda: None
    _state: ServerState = field(default_factory=ServerState)
    _tasks: "set[asyncio.Task[bool]]" = field(default_factory=set)
    _told: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.forward.refused = partial(self._refused, why=_BY_ANOTHER_NAME)

    async def accept(self, listening: socket.socket) -> None:
        """Take connections until cancelled."""
        listening.setblocking(False)
        while True:
            try:
                client = await accepted(listening)
            except OSError:
                await asyncio.sleep(_BUSY)
                continue
            task = asyncio.create_task(self._serve(client))
            self._tasks.add(task)
            task.add_done_callback(partial(self._served, client))

    async def stop(self, reason: str) -> None:
        """End all: what is under way over HTTP is answered, tunnels break off."""
        self.reason = reason
        self.forward.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        spoken = [one for one in self._state.connections if isinstance(one, Downstream)]
        for one in spoken:
            one.shutdown()
        if not await self._quiet():
            for one in spoken:
                one.abort()
            await self._quiet()

    async def _quiet(self) -> bool:
        """Wait until all connections over HTTP are closed and their requests over; whether they are, in time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + STOP_GRACE
        while self._state.connections or self._state.tasks:
            if loop.time() >= until:
                return False
            await asyncio.sleep(0.01)
        return True

    def _served(self, client: socket.socket, task: "asyncio.Task[bool]") -> None:
        self._tasks.discard(task)
        # Here and not in the task: one that is cancelled before it begins does nothing at all.
        if task.cancelled() or task.exception() is not None or not task.result():
            client.close()

    async def _serve(self, client: socket.socket) -> bool:
        """Read what a client wants and see to it; whether the socket is somebody else's now."""
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            seen = bytearray()
            head = await take_until(client, seen, _connect_head)
            if head:
                return await self._tunnel(client, head)
            await self._speak(client, self.forward, bytes(seen))
        except (OSError, EOFError):
            return False
        except Exception as error:  # a fault of ours must neither go on nor pass unseen
            self.failure = self.failure or f"a fault of the proxy's own: {type(error).__name__}: {error}"
            return False
        return True

    async def _speak(
        self, client: socket.socket, application: Application, begun: bytes, tls: ssl.SSLContext | None = None
    ) -> None:
        """HTTP from here on; `begun` was read already, and `tls` is how to read the rest, None where it is plain."""
        loop = asyncio.get_running_loop()
        protocol = _Spoken(http_config(application), self._state, {}, loop)
        protocol.begun = begun
        await loop.connect_accepted_socket(lambda: protocol, client, ssl=tls)

    async def _tunnel(self, client: socket.socket, head: bytes) -> bool:
        """A request for a tunnel; whether the socket is somebody else's now."""
        parts = head.partition(b"\n")[0].rstrip(b"\r").decode("latin-1").split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            await _answer(
                client, 431 if head == _TUNNEL else 400, DENIED, "Wiretrap cannot read this request for a tunnel"
            )
            return False
        try:
            target = read_authority(parts[1])
        except RouteError as error:
            await _answer(client, 400, DENIED, f"Wiretrap opens no tunnel: {error}")
            return False
        if self.forward.is_us(target):
            await _answer(client, 508, DENIED, "Wiretrap is asked for a tunnel to itself")
            return False
        server = self.forward.server(target)
        if server is None:
            return await self._pass(client, target)
        await asyncio.get_running_loop().sock_sendall(client, _OPENED)
        return await self._watch(client, target, server, credentials(head))

    async def _pass(self, client: socket.socket, target: Target) -> bool:
        """A tunnel to a host that is no server of ours: nobody looks into it."""
        try:
            server = await dial_for(client, target)
        except DialError as error:
            await _answer(client, 502, SERVER_ENDED, f"Wiretrap: {error}")
            return False
        with server:
            if self._is_loop(server):
                server.close()
                await _answer(client, 508, DENIED, "Wiretrap is asked for a tunnel to itself")
                return False
            ours = self.forward.reached(server.getpeername()[:2], server.getsockname()[:2])
            if ours is not None:
                server.close()
                self._refused(target, ours, _BY_ANOTHER_NAME)
                await _answer(client, 403, DENIED, leads_to(ours))
                return False
            await asyncio.get_running_loop().sock_sendall(client, _OPENED)
            await Pouring(client, server).run(b"")
        return True

    def _is_loop(self, server: socket.socket) -> bool:
        """Whether a name that only a resolver knows led to our own port."""
        there, here = server.getpeername()[:2], server.getsockname()[0]
        return bool(there == (here, self.forward.port) and here == "127.0.0.1")

    async def _watch(self, client: socket.socket, target: Target, server: str, told: Headers) -> bool:
        """A tunnel to a server of ours, which is read where it can be."""
        seen = bytearray()
        speech = await take_until(client, seen, _speech)
        if speech == "http":
            inside = Inside(self.forward, Origin("http", target.host, target.port, own=True), told)
            await self._speak(client, inside, bytes(seen))
            return True
        if speech == "tls" and self.authority is not None:
            return await self._unwrap(client, target, server, self.authority, told)
        why = "it is TLS, and no --ca-dir is given" if speech == "tls" else "it is neither HTTP/1 nor TLS"
        if self.forward.servers[server].in_force:
            self._refused(target, server, why)
            await farewell(client, _ACCESS_DENIED if speech == "tls" else b"", STOP_GRACE)
            return False
        return await self._relay(client, target, server, why, bytes(seen))

    async def _unwrap(
        self, client: socket.socket, target: Target, server: str, authority: "Authority", told: Headers
    ) -> bool:
        """Be the server over TLS."""
        origin = Origin("https", target.host, target.port, own=True)
        try:
            context = authority.context(target.host)
        except OSError as error:
            self._refused(target, server, f"no certificate can be made: {error}")
            return False
        try:
            await self._speak(client, Inside(self.forward, origin, told), b"", context)
        except (OSError, EOFError) as error:
            why = getattr(error, "reason", None) or str(error) or type(error).__name__
            self._refused(target, server, f"the client did not take our certificate ({why}); does it trust the CA?")
        return True

    def _open(self, target: Target, server: str, why: str, *, refused: bool) -> Unread | None:
        try:
            unread = Unread(self.forward.servers[server].relays.open(), target, why, refused=refused)
        except SpanFileError as error:
            self.failure = self.failure or str(error)
            return None
        self.failure = self.failure or unread.failure
        return unread

    def _refused(self, target: Target, server: str, why: str) -> None:
        unread = self._open(target, server, why, refused=True)
        if unread is not None:
            self._end(unread, "refused")
        self._tell_once(f"refused what cannot be read of {server}, {target.authority}: {why}")

    async def _relay(self, client: socket.socket, target: Target, server: str, why: str, begun: bytes) -> bool:
        unread = self._open(target, server, why, refused=False)
        if unread is None or unread.failure:
            # What is not on the record does not go on (wire rule 9).
            abort(client)
            if unread is not None:
                self._end(unread, "refused")
            return True
        self._tell_once(f"not observable: {server}, {target.authority}: {why}")
        pouring, ended = None, ""
        try:
            pouring = Pouring(client, await dial_for(client, target))
            await pouring.run(begun)
        except DialError as error:
            self._tell_once(str(error))
            ended = "server_ended"
        except asyncio.CancelledError:
            abort(client)  # it broke off, also where the server was not reached yet
            raise
        finally:
            side = "client" if pouring is None else pouring.first_ended or "client"
            self._end(unread, self.reason or ended or f"{side}_ended", pouring)
        return pouring is not None

    def _end(self, unread: Unread, reason: str, pouring: Pouring | None = None) -> None:
        counts = (0, 0) if pouring is None else (pouring.sent, pouring.received)
        unread.close(reason, *counts, self.not_exported())
        self.failure = self.failure or unread.failure

    def _tell_once(self, text: str) -> None:
        if text not in self._told and len(self._told) < 100:
            self._told.add(text)
            self.tell(text)


async def _answer(client: socket.socket, status: int, code: int, why: str) -> None:
    body = said(code, why)
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    await farewell(client, f"{head}connection: close\r\n\r\n".encode() + body, STOP_GRACE)
