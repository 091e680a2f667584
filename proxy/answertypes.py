"""What its headers make of an answer, to whichever client reads it: an event stream, JSON, or neither, and how packed.

Clients differ: some look whether the type begins with, or contains, the words, and some decode by the characters that
it names. Refuses to know the body, and what becomes of it.
"""

import re
from typing import NamedTuple

from proxy.httpwords import Headers, values

_STREAM = "text/event-stream"
_PACKED = (b"gzip", b"x-gzip", b"deflate")
_AS_ASCII = re.compile(
    r"utf-?8|(us-)?ascii|iso[-_]?8859[-_]?[0-9]{1,2}|latin[-_]?[0-9]{1,2}|(windows-|cp)125[0-8]", re.IGNORECASE
)
"""Names of characters of which every byte below 0x80 is the one of ASCII, as it is in UTF-8, and stands alone."""


class AnswerType(NamedTuple):
    """Whether some client takes an answer for an event stream or for JSON, and why others may take it otherwise.

    `problem` is None where all agree. `unread`: nobody can look into it here. `encodings` are what it is packed with.
    """

    stream: bool
    json: bool
    encodings: tuple[bytes, ...] = ()
    problem: str | None = None
    unread: bool = False


def answer_type(headers: Headers) -> AnswerType:
    """The type of an answer with these headers."""
    given = values(headers, b"content-type")
    said = b", ".join(given).decode("latin-1").lower()
    told = [part.strip() for one in values(headers, b"content-encoding") for part in one.lower().split(b",")]
    encodings = tuple(part for part in told if part not in (b"", b"identity"))
    kind = AnswerType(_STREAM in said, "json" in said, encodings)
    if encodings and (len(encodings) > 1 or encodings[0] not in _PACKED):
        named = b", ".join(encodings).decode("latin-1")[:80]
        return kind._replace(problem=f"is encoded as {named}, which is not read", unread=True)
    charset = _charset(said) if kind.stream or kind.json else None
    if charset is not None:
        why = f"has a content type that names the characters {charset[:80]!r}, and MCP has UTF-8"
        return kind._replace(problem=why, unread=True)
    if kind.stream and (len(given) > 1 or said.partition(";")[0].strip() != _STREAM):
        why = f"has the content type {said[:80]!r}, which only some clients take for an event stream"
        return kind._replace(problem=why)
    return kind


def _charset(said: str) -> str | None:
    """The characters that a content type names, under any spelling of the parameter (RFC 2231 has more), not ASCII's.

    A comma ends a parameter too: clients join headers that stand twice.
    """
    for part in re.split("[;,]", said)[1:]:
        key, _, named = part.partition("=")
        if key.strip().startswith("charset"):
            plain = named.strip().strip("\"'")
            if key.strip() != "charset" or _AS_ASCII.fullmatch(plain) is None:
                return plain or "none"
    return None
