"""What the content type of an answer makes of it, to whichever client reads it: an event stream, JSON, or neither.

Clients differ: some look whether the type begins with, or contains, the words, and some decode by the characters that
it names. Refuses to know the body, and what becomes of it.
"""

import re
from typing import NamedTuple

from proxy.httpwords import Headers, values

_STREAM = "text/event-stream"
_AS_ASCII = re.compile(
    r"utf-?8|(us-)?ascii|iso[-_]?8859[-_]?[0-9]{1,2}|latin[-_]?[0-9]{1,2}|(windows-|cp)125[0-8]", re.IGNORECASE
)
"""Names of characters of which every byte below 0x80 is the one of ASCII, as it is in UTF-8, and stands alone."""


class AnswerType(NamedTuple):
    """Whether some client takes an answer for an event stream or for JSON, and why others may take it otherwise.

    `problem` is None where all agree. `foreign`: it names characters in which nothing can be found by its ASCII.
    """

    stream: bool
    json: bool
    problem: str | None = None
    foreign: bool = False


def answer_type(headers: Headers) -> AnswerType:
    """The type of an answer with these headers."""
    given = values(headers, b"content-type")
    said = b", ".join(given).decode("latin-1").lower()
    stream, json = _STREAM in said, "json" in said
    if not (stream or json):
        return AnswerType(stream, json)
    charset = _charset(said)
    if charset is not None:
        why = f"its content type names the characters {charset[:80]!r}, and MCP has UTF-8"
        return AnswerType(stream, json, why, foreign=True)
    if stream and (len(given) > 1 or said.partition(";")[0].strip() != _STREAM):
        why = f"its content type is {said[:80]!r}, which only some clients take for an event stream"
        return AnswerType(stream, json, why)
    return AnswerType(stream, json)


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
