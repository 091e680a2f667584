"""A server over stdio as an asyncio program has it: whole lines in, whole lines out, and the news of its end.

Refuses to know what a line says.
"""

import asyncio
from collections.abc import Callable
from io import FileIO

from proxy.child import Child
from proxy.frames import CAP
from proxy.lines import LineBuffer, Part, Piece
from proxy.longlines import LongMessage

_WAITING = 1024 * 1024
"""Bytes that may wait for a server that does not read before whoever has more for it waits."""


class _Input(asyncio.BaseProtocol):
    """The server's stdin: whether it takes more."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.ready.set()

    def pause_writing(self) -> None:
        self.ready.clear()

    def resume_writing(self) -> None:
        self.ready.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ready.set()


class _Output(asyncio.Protocol):
    """The server's stdout, in pieces of lines."""

    def __init__(self, taken: Callable[[list[Piece]], None], ended: Callable[[], None]) -> None:
        self._taken = taken
        self._ended = ended
        self._lines = LineBuffer(CAP)

    def data_received(self, data: bytes) -> None:
        self._taken(self._lines.feed(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self._taken(self._lines.end())
        self._ended()


class Hosted:
    """One server. `line` gets each line up to 16 MiB, `long` what is kept of a longer one; `ended` is called once."""

    def __init__(
        self,
        child: Child,
        line: Callable[[bytes], None],
        long: Callable[[LongMessage], None],
        ended: Callable[[], None],
    ) -> None:
        self.child = child
        self.over = False
        self._line = line
        self._long_line = long
        self._told_end = ended
        self._long: LongMessage | None = None
        self._input = _Input()
        self._write: asyncio.WriteTransport | None = None
        self._read: asyncio.ReadTransport | None = None

    async def open(self) -> "Hosted":
        """Connect its pipes."""
        loop = asyncio.get_running_loop()
        to, of = FileIO(self.child.stdin, "w"), FileIO(self.child.stdout, "r")
        self._write, _ = await loop.connect_write_pipe(lambda: self._input, to)
        self._write.set_write_buffer_limits(high=_WAITING)
        self._read, _ = await loop.connect_read_pipe(lambda: _Output(self._pieces, self._ended), of)
        return self

    def put(self, line: bytes) -> None:
        """Send it a line."""
        if self._write is not None and not self._write.is_closing():
            self._write.write(line)

    async def room(self) -> None:
        """Wait until it takes more."""
        await self._input.ready.wait()

    def close(self) -> None:
        """Close its input; what it still says is taken until it ends."""
        if self._write is not None and not self._write.is_closing():
            self._write.close()

    def drop(self) -> None:
        """Close both of its pipes at once."""
        for one in (self._write, self._read):
            if isinstance(one, asyncio.WriteTransport):
                one.abort()
            elif one is not None:
                one.close()

    def _pieces(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            if piece.part is Part.WHOLE:
                self._line(piece.data)
            elif piece.part is Part.FIRST:
                self._long = LongMessage(piece.data, flows=False)
            elif self._long is not None:
                self._long.take(piece.data)
                if piece.part is Part.LAST:
                    self._long_line(self._long)
                    self._long = None

    def _ended(self) -> None:
        if not self.over:
            self.over = True
            self._told_end()
