"""What one request over HTTP asked, and how far a stream of events that answers it was read.

Pure. Refuses to know sockets and headers.
"""

from proxy.frames import Line, Message
from proxy.ids import IdKey, answered_key
from proxy.lines import Part
from proxy.sse import EventReader

RETRY = 1.0
"""Seconds before a stream is taken up again where the server names no time."""
_LONGEST = 60.0
_EVENT = 1 << 62


class Reading:
    """One stream of events as it is read, and where to take it up again."""

    def __init__(self) -> None:
        self._events = EventReader(_EVENT)
        self.last_id = ""

    @property
    def retry(self) -> float:
        """Seconds to wait before the stream is taken up again."""
        told = self._events.retry
        return RETRY if told is None else min(told / 1000, _LONGEST)

    def feed(self, chunk: bytes) -> list[bytes]:
        """The messages that `chunk` completes."""
        found: list[bytes] = []
        for event in self._events.feed(chunk):
            if event.piece.part is not Part.WHOLE:
                continue
            self.last_id = event.id or self.last_id
            if event.has_data and event.piece.data and event.name in {"", "message"}:
                found.append(event.piece.data)
        return found


class Asked:
    """What one request over HTTP asked: the ids that are still without an answer."""

    def __init__(self, messages: list[Message]) -> None:
        self.messages = messages
        self.open: list[IdKey] = [one.id_key for one in messages if one.id_key is not None]
        self.lists = any(one.method == "tools/list" for one in messages)

    def answered(self, line: Line) -> None:
        """Take a message of the server into account."""
        for message in line.messages:
            key = answered_key(message.id_key, self.open) if message.is_answer and message.id_key is not None else None
            if key is not None:
                self.open.remove(key)
