"""The process of stdio in front of a server over HTTP: its pipes, its signals and its end.

Refuses to know what a line says.
"""

import asyncio
import os
import signal
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hmac import digest
from threading import Thread

from proxy import vocabulary as v
from proxy.connect import Connector
from proxy.heard import Heard
from proxy.httpwords import Headers, Origin
from proxy.kin import parent
from proxy.lines import LineBuffer
from proxy.offered import offered_to
from proxy.options import Start
from proxy.pumps import CHUNK, write_all
from proxy.relay import Passage, Relay
from proxy.saying import say
from proxy.spanfile import SpanFile
from proxy.upstream import Upstream

RECORD_FAILED = 74
"""Exit code when spans could not be written (EX_IOERR of sysexits.h)."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Target:
    """The server over HTTP: `path` is what its URL has behind the origin, `headers` go with every request."""

    origin: Origin
    path: str
    headers: Headers


class Edge:
    """The client's two pipes. `fds` are that to read and that to write."""

    def __init__(self, target: Target, relay: Relay, fds: tuple[int, int]) -> None:
        self._relay = relay
        self._from, self._to = fds
        self._lines = LineBuffer(sys.maxsize)
        self._writing = ThreadPoolExecutor(1, "client")
        self._over = asyncio.Event()
        self.reason = "client_ended"
        self._late_ones: set[asyncio.Future[None]] = set()
        self._taking: asyncio.Future[None] | None = None
        self.connector = Connector(Upstream(target.origin), target.path.encode(), target.headers, relay, self.write)

    async def write(self, data: bytes) -> None:
        """Give the client whole lines, when those before are written."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._writing, write_all, self._to, data)
        except OSError:
            self.stop("client_ended")

    def stop(self, reason: str) -> None:
        """End it, whatever is under way."""
        if not self._over.is_set():
            self.reason = reason
            self._over.set()

    async def run(self) -> None:
        """Pass on what the client sends until it ends, and finish what is open; or until `stop`."""
        loop = asyncio.get_running_loop()
        Thread(target=self._read, args=(loop,), name="client", daemon=True).start()
        await self._over.wait()
        await self.connector.close()
        self._writing.shutdown(wait=False, cancel_futures=True)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """The thread that waits for the client; what it has read is sent on before it reads more."""
        chunk = b" "
        while chunk:
            try:
                chunk = os.read(self._from, CHUNK)
            except OSError:
                chunk = b""
            taken: Future[None] = Future()
            try:
                loop.call_soon_threadsafe(self._begin, chunk, taken)
            except RuntimeError:  # all is over
                return
            taken.result()

    def _begin(self, chunk: bytes, taken: "Future[None]") -> None:
        self._taking = asyncio.ensure_future(self._take(chunk))
        self._taking.add_done_callback(lambda task: taken.set_result(None))

    async def _take(self, chunk: bytes) -> None:
        await self._pass(self._relay.from_client(chunk) if chunk else self._relay.client_ended())
        if not chunk:
            for piece in self._lines.end():
                await self.connector.line(piece.data)
            await self.connector.finish()
            self.stop("client_ended")

    def deliver(self, loop: asyncio.AbstractEventLoop, passage: Passage) -> None:
        """Send whole lines that came out of order, from another thread: what became of a call that waited."""
        with suppress(RuntimeError):  # all is over
            loop.call_soon_threadsafe(self._begin_late, passage)

    def _begin_late(self, passage: Passage) -> None:
        task = asyncio.ensure_future(self._late(passage))
        self._late_ones.add(task)
        task.add_done_callback(self._late_ones.discard)

    async def _late(self, passage: Passage) -> None:
        if passage.to_client:
            await self.write(passage.to_client)
        if passage.to_server:
            await self.connector.line(passage.to_server)

    async def _pass(self, passage: Passage) -> None:
        if passage.to_client:
            await self.write(passage.to_client)
        for piece in self._lines.feed(passage.to_server):
            await self.connector.line(piece.data)
        self._relay.settle()


def serve(target: Target, start: Start, version: str) -> int:
    """Run it until the client ends or a signal comes; its exit code. Raises SpanFileError where it cannot start."""
    file = SpanFile.create(start.folder, start.identity.server_id)
    exporter = start.exporter
    if exporter is not None:
        file.tap = exporter.offer
        exporter.start()
    relay = Relay(start.identity, start.policy, version, file, start.redactor,
                  splice=start.splice, faults=start.fault_plan())  # fmt: skip

    relay.session.recorder.offered = offered_to(
        start.identity.server_id, start.policy, lambda text: say(text, start.redactor)
    )
    heard = Heard(relay.session.recorder, start.key)

    def named(session_id: bytes) -> None:
        heard.take([session_id.decode("latin-1")])
        relay.session.recorder.also({v.SESSION_ID: digest(start.key, session_id, "sha256").hex()[:32]})

    async def running() -> str:
        edge = Edge(target, relay, (0, 1))
        edge.connector.on_session = named
        loop = asyncio.get_running_loop()
        if start.policy is not None and start.policy.holds:
            relay.hold_calls(start.waiting(parent()), partial(edge.deliver, loop))
        for number in _SIGNALS:
            loop.add_signal_handler(number, edge.stop, number.name)
        await edge.run()
        return edge.reason

    reason = asyncio.run(running())
    relay.close(reason, None if exporter is None else exporter.tally.dropped)
    if exporter is not None:
        say(exporter.wind_up(file.path), start.redactor)
    if relay.failure:
        say(f"the record is not whole: {relay.failure}", start.redactor)
        return RECORD_FAILED
    return 0
