"""Runs of Agent Arena as traces: who called what, who told whom what, and the ticket table rebuilt from the calls.

Refuses to know Agent Arena's graders.
"""

from collections.abc import Iterator, Mapping, Sequence

from harness.arenafile import ArenaError, ArenaEvent, calls_of, customer_of, end_state, of_type, read_events
from harness.evidence import Dump
from harness.finite import finite
from harness.importing.form import Imported, ImportFormatError
from harness.trace import Coverage, Event, Message, ToolCall, Trace
from proxy.spans import JSON

SERVERS = {
    "get_customer_profile": "crm",
    "search_tickets": "ticketing",
    "update_ticket": "ticketing",
    "create_ticket": "ticketing",
}
"""The server of each tool, by the ids of our own scenarios of the same tasks."""
SCHEMA = "CREATE TABLE tickets(id integer primary key, customer_id text, description text, status text, tier text)"
_BY_PLACE = {"debate_critic": ("proposer", "critic")}


def read_arena(text: str, stem: str, where: str) -> Iterator[Imported]:
    """The one run of a file."""
    try:
        events = read_events(text, where)
    except ArenaError as error:
        raise ImportFormatError(str(error)) from error
    start = next(of_type(events, "run_start"), None)
    customer = customer_of(start.text("task_prompt")) if start is not None else None
    calls = calls_of(events)
    databases: dict[str, Dump] = {}
    if customer is not None:
        row = end_state(calls, customer)
        number = _ticket_id(events)
        databases["ticketing"] = Dump((SCHEMA,), {"tickets": {number: {"id": number, **row}}})
    yield Imported(stem, _trace(events), databases)


def _ticket_id(events: Sequence[ArenaEvent]) -> int:
    """The id of the seed's ticket, which differs from run to run: that of the first ticket found, else 1."""
    for event in of_type(events, "tool_result"):
        tickets = event.map("result").get("tickets")
        for ticket in tickets if isinstance(tickets, list) else []:
            number = ticket.get("id") if isinstance(ticket, dict) else None
            if (id_ := finite(number)) is not None:
                return int(id_)
    return 1


def _trace(events: Sequence[ArenaEvent]) -> Trace:
    start = next(of_type(events, "run_start"), None)
    architecture = start.text("architecture") if start is not None else ""
    who = _Agents(events, architecture)
    place = {event.id: seq for seq, event in enumerate(events, 1)}
    messages = [Message("user", start.text("task_prompt"), 1)] if start is not None else []
    told = [Event("architecture", {"name": architecture}, 1, reported=True)] if architecture else []
    for seq, event in enumerate(events, 1):
        found = _event(event, events, who)
        if found is not None:
            told.append(Event(found[0], found[1], seq, event.timestamp, reported=True))
    final = list(of_type(events, "run_finish", "supervisor_finish", "agent_finish"))
    if final:
        messages.append(Message("assistant", final[-1].text("final_output"), place[final[-1].id]))
    calls = tuple(
        ToolCall(
            call.tool,
            dict(call.arguments),
            mcp_server_id=SERVERS.get(call.tool),
            seq=place[call.call.id],
            result_seq=None if call.result is None else place[call.result.id],
            outcome="unanswered" if call.result is None else "ok" if call.good else "tool_error",
            result=None if call.result is None else call.result.payload.get("result"),
            is_error=None if call.result is None else not call.good,
            agent=who.of(call.call),
            started_at=call.call.timestamp,
            names=(call.tool,),
        )
        for call in calls_of(events)
        if not call.delegates
    )
    coverage = Coverage("reported", "reported", "reported", "reported")
    return Trace(coverage, tuple(messages), calls, tuple(told))


def _event(event: ArenaEvent, events: Sequence[ArenaEvent], who: "_Agents") -> tuple[str, dict[str, JSON]] | None:
    match event.type:
        case "peer_handoff":
            text = event.text("handoff_message")
            return "handoff", {"from": event.text("from_agent"), "to": event.text("to_agent"), "text": text}
        case "worker_start":
            return "delegation", {
                "from": "supervisor",
                "to": event.text("worker"),
                "instruction": event.text("instruction"),
            }
        case "worker_finish":
            return "summary", {"from": event.text("worker"), "to": "supervisor", "text": event.text("result")}
        case "critic_review":
            critique = event.text("critique")
            return "critique", {
                "text": critique,
                "accepted": critique.strip().upper().startswith("LGTM"),
                "draft": event.text("draft_answer"),
                "input": event.payload.get("tool_summary"),
            }
        case "revision_start":
            return "revision", {}
        case "llm_call":
            answer = next((one for one in events if one.parent == event.id), None)
            usage = answer.map("usage") if answer is not None else {}
            return "model_call", {
                "agent": who.of(event),
                "in": usage.get("input"),
                "out": usage.get("output"),
                "error": answer is None or answer.type == "error",
            }
        case _:
            return None


class _Agents:
    """Which agent an event belongs to, by the chain of its parents."""

    def __init__(self, events: Sequence[ArenaEvent], architecture: str) -> None:
        self.by_id: Mapping[str, ArenaEvent] = {event.id: event for event in events}
        handoff = next(of_type(events, "peer_handoff"), None)
        names = (handoff.text("from_agent"),) if handoff is not None else _BY_PLACE.get(architecture, ())
        roots = [event for event in of_type(events, "agent_start") if self._is_root(event)]
        self.roots = {event.id: names[place] if place < len(names) else "agent" for place, event in enumerate(roots)}

    def _is_root(self, event: ArenaEvent) -> bool:
        parent = self.by_id.get(event.parent or "")
        return parent is None or parent.type == "run_start"

    def of(self, event: ArenaEvent) -> str:
        """The agent's name."""
        current: ArenaEvent | None = event
        seen: set[str] = set()
        while current is not None and current.id not in seen:
            seen.add(current.id)
            match current.type:
                case "worker_start":
                    return current.text("worker")
                case "supervisor_start":
                    return "supervisor"
                case "peer_handoff":
                    return current.text("to_agent")
                case "revision_start":
                    return "proposer"
                case "agent_start" if current.id in self.roots:
                    return self.roots[current.id]
                case _:
                    current = self.by_id.get(current.parent or "")
        return "agent"
