"""The body of an answer that a server packed although it was asked for plain. Refuses to know what stands in it."""

from proxy.httpwords import Headers, values
from proxy.serverline import ServerLine, UpstreamError
from proxy.unpack import Unpacker

_PACKED = frozenset({b"gzip", b"x-gzip", b"deflate"})


class EncodingError(UpstreamError):
    """An encoding that cannot be undone; the message says which, or why."""


class PlainBody:
    """The rest of an answer, unpacked."""

    def __init__(self, line: ServerLine, headers: Headers) -> None:
        """`headers` are the answer's."""
        self._line = line
        told = [part.strip().lower() for one in values(headers, b"content-encoding") for part in one.split(b",")]
        self._encodings = [part for part in told if part not in {b"", b"identity"}]
        self._unpacker = Unpacker() if self._encodings else None

    async def body(self) -> tuple[bytes, bool]:
        """The next bytes, and whether they are the last. Raises UpstreamError."""
        if self._encodings and (len(self._encodings) > 1 or self._encodings[0] not in _PACKED):
            named = b", ".join(self._encodings).decode("latin-1")[:40]
            raise EncodingError(f"its answer is encoded as {named}, which is not read, and it was asked for plain")
        data, over = await self._line.body()
        if self._unpacker is None:
            return data, over
        found = self._unpacker.feed(data)
        if self._unpacker.broken or self._unpacker.full or (over and self._unpacker.problem):
            raise EncodingError("its answer is packed, and cannot be unpacked or is too long")
        return found, over
