"""The answers over HTTP that are the proxy's own: which status, and which body.

Refuses to know why; the reasons come from the session, or from who could not go on.
"""

from collections.abc import Sequence

from proxy.frames import read_loose
from proxy.members import FrameError
from proxy.refusals import NOT_READABLE, error

JSON_HEADERS = [(b"content-type", b"application/json")]


def said(code: int, reason: str, ids: Sequence[str] = ()) -> bytes:
    """A JSON-RPC error under each id; under null where none is known."""
    bodies = [error(text, code, reason) for text in ids] or [error("null", code, reason)]
    return (bodies[0] if len(bodies) == 1 else f"[{','.join(bodies)}]").encode("utf-8", "surrogateescape")


def status_of(replies: bytes, *, modern: bool) -> int:
    """The status of a refused message with these replies.

    Up to 2025-11-25 an answer of any kind is 200: their clients take another status for a broken connection. In
    2026-07-28 an error is 400 (basic/transports). What could not be read, or has no id to be answered under, is 400 in
    both: nothing was accepted, so that 202 would be untrue, and 403 makes clients ask for other credentials.
    """
    try:
        messages = read_loose(replies).messages
    except FrameError:
        return 400
    for message in messages:
        failure = message.members.get("error")
        if failure is None:
            continue
        code = failure.value.get("code") if isinstance(failure.value, dict) else None
        if modern or code == NOT_READABLE:
            return 400
    return 200


def joined(replies: bytes) -> bytes:
    """The replies as one body: the one, or the array that they stand in; several lines become an array."""
    lines = replies.strip().split(b"\n")
    return lines[0] if len(lines) == 1 else b"[" + b",".join(lines) + b"]"
