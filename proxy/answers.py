"""What a server answers over HTTP in one JSON text, looked at on its way; edited if policy says so.

Refuses to know sockets and headers: it is given the bytes of a body and says which bytes go on.
"""

import json
import re
from typing import Protocol

from proxy.connection import Step
from proxy.frames import CAP
from proxy.lines import Part, Piece
from proxy.longlines import BRIEF
from proxy.pouring import BEGUN, Look
from proxy.strand import Strand
from proxy.unpack import Unpacker

LARGE = 1024 * 1024
"""Bytes of an answer whose record takes longer than an event of another stream may wait."""


_SMALL = 64 * 1024
"""Bytes of an answer whose record may wait."""
_TELLING = re.compile(rb"\\u|input_required")
"""What an answer that the next round of its call is tied to has in it, however it is spelled."""


class AnswerError(ValueError):
    """An answer that must not go on, of which a part has gone on already."""


class Answer(Protocol):
    """A body on its way. `holds`: nothing of it goes on before its end, since it may be edited.

    `wait` is how many seconds late what is given next is to be; `silent` is set where its answer is withheld for good.
    """

    holds: bool
    wait: float
    silent: bool
    back: list[bytes]
    """Messages of ours to the server, which answer what it may not ask of the client."""
    look: Look | None
    """Who only has to see what comes from now on, which goes on whatever it says: then nothing but the end is fed."""

    def feed(self, chunk: bytes, *, ended: bool) -> bytes:
        """The next bytes of the body; what goes on to the client. Raises AnswerError."""
        ...

    async def settle(self) -> None:
        """Record what was seen, once it has been sent on: no client waits for the record of an answer."""
        ...

    def waits(self) -> int:
        """About how many bytes are to be recorded of an answer of which the record may wait; 0 where it may not."""
        ...

    def catch_up(self) -> None:
        """Record that."""
        ...


class Unwatched:
    """A body that is nothing of ours."""

    wait = 0.0
    silent = False

    def __init__(self) -> None:
        self.holds = False
        self.back: list[bytes] = []
        self.look: Look | None = None
        self._size = 0

    def feed(self, chunk: bytes, *, ended: bool) -> bytes:
        """All of it."""
        self._size += len(chunk)
        if self._size > BEGUN:
            self.look = _unseen
        return chunk

    async def settle(self) -> None:
        """Nothing is owed a record."""

    def waits(self) -> int:
        """Nothing is owed a record."""
        return 0

    def catch_up(self) -> None:
        """Nothing is owed a record."""


def _unseen(data: bytes | bytearray, start: int, end: int) -> None:
    """Nothing is looked at."""


def is_message(data: bytes | bytearray) -> bool:
    """Whether a text begins as a message of JSON-RPC does, or an array of such."""
    return data[:64].lstrip(b" \t\r\n\xef\xbb\xbf\xfe\xff\0")[:1] in (b"{", b"[")


def messages(forward: bytes) -> list[bytes]:
    """The messages that a step sends on, one by one: a line each, or one that is written over several lines."""
    text = forward.strip()
    lines = text.splitlines() if b"\r" not in text else text.split(b"\n")
    if len(lines) > 1 and not all(_is_json(line) for line in lines):
        return [b"\ndata: ".join(lines)]
    return lines


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


class Body:
    """A body that is one JSON text, or nothing of ours."""

    def __init__(
        self, strand: Strand, unpacker: Unpacker | None, *, holds: bool, sure: bool, size: int | None = None
    ) -> None:
        """`sure`: it says that it is JSON; else it is looked at only where it looks like it. `size`: bytes to come."""
        strand.brief = size is not None and size > CAP and unpacker is None and not holds
        self.holds = holds
        self.wait = 0.0
        self.silent = False
        self.back: list[bytes] = []
        self.look: Look | None = None
        self._strand = strand
        self._unpacker = unpacker
        self._sure = sure
        self._kept = bytearray()
        self._flowing = False
        self._last: Piece | None = None
        self._size = 0

    async def settle(self) -> None:
        """Record a whole answer; a large one beside what else is under way."""
        last, self._last = self._last, None
        if last is not None:
            self._strand.take_all([last])
        if not self._strand.session.owes:
            return
        if self._size > LARGE:
            await self._strand.settle_beside()
        else:
            self._strand.settle()

    def waits(self) -> int:
        """A small answer may wait that tells nothing which the next request may need."""
        if self.holds or self._last is not None or self._size > _SMALL or _TELLING.search(self._whole):
            return 0
        return self._size

    def catch_up(self) -> None:
        """Record it."""
        self._strand.settle()

    def feed(self, chunk: bytes, *, ended: bool) -> bytes:
        """All of it, or all at its end where it is held."""
        copy = chunk if self._unpacker is None else self._unpacker.feed(chunk)
        if self._flowing and not self.holds:
            piece = Piece(Part.LAST if ended else Part.MORE, copy)
            if ended:
                # All before it has gone on, so its end does not wait either.
                self._last = piece
            else:
                self._strand.take(piece)
            return chunk
        self._kept += copy
        step = self._flow(ended=ended)
        if step is None:
            return b"" if self.holds else chunk
        if step.back:
            self.back += messages(step.back)
        self.wait, self.silent = step.wait, bool(step.kept)
        if self.holds:
            return step.forward
        if ended and not self._flowing and step.forward != self._whole:
            raise AnswerError("an answer had to be kept back when it was on its way")
        return chunk

    def _flow(self, *, ended: bool) -> Step | None:
        if self._flowing:
            piece = Piece(Part.LAST if ended else Part.MORE, bytes(self._kept))
            self._kept.clear()
            if ended and not self.holds:
                # All before it has gone on, so its end does not wait either.
                self._last = piece
                return None
            step = self._strand.take(piece)
            return step if ended else None
        limit = CAP if self.holds else BRIEF if self._strand.brief else LARGE
        if len(self._kept) > limit and (self._sure or is_message(self._kept)):
            self._flowing = True
            self._size = limit + 1
            first = bytes(self._kept[:limit])
            del self._kept[:limit]
            self._strand.take(Piece(Part.FIRST, first))
            del first
            if not self.holds and self._unpacker is None:
                self.look = self._strand.look
            return self._flow(ended=ended)
        if len(self._kept) > CAP:
            del self._kept[CAP:]  # a download, of which the beginning says that it is nothing of ours
        if not ended:
            return None
        self._whole = bytes(self._kept)
        self._size = len(self._whole)
        self._kept.clear()
        if not (self._sure or is_message(self._whole)):
            return Step([], self._whole)
        if self.holds:
            return self._strand.take(Piece(Part.WHOLE, self._whole))
        return self._strand.take_all([Piece(Part.WHOLE, self._whole)])[0]

    _whole = b""
