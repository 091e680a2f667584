"""Which events of a session's streams were recorded, so that a stream that is taken up again does not count them twice.

Refuses to know how a stream is taken up, and what stands in an event.
"""

from collections import OrderedDict

from proxy.sha import sha256_hex

_MOST = 4096
"""Events that are remembered; an older one that comes again is read as a new one."""


class Replays:
    """The events of one session. An id alone tells nothing: a server may give two events the same one."""

    def __init__(self) -> None:
        self._events: OrderedDict[str, None] = OrderedDict()

    def note(self, event_id: str, data: bytes) -> None:
        """An event was recorded, and went on as it is."""
        key = _key(event_id, data)
        self._events[key] = None
        self._events.move_to_end(key)
        if len(self._events) > _MOST:
            self._events.popitem(last=False)

    def has(self, event_id: str, data: bytes) -> bool:
        """Whether an event with this id and these very bytes was recorded."""
        return _key(event_id, data) in self._events


def _key(event_id: str, data: bytes) -> str:
    name = event_id.encode("utf-8", "replace")
    return sha256_hex(b"%d %s %s" % (len(name), name, data))
