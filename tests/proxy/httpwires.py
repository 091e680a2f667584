"""The proxy over HTTP on real sockets: a server that a test scripts, the proxy in a thread, clients byte by byte."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import uvicorn

from proxy import vocabulary as v
from proxy.grants import Grants
from proxy.http import HttpProxy
from proxy.httpserve import Front, listen, make_proxy, make_server
from proxy.httpwords import Headers, Origin
from proxy.options import Start
from proxy.policy import Policy
from proxy.record import Identity
from proxy.spanread import read_spans
from proxy.spans import JSON, Span
from tests.proxy.httpupstream import WAIT, Handler, Upstream, echo

KEY = bytes(range(32))


@dataclass
class Answer:
    """What a client got."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def json(self) -> JSON:
        value: JSON = json.loads(self.body)
        return value


class Client:
    """One connection of a client, byte by byte."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
        self.file = self.socket.makefile("rb")
        self.port = port

    def send(self, method: str, target: str, body: bytes | None, headers: Headers) -> None:
        head = f"{method} {target} HTTP/1.1\r\n".encode()
        if not any(key.lower() == b"host" for key, _ in headers):
            head += f"host: 127.0.0.1:{self.port}\r\n".encode()
        for key, value in headers:
            head += key + b": " + value + b"\r\n"
        if body is not None:
            head += b"content-length: %d\r\n" % len(body)
        self.socket.sendall(head + b"\r\n" + (body or b""))

    def head(self) -> Answer:
        line = self.file.readline().decode()
        headers: list[tuple[str, str]] = []
        while (part := self.file.readline()) not in (b"\r\n", b""):
            key, _, value = part.decode("latin-1").partition(":")
            headers.append((key, value.strip()))
        return Answer(int(line.split()[1]) if line else 0, headers, b"")

    def chunk(self) -> bytes:
        """The next chunk of a chunked body; b"" at its end, and where it breaks off."""
        size = self.file.readline()
        if not size:
            raise ConnectionError("the body broke off")
        data = self.file.read(int(size, 16))
        self.file.readline()
        return data

    def until(self, mark: bytes) -> bytes:
        """Chunks until `mark` is in them."""
        found = b""
        while mark not in found:
            chunk = self.chunk()
            assert chunk, f"the stream ended with {found!r}"
            found += chunk
        return found

    def rest(self, answer: Answer) -> Answer:
        if answer.values("transfer-encoding") == ["chunked"]:
            while chunk := self.chunk():
                answer.body += chunk
        elif answer.values("content-length"):
            answer.body = self.file.read(int(answer.values("content-length")[0]))
        return answer

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


JSON_TYPE = (b"content-type", b"application/json")


class Running:
    """An ASGI application on a port of this machine, in a thread with a loop of its own."""

    def __init__(self, make: Callable[[], uvicorn.Server]) -> None:
        self.listening = listen("127.0.0.1", 0)
        self.port: int = self.listening.getsockname()[1]
        self._make = make
        self._loop = asyncio.new_event_loop()
        self._ready = Event()
        self._thread = Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(WAIT)

    def _run(self) -> None:
        async def serve() -> None:
            self.server = self._make()
            self._ready.set()
            await self.server.serve(sockets=[self.listening])

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(serve())

    def call(self, function: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join(WAIT)
        assert not self._thread.is_alive()


def recorded(folder: Path, kind: str | None = None) -> list[Span]:
    """The spans of a folder, of one kind where it is given; none where nothing was recorded."""
    notes: list[str] = []
    files = sorted(str(path) for path in folder.iterdir()) if folder.exists() else []
    found = [span for file in files for span in read_spans([file], notes.append)]
    assert notes == []
    return [span for span in found if kind in (None, span.attributes[v.SPAN_KIND])]


class Proxy:
    """The proxy in front of a port of this machine, as the server `x`."""

    def __init__(
        self,
        folder: Path,
        port: int,
        policy: Policy | None = None,
        splice: bool = False,
        names: tuple[str, ...] = (),
        origins: tuple[str, ...] = (),
        upstream: Origin | None = None,
        ca: str = "",
        grants: Grants | None = None,
    ) -> None:
        self.folder = folder / "spans"
        self.folder.mkdir()
        identity = Identity("x", "third_party", "http", "", "run", "scenario", 2, "agent")
        there = upstream or Origin("http", "127.0.0.1", port)
        told = Front(there, "/mcp", "127.0.0.1", 0, names, origins, ca)
        start = Start(identity, policy, str(self.folder), KEY, None, None, splice, "", grants=grants)
        self.app: HttpProxy = make_proxy(told, start, "0.1.0")
        self.running = Running(lambda: make_server(self.app))
        self.port = self.running.port
        self.closed = False

    def ask(
        self, method: str, target: str = "/mcp", body: bytes | None = None, headers: Headers | None = None
    ) -> Answer:
        """One request on a connection of its own, and its whole answer."""
        with Client(self.port) as client:
            client.send(method, target, body, headers or [])
            return client.rest(client.head())

    def post(self, body: bytes | str, *headers: tuple[bytes, bytes], target: str = "/mcp") -> Answer:
        data = body if isinstance(body, bytes) else body.encode()
        return self.ask("POST", target, data, [JSON_TYPE, *headers])

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.running.call(self.app.stop)
            self.running.stop()
            self.app.asking.seats.close_all("client_ended")

    def spans(self, kind: str | None = None) -> list[Span]:
        """What is recorded when all is over, of one kind where it is given."""
        self.close()
        return recorded(self.folder, kind)

    def only(self, kind: str) -> Span:
        (span,) = self.spans(kind)
        return span


@contextmanager
def through(
    folder: Path,
    policy: Policy | None = None,
    handler: Handler = echo,
    names: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    grants: Grants | None = None,
) -> Iterator[tuple[Proxy, Upstream]]:
    """A proxy and the scripted server behind it."""
    upstream = Upstream(handler)
    try:
        proxy = Proxy(folder, upstream.port, policy, names=names, origins=origins, grants=grants)
        try:
            yield proxy, upstream
        finally:
            proxy.close()
        assert proxy.app.asking.seats.failure == ""
    finally:
        upstream.close()
