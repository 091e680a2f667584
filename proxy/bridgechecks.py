"""What a request over HTTP must be before a bridge gives it to a server over stdio, which sees no header of it.

Pure. It follows basic/transports of each revision, and refuses to know sessions and processes.
"""

import json
from typing import NamedTuple

from proxy.frames import Line, Message, read_loose, read_strict
from proxy.httpwords import SESSION, Headers, media_type, other_charset, value, values
from proxy.judging import VERSION_KEY, meta_text
from proxy.mcpheaders import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NO_METHOD,
    UNPARSED,
    VERSION,
    Mirrors,
    mismatch,
)
from proxy.members import FrameError
from proxy.refusals import error

MODERN = "2026"
"""Versions from here on are of the era of 2026-07-28; they sort as text."""
OLD_VERSIONS = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"


class Fault(NamedTuple):
    """Why a bridge answers by itself: the HTTP status, the JSON-RPC code, and the reason in words."""

    status: int
    code: int
    why: str
    id_text: str = "null"
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def body(self) -> bytes:
        """The JSON-RPC error, with the mark of ours."""
        return error(self.id_text, self.code, self.why).encode("utf-8", "surrogateescape")


class Post(NamedTuple):
    """A body that may go to a server, as it was read; `modern` where it is of the era of 2026-07-28."""

    line: Line
    text: str
    modern: bool


def accepts(headers: Headers, *wanted: str) -> bool:
    """Whether an answer of each of these media types is one that the client takes."""
    found = [part.partition(";")[0].strip().lower() for one in values(headers, b"accept") for part in
             one.decode("latin-1").split(",")]  # fmt: skip
    if not found:
        return True
    return all(f in found or "*/*" in found or f"{f.partition('/')[0]}/*" in found for f in wanted)


def is_modern(headers: Headers) -> bool:
    """Whether the headers are those of the era without sessions."""
    return value(headers, VERSION).decode("latin-1").strip() >= MODERN


def read_post(headers: Headers, body: bytes, mirrors: Mirrors) -> Post | Fault:
    """A body as what may go on, or why not."""
    if media_type(headers) != "application/json" or other_charset(headers) is not None:
        return Fault(415, INVALID_REQUEST, "the content type is not application/json in UTF-8")
    if set(values(headers, b"content-encoding")) - {b"identity"}:
        return Fault(415, INVALID_REQUEST, "the body is encoded; send it plain", headers=((b"accept-encoding", b""),))
    if not accepts(headers, "application/json", "text/event-stream"):
        return Fault(406, INVALID_REQUEST, "Accept does not name both application/json and text/event-stream")
    modern = is_modern(headers)
    try:
        line = read_loose(body)
    except FrameError as problem:
        return Fault(400, UNPARSED, f"the body cannot be read: {problem}")
    versions = [meta_text(message, VERSION_KEY) or "" for message in line.messages]
    if modern or (not values(headers, SESSION) and max(versions) >= MODERN):
        return _modern(headers, body, mirrors)
    told = value(headers, VERSION).decode("latin-1").strip()
    if told and told not in OLD_VERSIONS and all(message.method != "initialize" for message in line.messages):
        return Fault(400, INVALID_REQUEST, f"the protocol version {told[:40]!r} is not known", _id(line))
    odd = next((message for message in line.messages if _is_odd(message)), None)
    if odd is not None:
        return Fault(400, INVALID_REQUEST, "it is neither a request with a text or a number for its id, nor an answer")
    text = body.decode("utf-8", "surrogateescape").removeprefix("\ufeff").strip()
    if _breaks_a_text(text):
        return Fault(400, UNPARSED, "a text in the body holds a line end, which JSON writes as an escape", _id(line))
    return Post(line, text, modern=False)


def _breaks_a_text(text: str) -> bool:
    """Whether a line end stands inside a token, so that on one line the message would be another than was recorded."""
    if "\n" not in text and "\r" not in text:
        return False
    try:
        json.loads(text, parse_int=str)  # of any length
    except ValueError:
        return True
    return False


def _id(line: Line) -> str:
    found = [message.id_text for message in line.messages if message.id_key is not None and not line.batch]
    return (found[0] if found else None) or "null"


def _is_odd(message: Message) -> bool:
    if message.method is None:
        return not message.is_answer
    return "id" in message.members and message.id_key is None


def _modern(headers: Headers, body: bytes, mirrors: Mirrors) -> Post | Fault:
    try:
        line = read_strict(body)
    except FrameError as problem:
        return Fault(400, INVALID_REQUEST, f"the body has no one reading: {problem}")
    message = line.messages[0]
    text = _id(line)
    if line.batch or message.method is None or _is_odd(message):
        return Fault(400, INVALID_REQUEST, "the body is not one request or notification", text)
    if "id" in message.members:
        meta = message.params.get("_meta")
        keys = meta.value.keys() if meta is not None and isinstance(meta.value, dict) else ()
        missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in keys]
        if missing:
            return Fault(400, INVALID_PARAMS, f"params._meta has no {', '.join(missing)}", text)
    why = mismatch(headers, message, mirrors)
    if why is not None:
        return Fault(400, HEADER_MISMATCH, why, text)
    if message.method == "initialize":
        # A server that serves both eras would take it for the beginning of the older one, for all its clients.
        return Fault(404, NO_METHOD, "there is no initialize since 2026-07-28", text)
    return Post(line, message.source, modern=True)
