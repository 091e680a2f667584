"""What proxies, the operator's desk and those who answer say to each other: one JSON object a line, none very long.

Pure. Refuses to know sockets.
"""

import json
from collections.abc import Mapping

from proxy.held import HeldCall
from proxy.record import Recorder
from proxy.spans import JSON

SOCKET = "desk.sock"
"""The name of the socket in the folder of a desk."""
LONGEST = 1024 * 1024
"""Bytes of one line; who says more is not listened to."""
SHOWN = 8000
"""Characters of a call's arguments that an operator is shown; of longer ones it is said that they are cut."""

Said = dict[str, JSON]


class WordsError(ValueError):
    """A line that is none of these."""


class Lines:
    """Bytes, cut anywhere, as messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Said]:
        """The messages that are whole by now. Raises WordsError."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST:
            raise WordsError("a line is too long")
        return [read(line) for line in lines]


def read(line: bytes) -> Said:
    """One message. Raises WordsError."""
    try:
        said = json.loads(line) if len(line) <= LONGEST else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise WordsError("a line is no JSON object")
    return said


def write(said: Mapping[str, JSON]) -> bytes:
    """A message as a line."""
    return json.dumps(said).encode() + b"\n"


def announce(held: HeldCall, recorder: Recorder) -> Said:
    """What a proxy says of a call that waits. Secrets are taken out, as of the record."""
    message = held.one.message
    decision = held.one.decision
    text = message.given_text("arguments") or "{}"
    if recorder.redactor is not None:
        text, _ = recorder.redactor.text(text)
    return {
        "hold": held.id,
        "tool": held.one.canonical,
        "arguments": text[:SHOWN],
        "cut": max(0, len(text) - SHOWN),
        "arguments_sha256": held.told,
        "rule": "" if decision is None else decision.rule,
        "reason": "" if decision is None else decision.reason,
        "wait": held.hold.wait,
    }


def text_of(said: Mapping[str, JSON], key: str) -> str:
    """A text of a message, "" where it has none."""
    value = said.get(key)
    return value if isinstance(value, str) else ""
