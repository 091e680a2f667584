"""The way of an answer to the client, as ASGI has it. Refuses to know where the answer comes from."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from proxy.clientexchange import FOLLOWED, POURS
from proxy.httpwords import Headers
from proxy.pouring import Sink


async def silence() -> None:
    """Answer nothing until the client goes away, or we are told to stop: then this is cancelled."""
    await asyncio.get_running_loop().create_future()


class Outbound:
    """What goes to the client. An answer that is left unfinished has its connection closed by the server we run in."""

    def __init__(
        self, send: "Callable[[dict[str, object]], Awaitable[None]]", scope: "Mapping[str, object] | None" = None
    ) -> None:
        """`scope` is that of the request, which may tell of a shorter way for bytes of its answer's body: `pour`."""
        self._send = send
        extensions = {} if scope is None else scope.get("extensions")
        found = extensions.get(POURS) if isinstance(extensions, dict) else None
        self.pour: Sink | None = found if callable(found) else None
        self.started = False

    async def start(self, status: int, headers: Headers, *, followed: bool = False) -> None:
        """Send the head of an answer; `followed`: the body is sent right behind it, before anything is waited for."""
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers, FOLLOWED: followed})

    async def body(self, data: bytes, *, ended: bool) -> None:
        """Send a part of its body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": not ended})

    async def whole(self, status: int, body: bytes, headers: Headers) -> None:
        """Send an answer of ours, a JSON text."""
        length = (b"content-length", b"%d" % len(body))
        await self.start(status, [(b"content-type", b"application/json"), length, *headers], followed=True)
        await self.body(body, ended=True)
