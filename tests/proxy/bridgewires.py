"""A bridge on a real socket, and behind it servers over real pipes that a test scripts, line by line."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition, Thread

from proxy import vocabulary as v
from proxy.bridgeserve import BridgeFront, make_bridge
from proxy.child import Child
from proxy.faults import Fault
from proxy.httpserve import make_server
from proxy.httpwords import Headers
from proxy.nursery import Nursery
from proxy.options import Start
from proxy.policy import Policy
from proxy.record import Identity
from proxy.spanread import read_spans
from proxy.spans import JSON, Span
from tests.proxy.httpupstream import WAIT
from tests.proxy.httpwires import JSON_TYPE, KEY, Answer, Client, Running

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
HELLO = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%s"}}'


def modern(method: str = "tools/call", id_text: str = "1", meta: str = "", **params: JSON) -> str:
    """A request of the new era; `meta` is put in front of the members of its `_meta`."""
    own = json.dumps(META)
    inside = json.dumps(params)[1:-1]
    told = f'"_meta":{{{meta}{own[1:]}' + (f",{inside}" if inside else "")
    return f'{{"jsonrpc":"2.0","id":{id_text},"method":"{method}","params":{{{told}}}}}'


def told(method: str = "tools/call", name: str = "") -> Headers:
    """The headers that such a request has."""
    found = [JSON_TYPE, (b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", method.encode())]
    return [*found, (b"mcp-name", name.encode())] if name else found


class Server:
    """A server over stdio; `lines` are all that reached it."""

    def __init__(self, connection: str, handler: "Handler") -> None:
        self.connection = connection
        self.lines: list[bytes] = []
        self.ended = False
        """Whether its input has ended."""
        self._news = Condition()
        self._handler = handler
        stdin, ours_in = os.pipe()
        ours_out, self._stdout = os.pipe()
        self.child = Child(0, ours_in, ours_out)
        self._thread = Thread(target=self._run, args=(stdin,))
        self._thread.start()

    def _run(self, stdin: int) -> None:
        with os.fdopen(stdin, "rb") as file:
            for line in file:
                with self._news:
                    self.lines.append(line)
                    self._news.notify_all()
                self._handler(self, json.loads(line) if line.strip().startswith(b"{") else None)
        with self._news:
            self.ended = True
            self._news.notify_all()
        self.exit()

    @property
    def messages(self) -> list[dict[str, JSON]]:
        return [json.loads(line) for line in self.lines]

    def wait(self, until: "Callable[[Server], bool]") -> None:
        """Wait until something holds of it."""
        with self._news:
            assert self._news.wait_for(lambda: until(self), WAIT), self.lines

    def send(self, message: "JSON | bytes") -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        os.write(self._stdout, data + b"\n")

    def result(self, asked: JSON, **result: JSON) -> None:
        assert isinstance(asked, dict)
        self.send({"jsonrpc": "2.0", "id": asked["id"], "result": result or {"content": []}})

    def exit(self) -> None:
        """Close its output, as a process does that ends."""
        stdout, self._stdout = self._stdout, -1
        with suppress(OSError):
            os.close(stdout)

    def join(self) -> None:
        self._thread.join(WAIT)
        assert not self._thread.is_alive()


Handler = Callable[[Server, JSON], None]


def echo(server: Server, message: JSON) -> None:
    """Answer every request with an empty result, `initialize` with the version that it names."""
    if isinstance(message, dict) and "id" in message and "method" in message:
        params = message.get("params")
        version = params.get("protocolVersion") if isinstance(params, dict) else None
        server.result(message, **({"protocolVersion": version} if version else {}))


class Children(Nursery):
    """Servers without processes; `servers` are those that were started."""

    def __init__(self, handler: Handler) -> None:
        super().__init__(["server"], adopts=False)
        self.handler = handler
        self.servers: list[Server] = []
        self._news = Condition()

    def start(self, connection: str) -> Child:
        server = Server(connection, self.handler)
        with self._news:
            self.servers.append(server)
            self._news.notify_all()
        return server.child

    def nth(self, number: int) -> Server:
        """The server that is started as this one, counted from 0."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.servers) > number, WAIT)
            return self.servers[number]

    async def end(self, pid: int) -> None:
        """A server ends when its input does."""

    async def end_all(self) -> None:
        """The same."""


class BridgeRun:
    """A bridge in front of servers of a test, as the server `x`."""

    def __init__(
        self, folder: Path, handler: Handler = echo, policy: Policy | None = None, faults: tuple[Fault, ...] = ()
    ) -> None:
        self.folder = folder / "spans"
        self.folder.mkdir()
        self.children = Children(handler)
        identity = Identity("x", "third_party", "http", "", "run", "scenario", 2, "agent")
        start = Start(identity, policy, str(self.folder), KEY, None, None, False, "", faults=faults)
        self.app = make_bridge(BridgeFront("/mcp", "127.0.0.1", 0), start, "0.1.0", self.children)
        self.running = Running(lambda: make_server(self.app))
        self.port = self.running.port
        self.closed = False

    def post(self, body: str | bytes, headers: Headers | None = None) -> Answer:
        """One request on a connection of its own, and its whole answer."""
        with Client(self.port) as client:
            data = body if isinstance(body, bytes) else body.encode()
            client.send("POST", "/mcp", data, [JSON_TYPE] if headers is None else headers)
            return client.rest(client.head())

    def ask(self, method: str, headers: Headers, target: str = "/mcp") -> Answer:
        with Client(self.port) as client:
            client.send(method, target, None, headers)
            return client.rest(client.head())

    def open(self, version: str = "2025-11-25") -> Headers:
        """Begin a session; the headers of what follows in it."""
        answer = self.post(HELLO % version)
        assert answer.status == 200
        (session,) = answer.values("mcp-session-id")
        return [JSON_TYPE, (b"mcp-session-id", session.encode()), (b"mcp-protocol-version", version.encode())]

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self.running.call(self.app.stop)
        self.running.stop()
        self.app.asking.seats.close_all("client_ended")
        for server in self.children.servers:
            server.exit()
            server.join()

    def spans(self, kind: str) -> list[Span]:
        """What is recorded of one kind when all is over."""
        self.close()
        notes: list[str] = []
        found = list(read_spans([str(self.folder)], notes.append))
        assert notes == []
        return [span for span in found if span.attributes[v.SPAN_KIND] == kind]


@contextmanager
def bridged(
    folder: Path, handler: Handler = echo, policy: Policy | None = None, faults: tuple[Fault, ...] = ()
) -> Iterator[BridgeRun]:
    """A bridge, closed when all is over; its record is whole."""
    bridge = BridgeRun(folder, handler, policy, faults)
    try:
        yield bridge
    finally:
        bridge.close()
    assert bridge.app.asking.seats.failure == ""


def events(body: bytes) -> list[JSON]:
    """The messages of a stream of events."""
    return [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]
