"""A server as an edge over HTTP has it: a place for one exchange after another. Refuses to know how it is reached."""

from collections.abc import AsyncIterable
from typing import Protocol

from proxy.http1 import AnswerHead, RequestHead
from proxy.httpwords import Origin
from proxy.pouring import Look, Sink


class UpstreamError(ValueError):
    """The server could not be reached, or what it sent is no HTTP; the message says which."""


class ServerLine(Protocol):
    """One exchange with a server, as an edge over HTTP has it. Each of these but `abort` may raise UpstreamError."""

    async def ask(self, head: RequestHead, body: "bytes | AsyncIterable[bytes]") -> None:
        """Send a request whole."""
        ...

    async def head(self) -> AnswerHead:
        """The head of the answer."""
        ...

    async def body(self) -> tuple[bytes, bool]:
        """The next bytes of its body, and whether it ends with them."""
        ...

    async def pour(self, look: Look, sink: Sink) -> None:
        """Have the rest of the body go on as it comes, as far as that can be had; `body` has what is left of it."""
        ...

    def came(self) -> bool:
        """Whether more of the body is here, for which nobody has to wait; False where that is not known."""
        ...

    def abort(self) -> None:
        """Give it up."""
        ...


async def next_of(line: ServerLine, look: Look | None, sink: Sink | None) -> tuple[bytes, bool]:
    """The next bytes of a body, and whether it ends with them, behind what could go the shorter way. As `body`."""
    if look is not None and sink is not None:
        await line.pour(look, sink)
    return await line.body()


class Server(Protocol):
    """A server at one origin, as an edge over HTTP has it."""

    origin: Origin

    async def line(self) -> ServerLine:
        """A place for one exchange. Raises UpstreamError."""
        ...

    def give_back(self, line: ServerLine) -> None:
        """An exchange is over, or given up."""
        ...

    def close(self) -> None:
        """The edge stops."""
        ...
