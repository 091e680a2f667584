"""The line of a large answer, made piece by piece, so that no more than two copies of it are there at once.

Pure. Refuses to know files, and what counts as large.
"""

from collections.abc import Iterator
from hashlib import sha256
from json.encoder import encode_basestring_ascii as quote
from typing import TYPE_CHECKING

from proxy import vocabulary as v
from proxy.exchange import Owed, ended
from proxy.largemessage import LargeMessage
from proxy.record import Due, Recorder
from proxy.spans import encode_attribute

if TYPE_CHECKING:
    from proxy.redact import Redactor

_AT_ONCE = 256 * 1024
"""Characters that are looked at, quoted and digested at once: meanwhile no other thread goes on."""
_WIDEST = 4
"""Bytes of a character at most."""


def large_line(due: Due, recorder: Recorder, token: str) -> str | bytes | bytearray:
    """The same line as `due.line(recorder)`, which is over with that; who has no `due` beside holds no copy more.

    `token` is a text that stands in no line, as 32 random hex digits.
    """
    if not isinstance(due, Owed) or due.message.fields.get("error") is not None:
        return due.line(recorder)
    exchange, message = due.exchange, due.message
    result = message.fields.get("result")
    fails = exchange.method == "tools/call" and isinstance(result, dict) and result.get("isError") is True
    raw: memoryview | str | None
    if isinstance(message, LargeMessage):
        raw = message.bytes_of("result")
    else:
        # What the line needs of the values is known; they are as large as the text.
        message.fields["result"] = result = {"isError": True} if fails else {}
        raw = message.field_text("result")
    if raw is None or (recorder.redactor is not None and _finds(recorder.redactor, raw)):
        return due.line(recorder)
    exchange, _, now, seq, version, ours = due
    del due, message
    size, digest = _measured(raw)
    more = [
        encode_attribute(v.TOOL_RESULT if exchange.method == "tools/call" else v.RESULT, token),
        encode_attribute(v.payload_bytes("result"), size),
        encode_attribute(v.payload_sha256("result"), digest),
    ]
    if fails:
        more.append(encode_attribute(v.ERROR_TYPE, "tool_error"))
    line = ended(
        recorder, exchange, now, "tool_error" if fails else "ok", more,
        version=version, failure="the tool's result is an error" if fails else None, ours=ours, seq=seq,
    )  # fmt: skip
    before, _, behind = line.partition(token)
    found = bytearray(before.encode())
    for text in _pieces(raw):
        found += memoryview(quote(text).encode())[1:-1]
    found += behind.encode()
    return found


def _pieces(raw: memoryview | str) -> Iterator[str]:
    """The text in pieces."""
    at, size = 0, len(raw)
    while at < size:
        to = min(at + _AT_ONCE, size)
        if isinstance(raw, str):
            yield raw[at:to]
        else:
            to = _between(raw, to)
            yield str(raw[at:to], "utf-8", "surrogateescape")
        at = to


def _between(raw: memoryview, to: int) -> int:
    """The same place, or one a little before it where that is inside of a character."""
    for place in range(to, max(to - 4, 0), -1):
        if place == len(raw) or raw[place] & 0xC0 != 0x80:
            return place
    return to


def _measured(raw: memoryview | str) -> tuple[int, str]:
    size, digest = 0, sha256()
    if not isinstance(raw, str):
        return len(raw), sha256(raw).hexdigest()
    for text in _pieces(raw):
        encoded = text.encode("utf-8", "surrogateescape")
        size += len(encoded)
        digest.update(encoded)
    return size, digest.hexdigest()


def _finds(redactor: "Redactor", raw: memoryview | str) -> bool:
    """Whether a secret may stand in the text; no form of one is so long that none of the pieces has it whole."""
    over = 2 * redactor.margin * (1 if isinstance(raw, str) else _WIDEST)
    step = max(_AT_ONCE, over)
    parts = (raw[at : at + step + over] for at in range(0, len(raw), step))
    return any(
        redactor.finds(part if isinstance(part, str) else str(part, "utf-8", "surrogateescape")) for part in parts
    )
