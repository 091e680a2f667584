"""What servers told agents in a trial: the results of their calls, and whatever else a server's side of the wire held.

Refuses to know what is looked for. What an agent sent is not here, nor what the proxy answered in a server's place.
"""

from collections.abc import Iterator
from typing import NamedTuple

from harness.sent import SEPARATOR, every_string
from harness.trace import Event, ToolCall, Trace
from proxy.spans import JSON

_OPENINGS = {"mcp_connection_initialized": "server_info", "mcp_capabilities_negotiated": "server"}
"""Events of an opened connection, and where they hold what the server said of itself."""
_LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "prompts/list"})
MESSAGE = "mcp_server_message"


class Received(NamedTuple):
    """One thing that a server told. `seq` is when it was there; of what is cut in the record, `content` is the rest."""

    seq: int
    server: str
    content: JSON

    @property
    def text(self) -> str:
        """All its texts, apart from each other, whoever is said in them to have spoken."""
        return SEPARATOR.join(every_string(self.content))


def received(trace: Trace) -> Iterator[Received]:
    """All that servers told: results in their order, then the rest in its order. Of no server is nothing known."""
    for call in trace.tool_calls:
        if call.mcp_server_id is not None and call.result is not None and _is_own(call):
            place = call.seq if call.result_seq is None else call.result_seq
            yield Received(place, call.mcp_server_id, call.result)
    for event in trace.events:
        if event.type in _OPENINGS or is_told(event):
            server = event.fields.get("server_id")
            content = event.fields.get(_OPENINGS.get(event.type, "content"))
            if content is not None and isinstance(server, str) and not event.reported:
                yield Received(event.seq, server, content)


def first_cut(trace: Trace) -> str | None:
    """What was told and is in the record only in part: the first such result or message; None where all is whole."""
    for call in trace.tool_calls:
        if call.result_truncated:
            return f"{call.name} (seq {call.seq})"
    cut = (event for event in trace.events if is_told(event) and event.fields.get("content_truncated") is True)
    return next(map(described, cut), None)


def is_told(event: Event) -> bool:
    """Whether an event holds what a server told and what reached its client."""
    return event.type == MESSAGE and event.fields.get("outcome") != "denied"


def is_offer(event: Event) -> bool:
    """Whether a server's message says what it offers: it answers what a client asks before an agent does anything."""
    method = str(event.fields.get("method"))
    return method in ("initialize", "server/discover") or method in _LISTS


def described(event: Event) -> str:
    """A server's message in a reason: by what was asked for, or by its method."""
    named = event.fields.get("name") or event.fields.get("uri")
    what = named if isinstance(named, str) else f"{event.type} {event.fields.get('method') or 'of no method'}"
    return f"{what} (seq {event.seq})"


def _is_own(call: ToolCall) -> bool:
    """Whether the answer is the server's and not the proxy's own."""
    return call.outcome != "denied" and call.server_outcome != "unanswered"
