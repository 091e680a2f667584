"""The health of all proxies at a port of its own: JSON over HTTP, 200 while all is well and 503 when it is not.

Refuses to know what is asked of a proxy to know it.
"""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import h11

from proxy.doors import Doors
from proxy.httpwords import Headers
from proxy.spans import JSON

LONGEST = 10.0
"""Seconds that a request may take to come."""
Look = Callable[[], Awaitable[tuple[bool, Mapping[str, JSON]]]]
"""Whether all is well, and what to say of it."""


class HealthPort:
    """Answers GET and HEAD of any path. One request a connection."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._doors = Doors("127.0.0.1")

    async def start(self, listening: socket.socket) -> asyncio.Server:
        """Serve at a socket that listens."""
        return await asyncio.start_server(self._serve, sock=listening)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = h11.Connection(h11.SERVER)
        with suppress(OSError, TimeoutError, h11.RemoteProtocolError):
            async with asyncio.timeout(LONGEST):
                request = await _request(wire, reader)
            if request is not None:
                status, body = await self._answer(request)
                headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
                answer = h11.Response(status_code=status, headers=[*headers, ("connection", "close")])
                for event in (answer, h11.Data(data=b"" if request.method == b"HEAD" else body), h11.EndOfMessage()):
                    writer.write(wire.send(event) or b"")
                await writer.drain()
        writer.close()

    async def _answer(self, request: h11.Request) -> tuple[int, bytes]:
        headers: Headers = list(request.headers)
        if not self._doors.host(headers):
            return _said(421, "this Host is not served here")
        if not self._doors.origin(headers):
            return _said(403, "this Origin is not let in")
        if request.method not in (b"GET", b"HEAD"):
            return _said(405, "health is asked for with GET")
        well, found = await self._look()
        return 200 if well else 503, json.dumps(found, indent=2).encode() + b"\n"


def _said(status: int, error: str) -> tuple[int, bytes]:
    return status, json.dumps({"error": error}).encode() + b"\n"


async def _request(wire: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    while True:
        event = wire.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        wire.receive_data(await reader.read(1 << 14))
