"""A server over HTTP on a real socket, whose answers a test scripts."""

import json
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread

WAIT = 60.0
"""Seconds after which a test gives up on what should be there at once."""


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
