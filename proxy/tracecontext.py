"""Our span id written over the parent id in a message's trace context, so that the server's span nests under ours.

Pure. The place is found by the tokenizer, never by a search: the same text may stand in an argument. Refuses to know
where lines come from.
"""

from collections.abc import Iterable

from proxy.frames import Message
from proxy.members import STRICT, FrameError, scan_members
from proxy.record import Place, parse_traceparent

_PARENT = len('"00-') + 32 + len("-")
"""Characters before the parent id in a traceparent's JSON string (W3C Trace Context, section 3.2)."""


def parent_id_at(message: Message, place: Place) -> int | None:
    """Where in the message's text the parent id stands that `place` is under; None where there is none to write over.

    The message was read strictly. A traceparent that is spelled with escapes, is malformed, or was not taken for the
    parent of `place` stays as it is.
    """
    meta = message.params.get("_meta")
    if meta is None or not isinstance(meta.value, dict):
        return None
    try:
        members = scan_members(message.text, meta.start, STRICT).members
    except (FrameError, IndexError, ValueError):
        return None
    for member in members:
        if member.key == "traceparent" and isinstance(member.value, str):
            parent = parse_traceparent(member.value)
            as_it_is = message.text_of(member) == f'"{member.value}"'
            if as_it_is and parent == (place.trace_id, place.parent_id):
                return member.start + _PARENT
    return None


def spliced(raw: bytes, messages: Iterable[tuple[Message, Place]]) -> bytes:
    """The line with the span id of each place over the parent id of its message: every other byte stays as it is."""
    line: bytearray | None = None
    for message, place in messages:
        found = parent_id_at(message, place)
        if found is None:
            continue
        line = bytearray(raw) if line is None else line
        at = found if message.text.isascii() else len(message.text[:found].encode())
        line[at : at + 16] = place.span_id.encode("ascii")
    return raw if line is None else bytes(line)
