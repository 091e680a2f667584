"""Tool calls as lines for a person: one a call, columns aligned, nothing that a terminal would obey.

Refuses to know where the calls came from.
"""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from unicodedata import combining, east_asian_width

from harness.trace import Event, ToolCall
from proxy.visible import visible

ARGUMENTS = 60
"""Columns of the arguments that a line shows."""
LEAST = (12, 8, 32, 24, 14, 5)
"""Widths that the columns have at least, so that lines which come one by one stand under each other."""

_TELLING = frozenset({"handoff", "delegation", "summary", "critique", "revision", "goal", "untrusted_context_received"})
_SAID = ("text", "instruction", "id", "policy")


class Row(NamedTuple):
    """The columns of one call, each already safe to show."""

    time: str
    agent: str
    tool: str
    arguments: str
    outcome: str
    decision: str
    duration: str


def row(call: ToolCall) -> Row:
    """The columns of a call: time of day in UTC, agent, tool, arguments cut, outcome and fault, decision, duration."""
    return Row(
        (call.started_at or "-")[11:23] or "-",
        visible(call.agent or "-"),
        visible(call.name or (call.names[0] if call.names else "-")),
        cut(visible(_arguments(call)), ARGUMENTS),
        (call.outcome or "-") + (f" ({visible(call.fault)})" if call.fault is not None else ""),
        _decision(call),
        "-" if call.duration_ms is None else f"{call.duration_ms:.1f} ms",
    )


def _arguments(call: ToolCall) -> str:
    text = call.arguments_text
    if call.arguments_truncated:
        return f"(cut) {(text or '')[: ARGUMENTS * 2]}"
    if text is not None:
        return text[: ARGUMENTS * 8]
    return "" if call.arguments is None else json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))


def _decision(call: ToolCall) -> str:
    if call.decision == "deny" and call.decision_enforced is False:
        return "deny (not enforced)"
    return visible(call.decision or "-")


def columns(text: str) -> int:
    """How many columns a terminal gives the text."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def cut(text: str, most: int) -> str:
    """The text in at most so many columns; what was cut is an ellipsis."""
    if len(text) <= most and columns(text) <= most:
        return text
    kept: list[str] = []
    room = most - 1
    for sign in text:
        room -= columns(sign)
        if room < 0:
            break
        kept.append(sign)
    return "".join(kept) + "…"


def aligned(line: Row, widths: Iterable[int]) -> str:
    """The columns as one line; the last needs no width."""
    padded = [text + " " * (width - columns(text)) for text, width in zip(line, widths, strict=False)]
    return "  ".join([*padded, line.duration]).rstrip()


def of_event(event: Event) -> Row:
    """The columns of what an agent did beside its calls: what it was, between whom, and what was said."""
    fields = event.fields
    ends = [str(fields[end]) for end in ("from", "to") if end in fields]
    agent = fields.get("agent", fields.get("from"))
    said = {key: value for key, value in fields.items() if key not in ("agent", "from", "to")}
    text = next((value for key in _SAID if isinstance(value := fields.get(key), str)), None)
    accepted = ""
    if event.type == "critique":
        accepted = "accepted: " if fields.get("accepted") is True else "not accepted: "
    return Row(
        (event.time or "-")[11:23] or "-",
        visible(agent if isinstance(agent, str) else "-"),
        visible(" ".join([event.type, *([" -> ".join(ends)] if ends else [])])),
        cut(visible(accepted + (text if text is not None else json.dumps(said, ensure_ascii=False))), ARGUMENTS),
        "reported" if event.reported else "event",
        "-",
        "-",
    )


def is_shown(event: Event) -> bool:
    """Whether an event tells of something between agents, or of one's own mind, that a reader of calls wants to see."""
    return event.type in _TELLING


def as_lines(calls: Iterable[ToolCall], events: Iterable[Event] = ()) -> Iterator[str]:
    """One line a call, and one an event of an agent's, in the order of the trace."""
    told = [(call.seq, row(call)) for call in calls]
    told += [(event.seq, of_event(event)) for event in events if is_shown(event)]
    rows = [line for _, line in sorted(told, key=lambda one: one[0])]
    widths = [max([1, *(columns(line[place]) for line in rows)]) for place in range(len(LEAST))]
    yield from (aligned(line, widths) for line in rows)
