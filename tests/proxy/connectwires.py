"""Stdio in front of a server over HTTP that a test scripts: a client on real pipes, and a real socket."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from proxy import vocabulary as v
from proxy.connectserve import Edge, Target
from proxy.faults import FaultPlan
from proxy.httpwords import Headers, Origin
from proxy.policy import Policy
from proxy.record import Identity
from proxy.relay import Relay
from proxy.spanfile import SpanFile
from proxy.spanread import read_spans
from proxy.spans import JSON, Span
from tests.proxy.bridgewires import HELLO
from tests.proxy.httpupstream import WAIT, Handler, Request, Upstream, echo

READY = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
SESSION = "content-type: application/json\r\nmcp-session-id: s1"
BEGUN = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}'


def method_of(request: Request) -> str:
    if not request.body:
        return request.method
    message = json.loads(request.body)
    return str(message.get("method", "answer")) if isinstance(message, dict) else "array"


class Connected:
    """A client on pipes, and the scripted server; `upstream.requests` are all that reached it."""

    def __init__(
        self, folder: Path, handler: Handler, policy: Policy | None, headers: Headers, faults: FaultPlan | None
    ) -> None:
        self.upstream = Upstream(handler)
        self.spans_folder = folder / "spans"
        file = SpanFile.create(str(self.spans_folder), "x")
        identity = Identity("x", "third_party", "stdio", "c1", "run", "scenario", 2, "agent")
        self.relay = Relay(identity, policy, "0.1.0", file, faults=faults)
        self._loop = asyncio.new_event_loop()
        from_client, self._stdin = os.pipe()
        stdout, to_client = os.pipe()
        self.output = os.fdopen(stdout, "rb")
        self._fds = (from_client, to_client)
        self.target = Target(Origin("http", "127.0.0.1", self.upstream.port), "/mcp", headers)
        self.ended = Event()
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        async def run() -> None:
            self.edge = Edge(self.target, self.relay, self._fds)
            await self.edge.run()

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(run())
        self.relay.close(self.edge.reason)
        for fd in self._fds:
            os.close(fd)
        self.ended.set()

    def send(self, *lines: str | bytes) -> None:
        for line in lines:
            os.write(self._stdin, (line if isinstance(line, bytes) else line.encode()) + b"\n")

    def read(self) -> dict[str, JSON]:
        line = self.output.readline()
        assert line
        message: dict[str, JSON] = json.loads(line)
        return message

    def begin(self, version: str = "2025-11-25") -> None:
        """Open a session of the old era."""
        self.send(HELLO % version)
        assert self.read()["id"] == 0

    def end(self) -> None:
        """The client sends no more; wait for the end."""
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1
        assert self.ended.wait(WAIT)
        self._thread.join(WAIT)

    def close(self) -> None:
        self.end()
        self.output.close()
        self.upstream.close()

    def spans(self, kind: str) -> list[Span]:
        self.end()
        notes: list[str] = []
        found = list(read_spans([str(self.spans_folder)], notes.append))
        assert notes == []
        return [span for span in found if span.attributes[v.SPAN_KIND] == kind]


@contextmanager
def connected(
    folder: Path,
    handler: Handler = echo,
    policy: Policy | None = None,
    headers: Headers | None = None,
    faults: FaultPlan | None = None,
) -> Iterator[Connected]:
    one = Connected(folder, handler, policy, headers or [], faults)
    try:
        yield one
    finally:
        one.close()
    assert one.relay.failure == ""


def session(rest: Handler) -> Handler:
    """Begin a session; `rest` answers what follows, if it is asked something."""

    def handle(request: Request) -> None:
        if method_of(request) == "initialize":
            request.answer(BEGUN, headers=SESSION)
        elif request.method == "DELETE":
            request.answer(b"")
        elif request.method == "GET":
            rest(request)
        elif b'"id"' not in request.body or b'"method"' not in request.body:
            request.answer(b"", "202 Accepted")
        else:
            rest(request)

    return handle
