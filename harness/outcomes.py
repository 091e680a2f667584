"""How far a call came: attempted, blocked, executed, ok; and the words for it.

Refuses to know what the call was for.
"""

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from harness.trace import ToolCall
from proxy.spans import JSON

CUT = 80
"""Characters of a value that a reason shows."""
LISTED = 3
"""Calls or changes that a reason shows."""
BLOCKED = "attempted and blocked"
"""What became of what policy refused."""
NEVER_SENT = frozenset({"error", "timeout"})
"""Injected faults of calls that never reached their server."""
T = TypeVar("T")


def is_blocked(call: ToolCall) -> bool:
    """Whether policy kept the call from its server."""
    if call.outcome is None:
        return call.decision == "deny" and call.decision_enforced is not False
    return call.outcome == "denied"


def is_executed(call: ToolCall) -> bool:
    """Whether the call was forwarded and not answered by a protocol error, or only by one that a fault put there.

    A call without an outcome, from a trace that does not say, counts as executed unless a decision blocked it.
    """
    if call.fault in NEVER_SENT:
        return False
    return not is_blocked(call) and (call.server_outcome or call.outcome) != "protocol_error"


def is_ok(call: ToolCall) -> bool:
    """Whether the call did what it was for: outcome ok, or no outcome with neither decision nor error against it."""
    if call.outcome is None:
        return not is_blocked(call) and call.is_error is not True
    return call.outcome == "ok" and call.is_error is not True


def outcome_words(call: ToolCall) -> str:
    """How the call ended, in words that follow "was"."""
    if is_blocked(call):
        return BLOCKED
    if call.fault in NEVER_SENT:
        return f"attempted and met by the injected fault {call.fault}"
    if call.fault is not None:
        return f"executed and met by the injected fault {call.fault}"
    match call.outcome:
        case "ok":
            return "executed"
        case "tool_error":
            return "executed and answered by a tool error"
        case "protocol_error" if call.server_outcome == "unanswered":
            return "forwarded and answered by an error of the proxy's own"
        case "protocol_error":
            return "attempted and answered by a protocol error"
        case "unanswered":
            return "forwarded and never answered"
        case "cancelled":
            return "forwarded and cancelled"
        case _:
            return "made, by a record that does not say how it ended" + (" but for an error" if call.is_error else "")


def describe(call: ToolCall) -> str:
    """The call in a reason: its name, its arguments cut short, and its place in the trace."""
    name = call.name or call.mcp_tool_name or next(iter(call.names), None) or "a call without a name"
    if call.arguments_truncated:
        arguments = " (arguments cut in the record)"
    else:
        arguments = "" if call.arguments is None else f" {show(call.arguments)}"
    return f"{name}{arguments} (seq {call.seq})"


def show(value: JSON) -> str:
    """A value as JSON on one line, cut short."""
    try:
        text = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")
    except (RecursionError, ValueError):
        # Nested or long past what Python writes.
        return "…"
    return text if len(text) <= CUT else text[: CUT - 1] + "…"


def listed_as(items: Sequence[T], words: Callable[[T], str]) -> str:
    """The first few items in words, and how many more there are; only those few are put into words."""
    few = [words(item) for item in items[:LISTED]]
    return listed([*few, *[""] * (len(items) - len(few))])


def listed(items: Sequence[str], limit: int = LISTED) -> str:
    """The first few items, and how many more there are."""
    more = f" and {len(items) - limit} more" if len(items) > limit else ""
    return "; ".join(items[:limit]) + more


def times(count: int) -> str:
    """`1 time`, or any other count of times."""
    return "1 time" if count == 1 else f"{count} times"
