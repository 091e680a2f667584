"""HTTP/1.1 as bytes (RFC 9112): heads and bodies out of what a peer sends, and heads as they are sent.

A request is read strictly: what two readers may cut differently is refused. An answer is read as clients read it.
Refuses to know sockets, and what a header says to MCP. In Python h11 does the same for ten times the time.
"""

import re
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from proxy.httpwords import Fields, Headers, value, values

HEAD_LIMIT = 256 * 1024
"""Bytes that the head of a request or an answer may have."""
_USUAL = 4 * 1024
"""Bytes of a head that is remembered once it was read: a peer sends the same one again and again."""
_REMEMBERED = 128
_LINE_LIMIT = 16 * 1024
"""Bytes that the line of a chunk's size may have, and all trailers together."""

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_TEXT = rb"[^\x00-\x08\x0a-\x1f\x7f]*"
_FIELDS = rb"((?:" + _TOKEN + rb":" + _TEXT + rb"\r\n)*)\r\n"
_REQUEST = re.compile(rb"(" + _TOKEN + rb") ([\x21-\x7e]+) HTTP/1\.([01])\r\n" + _FIELDS)
_ANSWER = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: " + _TEXT + rb")?\r\n" + _FIELDS)
_FIELD = re.compile(rb"(" + _TOKEN + rb"):(" + _TEXT + rb")\r\n")
_SENT = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]+\r\n" + _FIELDS)
_LENGTH = re.compile(rb"[0-9]{1,18}")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;" + _TEXT + rb")?")
_HEAD_END = re.compile(rb"\r?\n\r?\n")

_OTHERWISE = frozenset({b"content_length", b"transfer_encoding"})
"""What a server behind a gateway may take for the framing of a request (RFC 3875, section 4.1.18)."""

_PHRASES = {one.value: b"HTTP/1.1 %d %s\r\n" % (one.value, one.phrase.encode()) for one in HTTPStatus}


class FramingError(ValueError):
    """What a peer sent is no HTTP/1.1, or may be cut in more than one way; `status` is for who sent a request."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


class RequestHead(NamedTuple):
    """The head of a request; names of headers are in lower case. `minor`: 0 is HTTP/1.0."""

    method: bytes
    target: bytes
    headers: Headers
    minor: int = 1


class AnswerHead(NamedTuple):
    """The head of an answer; names of headers are in lower case. `minor`: 0 is HTTP/1.0."""

    status_code: int
    headers: Headers
    minor: int = 1


def _fields(text: bytes) -> Headers:
    return Fields((key.lower(), value.strip(b" \t")) for key, value in _FIELD.findall(text))


def read_request(data: bytes) -> tuple[RequestHead, bytes] | None:
    """The head of a request that `data` begins with, and what follows; None while it is not whole.

    Raises FramingError.
    """
    end = data.find(b"\r\n\r\n", 0, HEAD_LIMIT)
    if end < 0:
        if len(data) >= HEAD_LIMIT:
            raise FramingError("the head of the request is too long", 431)
        if b"\n\n" in data or b"\n\r\n" in data.replace(b"\r\n", b"  "):
            raise FramingError("the lines of a head end with a carriage return and a line feed")
        return None
    read = _request_head if end <= _USUAL else _request_head.__wrapped__
    return read(data[: end + 4]), data[end + 4 :]


@lru_cache(_REMEMBERED)
def _request_head(head: bytes) -> RequestHead:
    match = _REQUEST.fullmatch(head)
    if match is None:
        raise FramingError("the head of the request is no HTTP/1.1")
    method, target, minor, fields = match.groups()
    headers = _fields(fields)
    if any(key in _OTHERWISE for key, _ in headers):
        raise FramingError("a header is the body's length to a gateway, which takes _ for -")
    return RequestHead(method, target, headers, int(minor))


def read_answer(data: bytes) -> tuple[AnswerHead, bytes] | None:
    """The head of an answer that `data` begins with, and what follows; None while it is not whole. Raises FramingError.

    Bare line feeds and folded lines are taken, as clients take them.
    """
    found = _HEAD_END.search(data, 0, HEAD_LIMIT)
    if found is None:
        if len(data) >= HEAD_LIMIT or not b"HTTP/1.".startswith(data[:7]):
            raise FramingError("it does not begin with the head of an answer")
        return None
    end = found.end()
    read = _answer_head if end <= _USUAL else _answer_head.__wrapped__
    return read(data[:end]), data[end:]


@lru_cache(_REMEMBERED)
def _answer_head(head: bytes) -> AnswerHead:
    match = _ANSWER.fullmatch(head)
    if match is None:
        plain = re.sub(rb"\r?\n", b"\r\n", head)
        match = _ANSWER.fullmatch(re.sub(rb"\r\n[ \t]+", b" ", plain))
    if match is None:
        raise FramingError("its head is that of no answer")
    minor, status, fields = match.groups()
    return AnswerHead(int(status), _one_framing(_fields(fields)), int(minor))


def _one_framing(headers: Headers) -> Headers:
    """The headers of an answer with one length at most, none beside a transfer encoding (RFC 9112, section 6.3).

    Raises FramingError.
    """
    lengths = values(headers, b"content-length")
    if not lengths:
        return headers
    said = {part.strip(b" \t") for one in lengths for part in one.split(b",")}
    if values(headers, b"transfer-encoding"):
        said.clear()
    elif len(said) > 1 or _LENGTH.fullmatch(next(iter(said))) is None:
        raise FramingError("the answer has no one Content-Length")
    elif lengths == list(said):
        return headers
    others = [pair for pair in headers if pair[0] != b"content-length"]
    return Fields([*others, *((b"content-length", length) for length in said)])


def is_kept(headers: Headers, minor: int) -> bool:
    """Whether a peer keeps the connection open after this message."""
    said = [part.strip().lower() for one in values(headers, b"connection") for part in one.split(b",")]
    return b"close" not in said and (minor >= 1 or b"keep-alive" in said)


def request_head(question: RequestHead) -> bytes:
    """A head as it is sent. Raises FramingError where a part of it cannot stand in one."""
    return _sent(b"%s %s HTTP/1.1\r\n" % (question.method, question.target), question.headers)


def answer_head(status: int, headers: Headers) -> bytes:
    """A head as it is sent, with the standard words. Raises FramingError where a part of it cannot stand in one."""
    return _sent(_PHRASES.get(status) or b"HTTP/1.1 %d \r\n" % status, headers)


def _sent(first: bytes, headers: Headers) -> bytes:
    head = first + b"".join([b"%s: %s\r\n" % pair for pair in headers]) + b"\r\n"
    fine = _is_sendable if len(head) <= _USUAL else _is_sendable.__wrapped__
    if not fine(head, len(headers)):
        raise FramingError("a header has a character that none can have")
    return head


@lru_cache(_REMEMBERED)
def _is_sendable(head: bytes, headers: int) -> bool:
    """Whether a head is one that a peer cuts into so many headers."""
    return head.count(b"\n") == headers + 2 and _SENT.fullmatch(head) is not None


class BodyReader:
    """Takes the bytes behind a head. `ended`: that is all of the body; then `rest` is what follows it.

    `left`: bytes still to come, None where the connection's end is the body's.
    """

    def __init__(self, left: int | None, *, chunked: bool = False) -> None:
        self.left = left
        self.ended = left == 0 and not chunked
        self.rest = b""
        self.chunked = chunked
        self._held = b""
        self._behind = False
        self._trailers = -1
        self._problem: FramingError | None = None

    def feed(self, data: bytes) -> bytes:
        """What of the body is in the next bytes. Raises FramingError, but gives what came before it first."""
        if self.chunked:
            return self._unchunked(data)
        if self.left is None:
            return data
        found = data[: self.left]
        self.left -= len(found)
        if not self.left:
            self.ended = True
            self.rest = data[len(found) :]
        return found

    def skim(self, count: int) -> int:
        """How many of the next `count` bytes are body as they stand; they are taken. The others are to be fed."""
        if self.left is None:
            return count
        if self.chunked and (self._held or self._problem is not None):
            return 0
        plain = min(self.left, count)
        self.left -= plain
        if not self.left and plain:
            self._behind = self.chunked
            self.ended = not self.chunked
        return plain

    def end(self) -> None:
        """The connection ended. Raises FramingError where the body is not whole."""
        if self.chunked or self.left is not None:
            raise FramingError("the body is cut short")
        self.ended = True

    def _unchunked(self, data: bytes) -> bytes:
        if self._problem is not None:
            raise self._problem
        found: list[bytes] = []
        try:
            self._chunks(self._held + data if self._held else data, found)
        except FramingError as problem:
            if not found:
                raise
            self._problem = problem
        return found[0] if len(found) == 1 else b"".join(found)

    def _chunks(self, data: bytes, found: list[bytes]) -> None:
        self._held = b""
        at = 0
        while True:
            if self.left:
                piece = data[at : at + self.left]
                if piece:
                    found.append(piece)
                at += len(piece)
                self.left -= len(piece)
                if self.left:
                    return
                self._behind = True
            end = data.find(b"\r\n", at)
            if end < 0:
                self._held = data[at:]
                if len(self._held) > _LINE_LIMIT or (self._behind and not b"\r\n".startswith(self._held)):
                    raise FramingError("a chunk of the body is broken")
                return
            line = data[at:end]
            at = end + 2
            if self._behind:
                if line:
                    raise FramingError("a chunk of the body is longer than it says")
                self._behind = False
            elif self._trailers >= 0:
                self._trailers += len(line)
                if not line:
                    self.ended = True
                    self.rest = data[at:]
                    return
                if self._trailers > _LINE_LIMIT:
                    raise FramingError("the trailers are too long")
            else:
                size = _SIZE.fullmatch(line)
                if size is None:
                    raise FramingError("the size of a chunk is no number")
                self.left = int(size[1], 16)
                if not self.left:
                    self._trailers = 0


def request_body(head: RequestHead) -> BodyReader:
    """The reader of a request's body. Raises FramingError where its length may be read in more than one way."""
    encodings, lengths = values(head.headers, b"transfer-encoding"), values(head.headers, b"content-length")
    if encodings:
        if len(encodings) > 1 or encodings[0].lower() != b"chunked" or not head.minor:
            raise FramingError("of transfer encodings only chunked is read", 501)
        if lengths:
            raise FramingError("the request has a Content-Length beside its Transfer-Encoding")
        return BodyReader(0, chunked=True)
    if not lengths:
        return BodyReader(0)
    if len(lengths) > 1 or _LENGTH.fullmatch(lengths[0]) is None:
        raise FramingError("the request has no one Content-Length")
    return BodyReader(int(lengths[0]))


def answer_body(head: AnswerHead, method: bytes) -> BodyReader:
    """The reader of the body of an answer that was read. Raises FramingError where it cannot be told how long it is."""
    if method == b"HEAD" or head.status_code in {204, 304}:
        return BodyReader(0)
    encodings = values(head.headers, b"transfer-encoding")
    if encodings:
        if [one.lower() for one in encodings] != [b"chunked"]:
            raise FramingError("of transfer encodings only chunked is read")
        return BodyReader(0, chunked=True)
    length = value(head.headers, b"content-length")
    return BodyReader(int(length) if length else None)
