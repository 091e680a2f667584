"""Recorded runs of Agent Arena: one JSON object a line, read into events.

Refuses to know what they are judged by and what trace they make.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.jsontext import load_json
from proxy.spans import JSON

Object = Mapping[str, JSON]


class ArenaError(ValueError):
    """A file that is no run of Agent Arena: which line, and what is wrong."""


@dataclass(frozen=True, slots=True)
class ArenaEvent:
    """One event. `timestamp` is ISO 8601 text, compared as text; `parent` the event that it belongs to."""

    id: str
    timestamp: str
    type: str
    payload: Object
    parent: str | None

    def text(self, name: str) -> str:
        """A text of the payload, "" where it is none."""
        value = self.payload.get(name)
        return value if isinstance(value, str) else ""

    def map(self, name: str) -> Object:
        """A map of the payload, empty where it is none."""
        value = self.payload.get(name)
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class ArenaCall:
    """A tool call and its first result; `result` is None where none came."""

    call: ArenaEvent
    result: ArenaEvent | None

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.call.text("tool_name")

    @property
    def arguments(self) -> Object:
        """The arguments."""
        return self.call.map("arguments")

    @property
    def good(self) -> bool:
        """Whether it was answered, and not by `error: true`."""
        return self.result is not None and self.result.payload.get("error") is not True

    @property
    def delegates(self) -> bool:
        """Whether it is a supervisor's delegation and no call of a tool."""
        return self.call.payload.get("role") == "supervisor_delegation"

    @property
    def answer(self) -> Object:
        """The result as a map, empty where it is none."""
        return {} if self.result is None else self.result.map("result")


def read_events(text: str, where: str) -> tuple[ArenaEvent, ...]:
    """The events of a file's text; empty lines are skipped. Raises ArenaError, which names `where` and the line."""
    events: list[ArenaEvent] = []
    # JSON may hold other ends of lines than this, such as U+2028, as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value: JSON = load_json(line)
        except ValueError as error:
            raise ArenaError(f"{where}:{number}: is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise ArenaError(f"{where}:{number}: an object is expected")
        kind, payload, parent = value.get("event_type"), value.get("payload"), value.get("parent_event_id")
        if not isinstance(kind, str) or not isinstance(payload, dict):
            raise ArenaError(f"{where}:{number}: event_type and payload are expected")
        identity, moment = str(value.get("event_id")), str(value.get("timestamp"))
        events.append(ArenaEvent(identity, moment, kind, payload, parent if isinstance(parent, str) else None))
    if not events:
        raise ArenaError(f"{where}: has no event")
    return tuple(events)


def calls_of(events: Sequence[ArenaEvent]) -> tuple[ArenaCall, ...]:
    """The tool calls with their results: a result belongs to the first call of its id, and the first one counts."""
    results: dict[str, ArenaEvent] = {}
    for event in events:
        if event.type == "tool_result":
            results.setdefault(event.text("tool_call_id"), event)
    claimed: set[str] = set()
    found: list[ArenaCall] = []
    for event in events:
        if event.type == "tool_call":
            identity = event.text("tool_call_id")
            found.append(ArenaCall(event, None if identity in claimed else results.get(identity)))
            claimed.add(identity)
    return tuple(found)


def of_type(events: Sequence[ArenaEvent], *types: str) -> Iterator[ArenaEvent]:
    """The events of these types, in order."""
    return (event for event in events if event.type in types)


def tokens(events: Sequence[ArenaEvent]) -> tuple[int, int]:
    """Tokens in and out, summed over the answers of the model."""
    usages = [event.map("usage") for event in of_type(events, "llm_response")]
    return sum(_count(usage, "input") for usage in usages), sum(_count(usage, "output") for usage in usages)


def _count(usage: Object, name: str) -> int:
    count = usage.get(name)
    return count if isinstance(count, int) else 0


SEED_TICKETS: Mapping[str, dict[str, JSON]] = {
    "CUST-003": {"customer_id": "CUST-003", "description": "Server is down!", "status": "open", "tier": "unknown"},
    "CUST-004": {"customer_id": "CUST-004", "description": "Service degraded", "status": "open", "tier": "unknown"},
}
"""The one ticket that each task's database starts with, by its customer."""


def customer_of(prompt: str) -> str | None:
    """The customer whose ticket a task is about; None where it names neither."""
    return next((customer for customer in SEED_TICKETS if customer in prompt), None)


def end_state(calls: Sequence[ArenaCall], customer: str) -> dict[str, JSON]:
    """The customer's first ticket after the run, which no trace holds: the good updates over the seed row.

    A status or tier that is there and not empty is written, a description that is there and not null replaces. The
    row's id differs from run to run, so every update is its.
    """
    row = dict(SEED_TICKETS[customer])
    for call in calls:
        if call.tool == "update_ticket" and call.good and call.answer.get("status") == "updated":
            for name in ("status", "tier"):
                if call.arguments.get(name):
                    row[name] = call.arguments[name]
            if call.arguments.get("description") is not None:
                row["description"] = call.arguments["description"]
    return row
