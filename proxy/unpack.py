"""A copy of a packed body, unpacked for the record. Refuses to know what stands in it; what goes on stays packed."""

import zlib

from proxy.frames import CAP

_UNPACKED = 4 * CAP
"""Bytes that are unpacked of one body for a look at it."""
_EITHER, _RAW = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS
_HEADER = 2
"""Bytes that tell whether deflate has the header of zlib (RFC 1950); some send it without, and clients take that."""
_MAGIC = b"\x1f\x8b"


class Unpacker:
    """Undoes gzip, of several members too (RFC 1952), and deflate on a copy, as far as that is worth it."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=_EITHER)
        self._room = _UNPACKED
        self._begun = b""
        self._members = 0
        self._behind = b""
        self._gzip = False
        self.broken = False

    @property
    def full(self) -> bool:
        """Whether there is more than is unpacked."""
        return self._room <= 0

    @property
    def whole(self) -> bool:
        """Whether the body was one, and is unpacked to its end; an empty one is."""
        return not self._begun or (self._members > 0 and self._zlib.eof and not self._behind)

    @property
    def problem(self) -> str | None:
        """Why of a body that is over a client may have read something else, in words; None where all read this."""
        if self.full:
            return "unpacks to more than is looked at"
        if self.broken or not self.whole:
            return "cannot be unpacked to its end"
        return (
            "it is packed in several members, of which some clients read the first alone" if self._members > 1 else None
        )

    def feed(self, chunk: bytes) -> bytes:
        """What the next bytes unpack to; nothing more once they are broken or too many."""
        if self.broken or self._room <= 0 or not chunk:
            return b""
        if len(self._begun) < _HEADER:
            chunk = self._begun + chunk
            self._begun = chunk[:_HEADER]
            if len(chunk) < _HEADER:
                return b""
            self._gzip = chunk.startswith(_MAGIC)
            self._zlib = zlib.decompressobj(wbits=_EITHER if self._gzip or _has_header(chunk) else _RAW)
        found: list[bytes] = []
        try:
            self._unpack(chunk, found)
        except zlib.error:
            self.broken = True
        return found[0] if len(found) == 1 else b"".join(found)

    def _unpack(self, data: bytes, found: list[bytes]) -> None:
        while data and self._room > 0:
            if self._zlib.eof:
                data = self._behind + data
                self._behind = b""
                if not self._gzip or not data.startswith(_MAGIC[: len(data)]):
                    self._behind = data[:1]
                    self.broken = True
                    return
                if len(data) < _HEADER:
                    self._behind = data
                    return
                self._zlib = zlib.decompressobj(wbits=_EITHER)
            piece = self._zlib.decompress(data, self._room)
            if piece:
                found.append(piece)
                self._room -= len(piece)
            if self._zlib.eof:
                self._members += 1
            data = self._zlib.unused_data


def _has_header(data: bytes) -> bool:
    return data[0] & 0x0F == zlib.DEFLATED and (data[0] << 8 | data[1]) % 31 == 0


def unpacked(data: bytes) -> bytes:
    """A whole body unpacked, or as far as it can be."""
    return Unpacker().feed(data)
