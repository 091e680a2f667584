"""The forward proxy on real sockets: in a thread, with clients that ask by whole URL, in a tunnel, or by TLS in one."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Literal

from proxy import vocabulary as v
from proxy.certificates import Authority, open_authority
from proxy.forward import Forward, Watched
from proxy.forwardserve import HOST
from proxy.grants import Grants
from proxy.httpserve import listen
from proxy.httpwords import Headers
from proxy.judging import edits_answers
from proxy.options import Start
from proxy.policy import Policy
from proxy.record import Identity
from proxy.relays import Relays
from proxy.routes import Routes, read_entry
from proxy.spans import Span
from proxy.switchboard import Switchboard
from proxy.tlstrust import trust
from tests.proxy.httpupstream import WAIT, Handler, Upstream, echo
from tests.proxy.httpwires import JSON_TYPE, KEY, Answer, Client, recorded

Way = Literal["url", "tunnel", "tls"]
WAYS: tuple[Way, ...] = ("url", "tunnel", "tls")


class TlsUpstream(Upstream):
    """A scripted server over TLS, at 127.0.0.1, with a certificate of an authority of its own."""

    def __init__(self, folder: Path, handler: Handler = echo) -> None:
        authority = open_authority(str(folder))
        self.certificates = authority.path
        self._context = authority.context("127.0.0.1")
        self.accepted = 0
        super().__init__(handler)

    def _serve(self, connection: socket.socket) -> None:
        self.accepted += 1
        try:
            wrapped = self._context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        self._sockets.append(wrapped)
        super()._serve(wrapped)


class Tunnel(Client):
    """A client in a tunnel, over TLS where there is a context for it."""

    def __init__(self, port: int, target: str, context: ssl.SSLContext | None = None, more: str = "") -> None:
        super().__init__(port)
        self.file.close()
        self.socket.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{more}\r\n".encode())
        # Byte by byte: what follows the head may be the server's.
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = self.socket.recv(1)
            assert byte, head
            head += byte
        self.opened = head.split(b" ")[1]
        if context is not None:
            plain = self.socket
            try:
                self.socket = context.wrap_socket(plain, server_hostname=target.rpartition(":")[0])
            finally:
                plain.close()
        self.file = self.socket.makefile("rb")


class ForwardProxy:
    """The forward proxy, by default with the server `x` at every port of this machine. `way` is how `ask` asks."""

    def __init__(
        self,
        folder: Path,
        upstream: Upstream,
        policy: Policy | None = None,
        servers: tuple[str, ...] = ("x=127.0.0.1",),
        way: Way = "url",
        authority: Authority | None = None,
        grants: Grants | None = None,
    ) -> None:
        self.folder = folder / "spans"
        self.upstream = upstream
        self.way = way
        self.authority = authority
        self.said: list[str] = []
        self.listening = listen(HOST, 0)
        self.port: int = self.listening.getsockname()[1]
        self.closed = False
        self.failure = ""
        entries = [read_entry(text) for text in servers]
        watched: dict[str, Watched] = {}
        for entry in entries:
            identity = Identity(entry.server, "third_party", "http", "", "run", "scenario", 2, "agent")
            start = Start(identity, policy, str(self.folder), KEY, None, None, False, "", grants=grants)
            watched[entry.server] = Watched(policy, Relays(start, "0.1.0"), KEY, edits_answers(policy), start.waiting())
        tls = trust(upstream.certificates) if isinstance(upstream, TlsUpstream) else None
        self.board = Switchboard(Forward(Routes(entries), watched, self.port, tls), authority, self.said.append)
        self._ready, self._loop = Event(), asyncio.new_event_loop()
        self._thread = Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(WAIT)

    def _run(self) -> None:
        async def serve() -> None:
            self._end = asyncio.Event()
            accepting = asyncio.create_task(self.board.accept(self.listening))
            self._ready.set()
            await self._end.wait()
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            await self.board.stop("SIGTERM")

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(serve())

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(WAIT)
            assert not self._thread.is_alive()
            self.listening.close()
            self.failure = self.board.forward.close_all("SIGTERM") or self.board.failure

    def wait_for(self, kind: str) -> None:
        """Wait until a span of that kind is on disk."""
        mark = f'"{v.SPAN_KIND}","value":{{"stringValue":"{kind}"'
        until = monotonic() + WAIT
        while monotonic() < until:
            if self.folder.exists() and any(mark in path.read_text() for path in self.folder.iterdir()):
                return
            Event().wait(0.005)
        raise AssertionError(f"no span {kind} was written")

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.upstream.port}"

    def client(self, way: Way | None = None) -> Client:
        match way or self.way:
            case "url":
                return Client(self.port)
            case "tunnel":
                return Tunnel(self.port, self.target)
            case "tls":
                assert self.authority is not None
                return Tunnel(self.port, self.target, ssl.create_default_context(cafile=self.authority.path))

    def send(self, client: Client, method: str, target: str, body: bytes | None, headers: Headers) -> None:
        url = target if isinstance(client, Tunnel) else f"http://{self.target}{target}"
        client.send(method, url, body, [(b"Host", self.target.encode()), *headers])

    def ask(
        self, method: str, target: str = "/mcp", body: bytes | None = None, headers: Headers | None = None
    ) -> Answer:
        """One request on a connection of its own, and its whole answer."""
        with self.client() as client:
            self.send(client, method, target, body, headers or [])
            return client.rest(client.head())

    def post(self, body: bytes | str, *headers: tuple[bytes, bytes], target: str = "/mcp") -> Answer:
        data = body if isinstance(body, bytes) else body.encode()
        return self.ask("POST", target, data, [JSON_TYPE, *headers])

    def spans(self, kind: str | None = None) -> list[Span]:
        """What is recorded when all is over, of one kind where it is given."""
        self.close()
        return recorded(self.folder, kind)

    def only(self, kind: str) -> Span:
        (span,) = self.spans(kind)
        return span


@contextmanager
def forwarded(
    folder: Path,
    policy: Policy | None = None,
    handler: Handler = echo,
    servers: tuple[str, ...] = ("x=127.0.0.1",),
    way: Way = "url",
    *,
    secure: bool = False,
    reads: bool = False,
    grants: Grants | None = None,
) -> Iterator[tuple[ForwardProxy, Upstream]]:
    """A forward proxy and a scripted server; `secure`: the server speaks TLS; `reads`: the proxy has an authority."""
    secure, reads = secure or way == "tls", reads or way == "tls"
    upstream = TlsUpstream(folder / "theirs", handler) if secure else Upstream(handler)
    try:
        authority = open_authority(str(folder / "ours")) if reads else None
        proxy = ForwardProxy(folder, upstream, policy, servers, way, authority, grants)
        try:
            yield proxy, upstream
        finally:
            proxy.close()
        assert proxy.failure == ""
    finally:
        upstream.close()
