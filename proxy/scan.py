"""A scanner that finds id, method and name of messages in text that comes in chunks and is not kept.

It is for lines past the cap and for lines that no parser reads whole; it takes any bytes and never fails.
Refuses to know sessions and policy, and decides nothing.
"""

import json
import re
from dataclasses import dataclass, field
from itertools import accumulate

from proxy.keys import fold
from proxy.spans import JSON

_WANTED = {
    ("id",): "id",
    ("method",): "method",
    ("params", "name"): "name",
    ("params", "uri"): "uri",
    ("result", "iserror"): "is_error",
    ("error", "code"): "code",
}
"""Paths of folded keys, and what their values are called."""
_STRUCTURE = re.compile(rb'["{}\[\],:]')
_NESTING = re.compile(rb'["{}\[\]]')
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_WHOLE = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_STEPS = {ord(mark): 1 if mark in "{[" else -1 for mark in "{}[]"}
_STRIDE = 4096
"""Bytes that are passed over at once deep inside a message, where only the nesting counts."""
_LONGEST = 65536
"""Bytes of one wanted value that are kept; a longer one is as absent."""
_MOST = 1024
"""Messages of one line that are told apart; what follows is taken for a part of the last one."""


@dataclass(slots=True)
class Envelope:
    """What was found of one message: `found` has the text of each wanted value, the last of repeated ones.

    Keys count as they fold; `repeated` names the wanted values that came more than once, or an id under a folded key.
    """

    found: dict[str, bytes] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)

    def text(self, name: str) -> str | None:
        """A wanted value where it is text, decoded."""
        value = decoded(self.found.get(name, b""))
        return value if isinstance(value, str) else None

    @property
    def target(self) -> str | None:
        """The tool's or prompt's name, or the resource's uri."""
        name = self.text("name")
        return self.text("uri") if name is None else name

    @property
    def id_text(self) -> str | None:
        """The text of the one id when an answer can carry it: a string or a number in strict JSON."""
        text = self.found.get("id", b"")
        return text.decode() if "id" not in self.repeated and _carries(text) else None


def _or_end(place: int, size: int) -> int:
    return size if place < 0 else place


class EnvelopeScanner:
    """Feed it the bytes of one line; `envelopes` are the objects that stand in it, or in its array, one by one."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.array = False
        self._depth = 0
        self._string = False
        self._skip = False
        self._key: bytearray | None = None
        self._value: bytearray | None = None
        self._value_depth = 0
        self._seen: set[str] = set()
        self._expects_key = [False, False, False]
        self._is_object = [False, False, False]
        self._path = ["", "", ""]
        self._exact = False

    def passes(self, data: bytes | bytearray, start: int, end: int) -> bool:
        """Whether the bytes between these places are all inside of one text that nobody wants, and so are taken."""
        return (
            self._string
            and not self._skip
            and self._key is None
            and self._value is None
            and data.find(b'"', start, end) < 0
            and data.find(b"\\", start, end) < 0
        )

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        at = slow = 0
        size = len(chunk)
        quote = slash = -1
        while at < size:
            if self._skip:  # the character behind a backslash
                self._skip = False
                self._take(chunk[at : at + 1])
                at += 1
                continue
            if self._string:
                # Most of a long line is one text, in which a plain look for a byte is ten times as fast as a pattern.
                if quote < at:
                    quote = _or_end(chunk.find(b'"', at), size)
                if slash < at:
                    slash = _or_end(chunk.find(b"\\", at), size)
                end = min(quote, slash)
                if end == slash < size and self._key is None and self._value is None:
                    # Where one character is escaped there are more of them.
                    inside = _INSIDE.match(chunk, end, min(end + _STRIDE, size))
                    end = end if inside is None else inside.end()
                    if end < size and chunk[end] not in b'"\\':
                        at = end
                        continue
            else:
                if self._depth > 2 and at >= slow and size - at > _STRIDE:
                    passed = self._deep(chunk, at)
                    if passed > at:
                        at = passed
                        continue
                    slow = at + _STRIDE
                match = self._marks().search(chunk, at)
                end = size if match is None else match.start()
            if end == size:
                self._take(chunk[at:])
                return
            if end > at:
                self._take(chunk[at:end])
            self._mark(chunk[end : end + 1])
            at = end + 1

    def _deep(self, chunk: bytes, at: int) -> int:
        """Where a stride ends that lies deep inside as a whole; `at` when it may not. Mark by mark takes tenfold time.

        `at` is outside of any text, and so is where the stride ends.
        """
        whole = _WHOLE.match(chunk, at, at + _STRIDE)
        end = at if whole is None else whole.end()
        marks = _TEXT.sub(b"", chunk[at:end]).translate(None, _NO_BRACKETS)
        depths = list(accumulate(map(_STEPS.__getitem__, marks)))
        if depths and min(depths) + self._depth <= 2:
            return at
        self._depth += depths[-1] if depths else 0
        return end

    def _marks(self) -> re.Pattern[bytes]:
        # Deep down and inside arrays commas and colons say nothing, and there are many of them.
        return _STRUCTURE if self._depth in (1, 2) and self._is_object[self._depth] else _NESTING

    def _take(self, piece: bytes) -> None:
        held = self._key if self._key is not None else self._value
        if held is not None and len(held) <= _LONGEST:
            held += piece[: _LONGEST + 1 - len(held)]

    def _mark(self, mark: bytes) -> None:
        if self._string:
            self._take(mark)
            if mark == b"\\":
                self._skip = True
                return
            self._string = False
            if self._key is not None:
                self._named(bytes(self._key))
                self._key = None
            return
        match mark:
            case b'"':
                self._string = True
                if self._depth in (1, 2) and self._expects_key[self._depth]:
                    self._key = bytearray(b'"')
                else:
                    self._take(mark)
            case b"{" | b"[":
                self._open(mark)
            case b"}" | b"]":
                self._finish()
                self._depth = max(self._depth - 1, 0)
            case b",":
                self._finish()
                self._expects_key[self._depth] = True
            case _:
                self._begin()

    def _named(self, key: bytes) -> None:
        text = _text(key)
        folded = fold(text)
        self._exact = text == folded
        self._path[self._depth] = folded
        self._expects_key[self._depth] = False

    def _open(self, mark: bytes) -> None:
        self._value = None
        if self._depth == 0:
            if mark == b"[":  # an array's elements are messages as a line's own are
                self.array = self.array or not self.envelopes
                return
            if len(self.envelopes) < _MOST:
                self.envelopes.append(Envelope())
                self._seen.clear()
        self._depth += 1
        if self._depth in (1, 2):
            self._is_object[self._depth] = self._expects_key[self._depth] = mark == b"{"
            self._path[self._depth] = ""

    def _begin(self) -> None:
        """A value begins, behind its colon."""
        name = _WANTED.get(tuple(self._path[1 : self._depth + 1]))
        if name is None:
            return
        envelope = self.envelopes[-1]
        if name in self._seen or (name == "id" and not self._exact):
            envelope.repeated.add(name)
        self._seen.add(name)
        envelope.found.pop(name, None)
        self._value = bytearray()
        self._value_depth = self._depth

    def _finish(self) -> None:
        if self._value is not None and self._value_depth == self._depth:
            name = _WANTED.get(tuple(self._path[1 : self._depth + 1]))
            if name is not None and len(self._value) <= _LONGEST:
                self.envelopes[-1].found[name] = bytes(self._value).strip()
            self._value = None


def _text(key: bytes) -> str:
    """A key between its quotes with its escapes resolved, or as it stands when it cannot be read."""
    value = decoded(key) if b"\\" in key else None
    return value if isinstance(value, str) else key[1:-1].decode("utf-8", "surrogateescape")


def _integer(digits: str) -> JSON:
    # int() refuses more than 4300 digits.
    return int(digits) if len(digits) < 4000 else float(digits)


def decoded(text: bytes) -> JSON:
    """A scanned value as JSON, or None where it is none."""
    try:
        value: JSON = json.loads(text.decode("utf-8", "surrogateescape"), strict=False, parse_int=_integer)
    except (ValueError, RecursionError):
        return None
    return value


def _no_constant(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")


def _carries(text: bytes) -> bool:
    """Whether an answer can carry this id: a client that gets back what is no JSON may end."""
    try:
        value: JSON = json.loads(text.decode(), parse_int=_integer, parse_constant=_no_constant)
        if isinstance(value, str):
            value.encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(value, str | int | float) and not isinstance(value, bool)
