"""The body of a request as ASGI gives it. Refuses to know what it asks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import TypeAlias

Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, object]]]"


class ClientGoneError(ValueError):
    """The client closed its connection before it had sent all."""


class Inbound:
    """The body of a request as it comes in, and then the news that the client went away."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = asyncio.Event()

    async def read(self, limit: int) -> bytes:
        """The body up to somewhat more than `limit` bytes; `ended` is set when that is all. Raises ClientGoneError."""
        found: list[bytes] = []
        size = 0
        while size <= limit and not self.ended.is_set():
            chunk = await self._next()
            found.append(chunk)
            size += len(chunk)
        return b"".join(found)

    async def rest(self) -> AsyncIterator[bytes]:
        """What `read` left."""
        while not self.ended.is_set():
            yield await self._next()

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] != "http.request":
            raise ClientGoneError("the client went away")
        if not message.get("more_body"):
            self.ended.set()
        body = message.get("body", b"")
        return body if isinstance(body, bytes) else b""

    async def gone(self) -> None:
        """Return when the client goes away."""
        await self.ended.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
