"""Posts of the proxy's own, which answer a server over HTTP in the place of its client.

Refuses to know what is refused, and why.
"""

import asyncio
from contextlib import suppress

from proxy.http1 import RequestHead
from proxy.httpwords import LAST_EVENT, Head, to_upstream
from proxy.serverline import Server, UpstreamError

_NOT_COPIED = frozenset(
    {
        *(b"content-length", b"content-type", b"content-encoding", b"transfer-encoding", b"accept"),
        *(LAST_EVENT, b"mcp-method", b"mcp-name"),
    }
)
"""What speaks of the body that the client sent, and of the stream that it wanted."""


class PostBack:
    """Such posts to one server. What comes of one is nobody's business: the server has been told, or is not there."""

    def __init__(self, upstream: Server) -> None:
        self._upstream = upstream
        self._posts: set[asyncio.Task[None]] = set()

    def send(self, head: Head, target: bytes, message: bytes) -> None:
        """Post a message to `target`, as the client does that sent `head`."""
        post = asyncio.create_task(self._post(head, target, message))
        self._posts.add(post)
        post.add_done_callback(self._posts.discard)

    async def _post(self, head: Head, target: bytes, message: bytes) -> None:
        headers = [(key, one) for key, one in head.headers if key not in _NOT_COPIED]
        headers = to_upstream(headers, self._upstream.origin, plain=False)
        headers += [
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"),
            (b"content-length", b"%d" % len(message)),
        ]
        with suppress(UpstreamError):
            line = await self._upstream.line()
            try:
                await line.ask(RequestHead(b"POST", target, headers), message)
                await line.head()
                while not (await line.body())[1]:
                    pass
            finally:
                self._upstream.give_back(line)
