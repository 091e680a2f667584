"""Server-sent events in any chunks: which messages stand in a stream and where, and one with another message in it.

It follows the WHATWG HTML standard, section 9.2.6. Refuses to know JSON-RPC, and what becomes of an event.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from proxy.lines import Part, Piece

_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_LONGEST_FIELD = 65536
"""Bytes of a line that are held while it is not known to be data; the rest of a longer one says nothing to us."""


class Event(NamedTuple):
    """Data of one event: whole, or past the limit in pieces. `start` and `end` are where it stands in the stream.

    `end` is where this piece was known, behind the blank line where the event is over. `name` and `id` are "" where
    the event has none. `piece.data` of a block without data is empty, and `has_data` false.
    """

    piece: Piece
    name: str
    id: str
    start: int
    end: int
    has_data: bool


def _line_ends(chunk: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Where the ends of lines begin and end, from `at` on. A regular expression would take ten times as long."""
    feed, back = chunk.find(b"\n", at), chunk.find(b"\r", at)
    while feed >= 0 or back >= 0:
        if back < 0 or 0 <= feed < back:
            start, at = feed, feed + 1
        else:
            start, at = back, back + (2 if feed == back + 1 else 1)
        yield start, at
        if 0 <= feed < at:
            feed = chunk.find(b"\n", at)
        if 0 <= back < at:
            back = chunk.find(b"\r", at)


class EventReader:
    """Splits a stream of events; data of up to `limit` bytes comes whole."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.quiet = True
        """Whether all that came since the last block are comments, which nobody has to wait for."""
        self.at = 0
        """Bytes of the stream that were read."""
        self.line_start = 0
        """Where the line that is being read begins."""
        self.retry: int | None = None
        """Milliseconds that the stream wants waited for before it is taken up again."""
        self._line = bytearray()
        self._in_data = False
        self._skip_feed = False
        self._reset(0)

    def _reset(self, start: int) -> None:
        self._start = start
        self._name = ""
        self._id = ""
        self._data: list[bytes] = []
        self._lines = 0
        self._size = 0
        self._flowing = False
        self.quiet = True

    def feed(self, chunk: bytes) -> list[Event]:
        """The events, and pieces of long ones, that `chunk` completes."""
        found: list[Event] = []
        at = 0
        if self._skip_feed and chunk:
            # A carriage return ended the line before, and nobody waited to see whether a line feed belongs to it.
            self._skip_feed = False
            if chunk[:1] == b"\n":
                at = 1
                self.line_start += 1
                if self._start == self.line_start - 1:
                    self._start += 1
        base = self.at
        for start, end in _line_ends(chunk, at):
            self.at = base + start
            self._part(chunk[at:start], found)
            self.at = base + end
            self._end_of_line(found)
            self.line_start = self.at
            at = end
        self._skip_feed = self._skip_feed or chunk.endswith(b"\r")
        self.at = base + len(chunk)
        self._part(chunk[at:], found)
        return found

    def _part(self, text: bytes, found: list[Event]) -> None:
        """Bytes of a line, without its end."""
        if not text:
            return
        if self._in_data:
            self._more_data(text, found)
            return
        if len(self._line) < _LONGEST_FIELD:
            self._line += text
            if self.line_start == 0 and self._line.startswith(_BOM):
                del self._line[:3]
        # Data is looked at as it comes: a line of it may be longer than anything.
        if self._line.startswith(b"data:") and len(self._line) > 5:
            rest = bytes(self._line[5:])
            self._line.clear()
            self._in_data = True
            self._begin_data()
            self._more_data(rest.removeprefix(b" "), found)

    def _begin_data(self) -> None:
        self.quiet = False
        self._lines += 1
        if self._lines > 1:
            self._data.append(b"\n")
            self._size += 1

    def _more_data(self, text: bytes, found: list[Event]) -> None:
        if not text:
            return
        self._data.append(text)
        self._size += len(text)
        if self._flowing:
            found.append(self._event(Part.MORE))
        elif self._size > self.limit:
            self._flowing = True
            found.append(self._event(Part.FIRST))

    def _event(self, part: Part) -> Event:
        data = b"".join(self._data)
        self._data.clear()
        return Event(Piece(part, data), self._name, self._id, self._start, self.at, self._lines > 0)

    def _end_of_line(self, found: list[Event]) -> None:
        line = bytes(self._line)
        self._line.clear()
        if self._in_data:
            self._in_data = False
            return
        if not line:
            found.append(self._event(Part.LAST if self._flowing else Part.WHOLE))
            self._reset(self.at)
            return
        field, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        match field:
            case b"":
                return
            case b"data":
                self._begin_data()
            case b"event":
                self._name = text
            case b"id":
                self._id = text
            case b"retry" if text.isdecimal() and len(text) < 10:
                self.retry = int(text)
        self.quiet = False


def with_data(block: bytes, data: bytes) -> bytes:
    """The block of an event with other data, every other line as it is; `data` b"" takes its data out.

    What is left of an event without data is no event, but its id still counts.
    """
    found: list[bytes] = []
    at = 0
    placed = not data
    end = b"\n"
    while (match := _END.search(block, at)) is not None:
        line, end = block[at : match.start()], match.group()
        is_data = line.removeprefix(_BOM).partition(b":")[0] == b"data"
        if not placed and (is_data or not line):
            found += (b"data: ", data, end)
            placed = True
        if not is_data:
            found += (line, end)
        at = match.end()
    return b"".join(found) + block[at:]


def new_event(name: str, event_id: str, data: bytes) -> bytes:
    """An event of our own; `data` has no line end in it."""
    head = (f"event: {name}\n" if name else "") + (f"id: {event_id}\n" if event_id else "")
    return head.encode() + b"data: " + data + b"\n\n"
