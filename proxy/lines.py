"""Bytes in any chunks into lines, holding no more of one than it is told to.

Only a line feed ends a line: a lone carriage return is JSON's white space, and U+2028 is text.
Refuses to know what a line says.
"""

from enum import Enum
from typing import NamedTuple


class Part(Enum):
    """Which part of a line a piece is: the whole, or of a line past the limit its first, further and last bytes."""

    WHOLE = "whole"
    FIRST = "first"
    MORE = "more"
    LAST = "last"


class Piece(NamedTuple):
    """Bytes of one line, with its line feed where `part` is WHOLE or LAST (not if the stream ended there)."""

    part: Part
    data: bytes


class LineBuffer:
    """Splits a stream into pieces; a line of up to `limit` bytes, its line feed included, comes whole."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: list[bytes] = []
        self._size = 0
        self._flowing = False

    @property
    def flowing(self) -> bool:
        """Whether a part of a line has been given out and its end has not."""
        return self._flowing

    def begins_line(self, chunk: bytes) -> bool:
        """Whether these bytes begin a line, and each line that ends in them would come whole."""
        return not self._size and not self._flowing and len(chunk) <= self.limit

    def is_whole(self, chunk: bytes) -> bool:
        """Whether `feed` would give back these bytes as one whole line, and hold nothing."""
        return 0 < chunk.find(b"\n") + 1 == len(chunk) <= self.limit and not self._size and not self._flowing

    def feed(self, chunk: bytes) -> list[Piece]:
        """The pieces that `chunk` completes; what is left of it is held."""
        if self.is_whole(chunk):
            return [Piece(Part.WHOLE, chunk)]
        start = 0
        pieces: list[Piece] = []
        while (end := chunk.find(b"\n", start) + 1) > 0:
            data = chunk[start:end]
            start = end
            if self._flowing:
                pieces.append(Piece(Part.LAST, data))
                self._flowing = False
                continue
            if self._held:
                self._held.append(data)
                data = b"".join(self._held)
                self._held.clear()
                self._size = 0
            if len(data) <= self.limit:
                pieces.append(Piece(Part.WHOLE, data))
            else:
                pieces.append(Piece(Part.FIRST, data[: self.limit]))
                pieces.append(Piece(Part.LAST, data[self.limit :]))
        rest = chunk[start:]
        if not rest:
            return pieces
        if self._flowing:
            pieces.append(Piece(Part.MORE, rest))
            return pieces
        self._held.append(rest)
        self._size += len(rest)
        if self._size > self.limit:
            pieces += self._overflow()
        return pieces

    def _overflow(self) -> list[Piece]:
        data = b"".join(self._held)
        self._held.clear()
        self._size = 0
        self._flowing = True
        return [Piece(Part.FIRST, data[: self.limit]), Piece(Part.MORE, data[self.limit :])]

    def end(self) -> list[Piece]:
        """What an ending stream leaves: its unterminated last line, if any."""
        if self._flowing:
            self._flowing = False
            return [Piece(Part.LAST, b"")]
        data = b"".join(self._held)
        self._held.clear()
        self._size = 0
        return [Piece(Part.WHOLE, data)] if data else []
