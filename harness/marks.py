"""What a target may not say of itself, and how it is marked so that it is never graded (record.md section 5).

Refuses to know where the events and calls came from; its callers do.
"""

from collections.abc import Mapping
from dataclasses import replace

from harness.trace import TARGET_SAYS, Event, ToolCall
from proxy.spans import JSON

PLACES = ("type", "seq", "time", "span_id", "reported")
"""Members of an event that are ours; a source's own member of that name is kept as `source_<name>`."""

_SEEN = ("mcp_server_id", "connection", "request_id")
"""Members of a call that a target cannot know better than we do."""


def marked_event(event: Event) -> Event:
    """The event as the target's own word."""
    kind = event.type
    if kind.strip().casefold().startswith("mcp_"):
        kind = TARGET_SAYS + kind
    return replace(event, type=kind, reported=True)


def marked_call(call: ToolCall) -> ToolCall:
    """The call as the target's own word: a canonical name stays among `names`, where a denied name still counts.

    Which server it went to, and what joins it to that server's journal, is for us to see: that is kept as
    `source_<name>`.
    """
    said = {f"source_{key}": value for key in _SEEN if (value := getattr(call, key)) is not None}
    call = replace(call, mcp_server_id=None, connection=None, request_id=None, extra={**call.extra, **said})
    name = call.name
    if name is None or not name.strip().casefold().startswith("mcp/"):
        return call
    return replace(call, name=TARGET_SAYS + name, names=call.names or (name,))


def free(fields: Mapping[str, JSON]) -> dict[str, JSON]:
    """The fields with no name that is ours among them."""
    return {f"source_{key}" if key in PLACES else key: value for key, value in fields.items()}
