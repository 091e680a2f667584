"""A channel to a server that runs in this process, on an event loop that turns only while an answer is awaited.

The lines go through the proxy's own core, so policy, record and bytes are those of a proxy process. Refuses to know
which server it is.
"""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from mcp.server import Server
from mcp.shared.memory import MessageStream, create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from harness.targets.client import ServerEndedError
from harness.targets.deadline import Deadline
from harness.targets.eventloop import Loop
from proxy.relay import Passage, Relay


@dataclass(slots=True)
class InProcessChannel:
    """Lines to and from one server of ours, through a relay. Call `start` first."""

    name: str
    server: Server
    relay: Relay
    loop: Loop
    _lines: deque[bytes] = field(default_factory=deque)
    _late: deque[Passage] = field(default_factory=deque)
    _delivered: int = 0
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _streams: "asyncio.Future[MessageStream] | None" = None
    _task: "asyncio.Task[None] | None" = None

    @property
    def deadline(self) -> Deadline:
        """That of the loop, which all servers of the trial share."""
        return self.loop.deadline

    @deadline.setter
    def deadline(self, deadline: Deadline) -> None:
        self.loop.deadline = deadline

    def start(self) -> None:
        """Set the server to work."""
        self._streams = self.loop.loop.create_future()
        self._task = self.loop.loop.create_task(self._serve(self._streams))

    async def _serve(self, ready: "asyncio.Future[MessageStream]") -> None:
        async with create_client_server_memory_streams() as (ours, (read, write)):
            ready.set_result(ours)
            await self.server.run(read, write, self.server.create_initialization_options())

    def send(self, line: bytes) -> None:
        """Give one line to the relay, and what it lets through to the server."""
        self._pass(self.relay.client_line(line))

    def deliver(self, passage: Passage) -> None:
        """Take what became of a call that waited, from whatever thread it comes; `receive` goes on with it."""
        self._late.append(passage)
        with suppress(RuntimeError):  # the loop is closed, and nobody receives any more
            self.loop.loop.call_soon_threadsafe(self._came.set)

    def receive(self) -> bytes:
        """The next line that the relay lets through to the client."""
        while not self._lines:
            if self._delivered < self.relay.asked:
                # The client waits for this answer alone, so what the server may say can wait too.
                self.loop.run(self._until_delivered())
                self._delivered += 1
                self._pass(self._late.popleft())
                continue
            message = self.loop.run(self._next())
            if message is None:
                raise ServerEndedError(f"server {self.name} ended")
            self._pass(self.relay.server_line(_as_line(message)))
        return self._lines.popleft()

    def _pass(self, passage: Passage) -> None:
        self._lines.extend(_lines(passage.to_client))
        for seconds, late in passage.later:
            # One call is under way at a time, so nothing else is held up.
            self.loop.run(asyncio.sleep(seconds))
            self._lines.extend(_lines(late))
        try:
            for line in _lines(passage.to_server):
                self.loop.run(self._deliver(line))
        finally:
            self.relay.settle()

    async def _until_delivered(self) -> None:
        while not self._late:
            await self._came.wait()
            self._came.clear()

    async def _deliver(self, line: bytes) -> None:
        assert self._streams is not None
        _, write = await self._streams
        try:
            await write.send(_as_message(line))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ServerEndedError(f"server {self.name} ended") from error

    async def _next(self) -> SessionMessage | None:
        assert self._streams is not None
        read, _ = await self._streams
        try:
            message = await read.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return None
        if isinstance(message, Exception):
            raise ServerEndedError(f"server {self.name} broke: {message}")
        return message

    def close_input(self) -> None:
        """End the server's input."""
        self.loop.run(self._end_input())

    async def _end_input(self) -> None:
        assert self._streams is not None
        _, write = await self._streams
        await write.aclose()

    def close(self) -> None:
        """Record what the server still says, and wait for its end."""
        try:
            self.close_input()
            while (message := self.loop.run(self._next())) is not None:
                self._pass(self.relay.server_line(_as_line(message)))
        finally:
            self.relay.close("client_ended")


def _lines(data: bytes) -> list[bytes]:
    """The whole lines of what a relay let through, without their newlines."""
    return data.removesuffix(b"\n").split(b"\n") if data else []


def _as_message(line: bytes) -> SessionMessage | Exception:
    """The line as the SDK's own stdio server reads it."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


def _as_line(message: SessionMessage) -> bytes:
    """The message as the SDK's own stdio server writes it."""
    return message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
