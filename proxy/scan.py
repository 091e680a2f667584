"""A scanner that finds a message's id, method and name in text that comes in chunks and is not kept.

It is for lines past the cap and for lines that no parser reads whole; it takes any bytes and never fails.
Refuses to know sessions and policy, and decides nothing.
"""

import json
import re
from collections.abc import Mapping

from proxy.spans import JSON

_WANTED = {
    (b"id",): "id",
    (b"method",): "method",
    (b"params", b"name"): "name",
    (b"params", b"uri"): "uri",
    (b"result", b"isError"): "is_error",
    (b"error", b"code"): "code",
}
_STRING = re.compile(rb'["\\]')
_STRUCTURE = re.compile(rb'["{}\[\],:]')
_LONGEST = 65536
"""Bytes of one wanted value that are kept; a longer one is as absent."""


class EnvelopeScanner:
    """Feed it the bytes of one object; `found` has the text of each wanted value, the last of repeated ones.

    `repeated` names the wanted values that came more than once.
    """

    def __init__(self) -> None:
        self.found: dict[str, bytes] = {}
        self.repeated: set[str] = set()
        self._depth = 0
        self._string = False
        self._skip = False
        self._key: bytearray | None = None
        self._value: bytearray | None = None
        self._value_depth = 0
        self._expects_key = [False, False, False]
        self._is_object = [False, False, False]
        self._path: list[bytes] = [b"", b"", b""]

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        at = 0
        size = len(chunk)
        while at < size:
            if self._skip:  # the character behind a backslash
                self._skip = False
                self._take(chunk[at : at + 1])
                at += 1
                continue
            match = (_STRING if self._string else _STRUCTURE).search(chunk, at)
            if match is None:
                self._take(chunk[at:])
                return
            end = match.start()
            if end > at:
                self._take(chunk[at:end])
            self._mark(chunk[end : end + 1])
            at = end + 1

    def _take(self, piece: bytes) -> None:
        if self._key is not None and len(self._key) <= _LONGEST:
            self._key += piece
        elif self._value is not None and len(self._value) <= _LONGEST:
            self._value += piece

    def _mark(self, mark: bytes) -> None:
        if self._string:
            self._take(mark)
            if mark == b"\\":
                self._skip = True
                return
            self._string = False
            if self._key is not None:
                self._path[self._depth] = _text(bytes(self._key))
                self._key = None
                self._expects_key[self._depth] = False
            return
        match mark:
            case b'"':
                self._string = True
                if self._depth in (1, 2) and self._expects_key[self._depth]:
                    self._key = bytearray(b'"')
                else:
                    self._take(mark)
            case b"{" | b"[":
                self._value = None
                self._depth += 1
                if self._depth in (1, 2):
                    self._is_object[self._depth] = self._expects_key[self._depth] = mark == b"{"
                    self._path[self._depth] = b""
            case b"}" | b"]":
                self._finish()
                self._depth = max(self._depth - 1, 0)
            case b",":
                self._finish()
                if self._depth in (1, 2):
                    self._expects_key[self._depth] = self._is_object[self._depth]
            case _:
                if self._depth in (1, 2) and tuple(self._path[1 : self._depth + 1]) in _WANTED:
                    self._value = bytearray()
                    self._value_depth = self._depth

    def _finish(self) -> None:
        if self._value is not None and self._value_depth == self._depth:
            name = _WANTED[tuple(self._path[1 : self._depth + 1])]
            if name in self.found:
                self.repeated.add(name)
            if len(self._value) <= _LONGEST:
                self.found[name] = bytes(self._value).strip()
            self._value = None


def _text(key: bytes) -> bytes:
    """A key between its quotes with its escapes resolved, or as it stands when it cannot be read."""
    if b"\\" not in key:
        return key[1:-1]
    value = decoded(key)
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else key[1:-1]


def decoded(text: bytes) -> JSON:
    """A scanned value as JSON, or None where it is none."""
    try:
        value: JSON = json.loads(text.decode("utf-8", "surrogateescape"), strict=False)
    except ValueError:
        return None
    return value


def usable_id(found: Mapping[str, bytes]) -> str | None:
    """The text of the scanned id when an answer can carry it: a string or a number."""
    text = found.get("id")
    if text is None:
        return None
    match decoded(text):
        case bool():
            return None
        case str() | int() | float():
            return text.decode("utf-8", "surrogateescape")
        case _:
            return None
