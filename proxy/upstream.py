"""The server behind an edge over HTTP: requests out and answers in, byte for byte, over connections that are kept open.

It follows no redirects, tries nothing twice and has no time-outs (wire rule 16). Refuses to know JSON-RPC.
"""

import asyncio
import ssl
from collections import deque
from time import monotonic

from proxy.httpwords import Origin
from proxy.serverline import ServerLine, UpstreamError
from proxy.tlstrust import trust
from proxy.upstreamline import Line

KEPT = 3.0
"""Seconds that an idle connection is kept: less than servers do, which would close it just when it is used again."""


class Upstream:
    """The server, at one origin."""

    def __init__(self, origin: Origin, tls: ssl.SSLContext | None = None) -> None:
        """`tls` says which certificates are taken; without one those of the system's store."""
        self.origin = origin
        self._tls = (tls or trust()) if origin.scheme == "https" else None
        self._idle: deque[Line] = deque()
        self._closed = False

    async def line(self) -> Line:
        """A connection to ask on. Raises UpstreamError."""
        while self._idle:
            line = self._idle.pop()
            if line.open() and monotonic() - line.idle_since < KEPT:
                return line
            line.abort()
        origin = self.origin
        loop = asyncio.get_running_loop()
        try:
            _, line = await loop.create_connection(Line, origin.host, origin.port, ssl=self._tls)
        except (OSError, UnicodeError) as error:
            raise UpstreamError(f"the server at {origin} cannot be reached: {error}") from None
        return line

    def give_back(self, line: ServerLine) -> None:
        """Keep a connection for the next request, where it can be; else close it."""
        if self._closed or not isinstance(line, Line) or not line.reusable():
            line.abort()
            return
        line.idle_since = monotonic()
        self._idle.append(line)
        while self._idle and line.idle_since - self._idle[0].idle_since >= KEPT:
            self._idle.popleft().abort()

    def close(self) -> None:
        """Close what is idle, and keep no connection from now on."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()
