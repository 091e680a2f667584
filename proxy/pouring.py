"""A long body on the shortest way from the server's socket to the client's: each piece of it is looked at, and sent,
where it was received. Refuses to know what is in it, and whose sockets they are.
"""

import asyncio
import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

from proxy.http1 import BodyReader

Look: TypeAlias = Callable[[bytes | bytearray, int, int], None]
"""Is shown the bytes of a body between two places of a buffer, which has others soon."""
Sink: TypeAlias = Callable[[bytes | memoryview], "asyncio.Future[None] | None"]
"""Sends bytes of a body before it returns, or copies them; the future is done when the client has read enough."""

SIZE = 512 * 1024
"""Bytes that are received at once."""
BEGUN = 64 * 1024
"""Bytes of a body behind which it is worth to be poured."""
_PAGE = 4096
_WHOLE = 16 * 1024
"""Bytes of a chunk that are worth a system call."""


class Room:
    """Where bytes are received, one after another: `view` is that of `data`."""

    def __init__(self) -> None:
        self.data = _paged(SIZE)
        self.view = memoryview(self.data)


class _Rooms(threading.local):
    room: "Room | None" = None


_ROOMS = _Rooms()


def room() -> Room:
    """That of this thread, in which nothing stays until another event."""
    found = _ROOMS.room
    if found is None:
        found = _ROOMS.room = Room()
    return found


def _paged(size: int) -> bytearray:
    """A buffer at the beginning of a page: at other places some processors copy at half the speed.

    An allocator that puts large blocks into pages of their own begins with a head of its own. A bytearray whose first
    bytes are deleted stays where it is.
    """
    data = bytearray(size + _PAGE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(data)) % _PAGE
    del data[: (_PAGE - begin) % _PAGE]
    del data[size:]
    return data


def unsent(parts: Sequence[bytes | memoryview], sent: int) -> bytes:
    """What is left of some parts of which so many bytes are sent, as a copy."""
    left: list[bytes | memoryview] = []
    for part in parts:
        if sent < len(part):
            left.append(part[sent:])
        sent = max(sent - len(part), 0)
    return b"".join(left)


class Pour:
    """The rest of one body on its way. `full` is pending while the client does not read.

    `last` are the bytes with which the body ends. They are not sent: who has them all may go, and nobody is cut off
    then in whose answer nothing was missing.
    """

    def __init__(self, body: BodyReader, look: Look, sink: Sink) -> None:
        self.body = body
        self.full: asyncio.Future[None] | None = None
        self.last = b""
        self._look = look
        self._sink = sink

    def whole(self, data: bytes) -> None:
        """Bytes that came before. Raises FramingError."""
        found = self.body.feed(data)
        if self.body.ended:
            self.last = found
        elif found:
            self._look(found, 0, len(found))
            self.full = self._sink(found)

    def take(self, here: Room, count: int) -> None:
        """The next bytes, which have been received there. Raises FramingError."""
        body, view, at = self.body, here.view, 0
        while at < count and not body.ended:
            if body.chunked and (body.left or 0) < min(_WHOLE, count - at):
                to = self._framing(here.data, at, count)
                self.whole(bytes(view[at:to]))
                at = to
                continue
            to = at + body.skim(count - at)
            if body.ended:
                self.last = bytes(view[at:to])
            else:
                self._look(here.data, at, to)
                self.full = self._sink(view[at:to])
            at = to
        if at < count:
            body.rest += bytes(view[at:count])

    def _framing(self, data: bytearray, at: int, count: int) -> int:
        """Up to where bytes are taken that are not known to be body: a line where that is all before a chunk."""
        if self.body.left:
            return count
        end = data.find(b"\r\n", at, count)
        if end == at:
            end = data.find(b"\r\n", at + 2, count)
        return count if end < 0 else end + 2
