"""What a server answers over HTTP, looked at on its way: JSON bodies, and streams of events; edited if policy says so.

Refuses to know sockets and headers: it is given the bytes of a body and says which bytes go on.
"""

import json
import re
from collections.abc import Callable
from typing import Protocol

from proxy.connection import Step
from proxy.frames import CAP
from proxy.ledger import Strand
from proxy.lines import Part, Piece
from proxy.sse import Event, EventReader, new_event, with_data
from proxy.unpack import Unpacker

_SPARE = 65536
_LARGE = 1024 * 1024
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

    def feed(self, chunk: bytes, *, ended: bool) -> bytes:
        """All of it."""
        return chunk

    async def settle(self) -> None:
        """Nothing is owed a record."""

    def waits(self) -> int:
        """Nothing is owed a record."""
        return 0

    def catch_up(self) -> None:
        """Nothing is owed a record."""


def _is_message(data: bytes | bytearray) -> bool:
    return data[:64].lstrip(b" \t\r\n\xef\xbb\xbf\xfe\xff\0")[:1] in (b"{", b"[")


def _messages(forward: bytes) -> list[bytes]:
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

    def __init__(self, strand: Strand, unpacker: Unpacker | None, *, holds: bool, sure: bool) -> None:
        """`sure`: it says that it is JSON; else it is looked at only where it looks like it."""
        self.holds = holds
        self.wait = 0.0
        self.silent = False
        self.back: list[bytes] = []
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
        if self._size > _LARGE:
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
        self._kept += chunk if self._unpacker is None else self._unpacker.feed(chunk)
        step = self._flow(ended=ended)
        if step is None:
            return b"" if self.holds else chunk
        if step.back:
            self.back += _messages(step.back)
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
        limit = CAP if self.holds else _LARGE
        if len(self._kept) > limit and (self._sure or _is_message(self._kept)):
            self._flowing = True
            self._size = limit + 1
            first = bytes(self._kept[:limit])
            del self._kept[:limit]
            self._strand.take(Piece(Part.FIRST, first))
            return self._flow(ended=ended)
        if len(self._kept) > CAP:
            del self._kept[CAP:]  # a download, of which the beginning says that it is nothing of ours
        if not ended:
            return None
        self._whole = bytes(self._kept)
        self._size = len(self._whole)
        self._kept.clear()
        if not (self._sure or _is_message(self._whole)):
            return Step([], self._whole)
        if self.holds:
            return self._strand.take(Piece(Part.WHOLE, self._whole))
        return self._strand.take_all([Piece(Part.WHOLE, self._whole)])[0]

    _whole = b""


class Stream:
    """A body that is a stream of events. `edits` says at any time whether policy edits them."""

    def __init__(
        self,
        strand: Callable[[], Strand],
        unpacker: Unpacker | None,
        edits: Callable[[], bool],
        *,
        again: Callable[[str], bool],
        endpoint: "Callable[[bytes], tuple[Strand, bytes]] | None" = None,
    ) -> None:
        """`strand` is asked for once, when a message comes. `again`: whether an event with this id was seen before.

        `endpoint` is told the address in the first event of a stream of 2024-11-05; it gives the strand that the stream
        belongs to then, and the address as the client gets it. None where the stream can be none.
        """
        self.holds = False
        self.wait = 0.0
        self.silent = False
        self.back: list[bytes] = []
        self._find_strand = strand
        self._strand: Strand | None = None
        self._unpacker = unpacker
        self._edits = edits
        self._again = again
        self._endpoint = endpoint
        self._reader = EventReader(CAP)
        self._held = bytearray()
        self._base = 0
        self._repeated = False
        self._large = False
        self._cutting = False
        """Whether the event that flows in is kept back."""

    def waits(self) -> int:
        """Others may come behind these events, in whose order they are recorded."""
        return 0

    def catch_up(self) -> None:
        """Nothing waits."""

    async def settle(self) -> None:
        """Record the answers among the events; a large one beside what else is under way."""
        large, self._large = self._large, False
        if self._strand is None:
            return
        if large:
            await self._strand.settle_beside()
        else:
            self._strand.settle()

    def feed(self, chunk: bytes, *, ended: bool) -> bytes:
        """What of it goes on: all, or up to the last event that is whole where events may be edited."""
        if self._unpacker is not None:
            self._observe(self._unpacker.feed(chunk), ended=ended)
            return chunk
        self._held += chunk
        out: list[bytes] = []
        for event in self._reader.feed(chunk):
            self._event(event, out)
        if ended:
            # What no blank line ends is no event, but some readers take it for one.
            rest = bytes(self._held)
            out_of_rest: list[bytes] = []
            for event in self._reader.feed(b"\n\n"):
                self._event(event, out_of_rest)
            whole = b"".join(out_of_rest)
            out.append(rest if whole in {rest, rest + b"\n", rest + b"\n\n"} or not rest else whole)
            self._held.clear()
        elif self._endpoint is None and not self._edits():
            self._give(self._reader.at, out)
        elif self._reader.quiet:
            self._give(self._reader.line_start, out)
        elif len(self._held) > CAP + _SPARE:
            raise AnswerError("an event that may have to be edited is too long")
        return b"".join(out)

    def _observe(self, copy: bytes, *, ended: bool) -> None:
        for event in self._reader.feed(copy + (b"\n\n" if ended else b"")):
            step = self._step(event)
            if step is not None and step.forward != event.piece.data:
                raise AnswerError("an event that had to be kept back is packed")

    def _give(self, to: int, out: list[bytes]) -> None:
        count = to - self._base
        if count > 0:
            out.append(bytes(self._held[:count]))
            self._drop(to)

    def _drop(self, to: int) -> None:
        del self._held[: max(to - self._base, 0)]
        self._base = max(to, self._base)

    def _step(self, event: Event) -> Step | None:
        """What an event leads to; None where it holds no message."""
        piece = event.piece
        if piece.part in {Part.WHOLE, Part.FIRST}:
            self._repeated = bool(event.id) and event.has_data and self._again(event.id)
            if not event.has_data or not (event.name in {"", "message"} or _is_message(piece.data)):
                return None
            if self._repeated and not self._edits():
                return None
        elif self._repeated and not self._edits():
            return None
        if self._strand is None:
            self._strand = self._find_strand()
        self._large = self._large or len(piece.data) > _LARGE
        return self._strand.take(piece) if self._edits() else self._strand.take_all([piece])[0]

    def _event(self, event: Event, out: list[bytes]) -> None:
        piece = event.piece
        self._give(event.start, out)
        begun = event.start < self._base
        if self._endpoint is not None and event.has_data:
            told = self._endpoint
            self._endpoint = None
            if event.name == "endpoint" and piece.part is Part.WHOLE:
                self._strand, address = told(piece.data)
                if address != piece.data and not begun:
                    out.append(with_data(bytes(self._held[: event.end - self._base]), address))
                    self._drop(event.end)
                    return
                self._give(event.end, out)
                return
        step = self._step(event)
        if step is not None and step.back:
            self.back += _messages(step.back)
        if step is not None:
            self.wait, self.silent = max(self.wait, step.wait), self.silent or bool(step.kept)
        if step is None or step.forward == piece.data:
            self._give(event.end, out)
            return
        if piece.part is Part.FIRST:
            self._cutting = not begun
        if (begun and piece.part is Part.WHOLE) or (piece.part is not Part.WHOLE and not self._cutting):
            raise AnswerError("an event had to be kept back when a part of it was on its way")
        if piece.part is Part.WHOLE:
            messages = _messages(step.forward) if step.forward.strip() else []
            out.append(with_data(bytes(self._held[: event.end - self._base]), messages[0] if messages else b""))
            out += [new_event(event.name, "", message) for message in messages[1:]]
        elif piece.part is Part.LAST:
            out += [new_event(event.name, event.id, message) for message in _messages(step.forward)]
        self._drop(event.end)
