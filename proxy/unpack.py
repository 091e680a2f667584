"""A copy of a packed body, unpacked for the record. Refuses to know what stands in it; what goes on stays packed."""

import zlib

from proxy.frames import CAP

_UNPACKED = 4 * CAP
"""Bytes that are unpacked of one body for a look at it."""


class Unpacker:
    """Undoes gzip and deflate on a copy, as far as that is worth it."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        self._room = _UNPACKED
        self._empty = True
        self.broken = False

    @property
    def full(self) -> bool:
        """Whether there is more than is unpacked."""
        return self._room <= 0

    @property
    def whole(self) -> bool:
        """Whether the body was one, and is unpacked to its end; an empty one is."""
        return self._empty or (self._zlib.eof and not self._zlib.unused_data)

    def feed(self, chunk: bytes) -> bytes:
        """What the next bytes unpack to; nothing more once they are broken or too many."""
        self._empty = self._empty and not chunk
        if self.broken or self._room <= 0:
            return b""
        try:
            found = self._zlib.decompress(chunk, self._room)
        except zlib.error:
            self.broken = True
            return b""
        self._room -= len(found)
        return found


def unpacked(data: bytes) -> bytes:
    """A whole body unpacked, or as far as it can be."""
    return Unpacker().feed(data)
