"""The proxy over HTTP on real sockets: a server that a test scripts, the proxy in a thread, clients byte by byte."""

import asyncio
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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

WAIT = 60.0
"""Seconds after which a test gives up on what should be there at once."""
KEY = bytes(range(32))


@dataclass
class Request:
    """What reached the scripted server, and the way to answer it."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: socket.socket

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def answer(
        self, body: bytes = b"", status: str = "200 OK", headers: str = "content-type: application/json"
    ) -> None:
        head = f"HTTP/1.1 {status}\r\n{headers}\r\ncontent-length: {len(body)}\r\n\r\n"
        self.send(head.encode() + body)

    def stream(self, *events: bytes, headers: str = "") -> None:
        """Begin an event stream; `chunk` goes on with it."""
        self.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n%stransfer-encoding: chunked\r\n\r\n"
            % headers.encode()
        )
        for event in events:
            self.chunk(event)

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        self.send(b"0\r\n\r\n")

    def gone(self) -> bool:
        """Wait until the proxy closes the connection; whether it did in time."""
        self.connection.settimeout(WAIT)
        try:
            return self.connection.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True


Handler = Callable[[Request], None]


def echo(request: Request) -> None:
    """Answer every request of a body with an empty result."""
    try:
        message = json.loads(request.body)
    except ValueError:
        message = None
    asked = [
        one for one in (message if isinstance(message, list) else [message]) if isinstance(one, dict) and "id" in one
    ]
    if not asked:
        request.answer(b"", "202 Accepted")
        return
    answers = [{"jsonrpc": "2.0", "id": one["id"], "result": {"content": []}} for one in asked]
    request.answer(json.dumps(answers if isinstance(message, list) else answers[0]).encode())


class Upstream:
    """A server of which the test is every answer; `requests` are all that reached it."""

    def __init__(self, handler: Handler = echo, tls: ssl.SSLContext | None = None) -> None:
        self.handler = handler
        self.requests: list[Request] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        if tls is not None:
            self._listening = tls.wrap_socket(self._listening, server_side=True)
        self.port = self._listening.getsockname()[1]
        self.closed = False
        self._sockets: list[socket.socket] = []
        self._threads: list[Thread] = [Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._sockets.append(connection)
            thread = Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as file:
            while line := file.readline():
                method, target, _ = line.decode("latin-1").split(" ", 2)
                headers: list[tuple[str, str]] = []
                while (line := file.readline()) not in (b"\r\n", b""):
                    key, _, value = line.decode("latin-1").partition(":")
                    headers.append((key, value.strip()))
                table = {key.lower(): value for key, value in headers}
                body = b""
                if table.get("transfer-encoding") == "chunked":
                    while size := int(file.readline(), 16):
                        body += file.read(size)
                        file.readline()
                    file.readline()
                else:
                    body = file.read(int(table.get("content-length", "0")))
                request = Request(method, target, headers, body, connection)
                self.requests.append(request)
                self.handler(request)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        # A blocking accept wakes up when its socket is shut down, not when it is closed.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(WAIT)
            assert not thread.is_alive()


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
