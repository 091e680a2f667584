"""A large answer of which the long texts are not decoded: they are taken out, and what is left is read as it is.

Pure. Refuses to know what is recorded of it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import TypeAlias

from proxy.frames import Line, Message, read_carefully
from proxy.ids import IdKey
from proxy.members import LOOSE, FrameError, Member
from proxy.spans import JSON

LARGE = 1024 * 1024
"""Bytes of a line whose texts are worth to be taken out."""
_WINDOW = 64 * 1024
"""Bytes that are passed over at once, and of a text that are worth to be taken out."""
_PIECE = 1024 * 1024
"""Bytes of a text that are read at once: meanwhile no other thread goes on."""
_ESCAPE = 12
"""Bytes that the longest escapes have."""
_WHOLE = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_BLANKS = re.compile(rb"[ \t\n\r]*")

_Cut: TypeAlias = tuple[int, int]
"""From which byte on of what is left so many are missing before it."""
_read_text: Callable[[str, int, bool], tuple[str, int]] = vars(LOOSE)["parse_string"]


class LargeMessage(Message):
    """A message by what is left of its bytes: its texts are those that crossed the wire, its `fields` what is left."""

    __slots__ = ("_cuts", "_plain", "raw")

    def __init__(
        self,
        raw: bytes,
        cuts: list[_Cut],
        text: str,
        span: tuple[int, int],
        fields: dict[str, JSON],
        identity: tuple[str | None, IdKey | None],
        places: tuple[dict[str, Member], dict[str, Member]],
    ) -> None:
        super().__init__(text, span, fields, identity, LOOSE, places)
        self.raw = raw
        self._cuts = cuts
        self._plain = text.isascii()

    def _at(self, place: int) -> int:
        """Where a character of what is left stands in the bytes."""
        if not self._plain:
            place = len(self.text[:place].encode("utf-8", "surrogateescape"))
        found = bisect_right(self._cuts, place, key=lambda cut: cut[0])
        return place + (self._cuts[found - 1][1] if found else 0)

    @property
    def source(self) -> str:
        """The object's own text."""
        return self.raw[self._at(self.start) : self._at(self.end)].decode("utf-8", "surrogateescape")

    def text_of(self, member: Member) -> str:
        """A member's value as it crossed the wire."""
        return self.raw[self._at(member.start) : self._at(member.end)].decode("utf-8", "surrogateescape")

    def bytes_of(self, name: str) -> memoryview:
        """The value of one of `fields` as it crossed the wire. Raises KeyError without it."""
        member = self.members[name]
        return memoryview(self.raw)[self._at(member.start) : self._at(member.end)]


def read_large(raw: bytes) -> Line | None:
    """A line that is one result, most of which is long text; None for any other, and where it is no JSON."""
    if not raw.startswith(b"{"):
        return None
    found = _without_texts(raw)
    if found is None:
        return None
    left, cuts = found
    try:
        line = read_carefully(left.decode("utf-8", "surrogateescape"), LOOSE)
    except FrameError:
        return None
    (one,) = line.messages
    result = one.fields.get("result")
    if not one.is_answer or "error" in one.fields or not isinstance(result, dict) or "resultType" in result:
        return None
    identity, places = (one.id_text, one.id_key), (one.members, one.params)
    return Line((LargeMessage(raw, cuts, one.text, (one.start, one.end), one.fields, identity, places),), batch=False)


def _without_texts(raw: bytes) -> tuple[bytearray, list[_Cut]] | None:
    """A line with its long texts empty, and what is missing; None where that is less than half, or it is no JSON."""
    left = bytearray()
    cuts: list[_Cut] = []
    at = gone = 0
    size = len(raw)
    while at < size:
        whole = _WHOLE.match(raw, at, min(at + _WINDOW, size))
        to = at if whole is None else whole.end()
        left += raw[at:to]
        if len(left) > size // 2:
            return None
        at = to
        if at == size or raw[at] != ord('"'):
            continue
        end = _end_of_text(raw, at + 1)
        behind = _BLANKS.match(raw, end)
        if end < 0 or behind is None:
            return None
        if end - at < _WINDOW or raw[behind.end() : behind.end() + 1] == b":":
            left += raw[at:end]
        else:
            left += b'""'
            gone += end - at - 2
            cuts.append((len(left) - 1, gone))
        at = end
    return left, cuts


def _end_of_text(raw: bytes, at: int) -> int:
    """Where the text ends in which `at` stands, behind its quote; -1 where it has no end, or an escape is none."""
    while True:
        to = _cut(raw, at)
        text = raw[at:to].decode("utf-8", "surrogateescape")
        try:
            # The reader takes an escape of four digits only where something is behind it.
            _, end = _read_text(text + "x", 0, False)
        except ValueError as error:
            if to == len(raw) or not str(error).startswith("Unterminated string"):
                return -1
            at = to
            continue
        return at + (end if text.isascii() else len(text[:end].encode("utf-8", "surrogateescape")))


def _cut(raw: bytes, at: int) -> int:
    """Up to where a piece of a text goes, so that no escape is cut."""
    to = at + _PIECE
    if to >= len(raw):
        return len(raw)
    slash = raw.rfind(b"\\", to - _ESCAPE, to)
    if slash < 0:
        return to
    run = at + len(raw[at : slash + 1].rstrip(b"\\"))
    return run if run > at else at + (slash + 1 - at) // 2 * 2
