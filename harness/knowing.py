"""Who knew a fact, and where it was lost on its way to the agent that decided (verdicts.md section 6).

Refuses to know verdicts. Whether a fact was lost is told by the wire and by who the agents are; what the agents' events
say of it beyond that is how.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from harness.assertions.arguments import holds
from harness.assertions.names import is_certain
from harness.evidence import Evidence
from harness.knowledge import asks, carries, spoken, states
from harness.received import MESSAGE, described, is_offer, is_told
from harness.roster import Roster
from harness.scenariofile import FactEntry
from harness.sent import leaves
from harness.trace import Event, ToolCall
from harness.verdict import Mode
from proxy.spans import JSON

_BETWEEN = ("handoff", "delegation", "critique")
"""Events by which an agent tells another something, or is reviewed by it."""
_ASKED = ("mcp_resource_read", "mcp_prompt_get")
"""Events by which an agent asked a server for what is no tool's."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A fact that the deciding agent did not know. `mode` is None where nobody can tell how it was lost."""

    fact: str
    mode: Mode | None


class Knowing:
    """One fact in one trial: who read it, who was told, and who decided."""

    def __init__(self, fact: FactEntry, evidence: Evidence, architecture: str | None) -> None:
        """`architecture` is what the scenario says of it; the evidence's roster knows better, an event does not."""
        self.fact, self.evidence = fact, evidence
        # Where there is a wire, a target's own word makes nobody know anything.
        seen = evidence.trace.coverage.tool_calls == "wire"
        self.events = [event for event in evidence.trace.events if not (seen and event.reported)]
        self.roster = evidence.roster
        told = next((str(event.fields.get("name")) for event in self._of("architecture")), None)
        self.heard = self.roster is None or told is not None
        """False where the events of our own agents are gone: then nothing follows from one that is not there."""
        self.architecture = (None if self.roster is None else self.roster.architecture) or architecture or told
        self.readers: dict[str, int] = {}
        for call in evidence.trace.tool_calls:
            if self._reads(call) and carries(call.result, fact):
                self._note_reader(_agent(call), call.seq if call.result_seq is None else call.result_seq)
        for event in self._of(MESSAGE):
            if self._is_told_by(event):
                self._note_reader(_whose(event), event.seq)
        self.known = dict(self.readers)
        for event in self._of("handoff", "delegation", "summary"):
            if self._states(_text(event)):
                self.known.setdefault(str(event.fields.get("to")), event.seq)

        deciding = self._deciding_calls()
        self.deadline = deciding[-1].seq if deciding else None
        """Where the fact was decided by; None where nothing was."""

    def _note_reader(self, agent: str, at: int) -> None:
        self.readers[agent] = min(self.readers.get(agent, at), at)

    def _is_told_by(self, event: Event) -> bool:
        """Whether a server's message, such as a resource, tells the fact: of whom the call would have asked, as the
        call's result or as a message to an agent would."""
        if not is_told(event) or is_offer(event):
            return False
        content = event.fields.get("content")
        said = spoken(content)
        about = f"{described(event)}\n{said}".casefold()
        if not all(text.casefold() in about for text in leaves(dict(self.fact.known.arguments))):
            return False
        known_there = event.fields.get("server_id") == self.fact.known.server
        return (known_there and carries(content, self.fact)) or self._states(said)

    def in_time(self) -> frozenset[str]:
        """Who had it before what it decides was done; and who was shown it to judge a draft by."""
        shown = {_critic(event) for event in self._of("critique") if self._states(_input(event))}
        return frozenset({name for name, at in self.known.items() if self._is_in_time(at)} | shown)

    def _is_in_time(self, at: int) -> bool:
        return self.deadline is None or at <= self.deadline

    def _of(self, *types: str) -> list[Event]:
        return [event for event in self.events if event.type in types]

    def _states(self, text: str) -> bool:
        return states(text, self.fact, self.evidence.user_message)

    def _reads(self, call: ToolCall) -> bool:
        known = self.fact.known
        named = is_certain(f"mcp/{known.server}/{known.tool}", call)
        return named != "no" and holds(call, dict(known.arguments)) == "yes"

    def _deciding_calls(self) -> list[ToolCall]:
        before = self.fact.before
        if before is None:
            return []
        name = f"mcp/{before.server}/{before.tool}"
        return [call for call in self.evidence.trace.tool_calls if is_certain(name, call) != "no"]

    def decider(self) -> str | None:
        """The agent that decides by the fact; None where nobody can tell."""
        if self.roster is not None:
            return self.roster.decider
        handed, delegated = self._of("handoff"), self._of("delegation")
        match self.architecture:
            case "peer_to_peer" if handed:
                return str(handed[-1].fields.get("to"))
            case "supervisor_worker" if delegated:
                return str(delegated[0].fields.get("from"))
        deciding = self._deciding_calls()
        if deciding:
            return _agent(deciding[-1])
        agents = {_agent(call) for call in self.evidence.trace.tool_calls}
        return agents.pop() if len(agents) == 1 else None

    def loss(self) -> Loss | None:
        """How the fact was lost; None where the decider knew it in time, or coordination is not at fault."""
        decider = self.decider()
        at = None if decider is None else self.known.get(decider)
        if at is not None and self._is_in_time(at):
            return None
        if self.roster is None and self._critic_missed():
            return Loss(self.fact.id, "critic_missed_error")
        if not self.readers:
            return self._never_read() if self.roster is None else self._out_of_reach(self.roster)
        others = {reader for reader in self.readers if reader != decider}
        if others:
            return Loss(self.fact.id, self._mode(others))
        return None if self.roster is None else self._reviewed(self.roster)

    def _out_of_reach(self, roster: Roster) -> Loss | None:
        """Nobody read it: whether anybody who could was ever set to work. Who is opens its connections."""
        if self.evidence.doubts or self.evidence.trace.gaps:
            return None
        match roster.architecture:
            case "supervisor_worker" if not self._at_work() & roster.reaching(self.fact.known.server):
                return Loss(self.fact.id, "request_loss" if self._of("delegation") else self._never_fired())
            case "peer_to_peer" if roster.agents[roster.decider] and roster.decider not in self._at_work():
                return Loss(self.fact.id, self._never_fired())
            case "debate_critic" if len(roster.agents) == 1:
                return Loss(self.fact.id, "machinery_never_fired")
            case _:
                return None

    def _reviewed(self, roster: Roster) -> Loss | None:
        """The decider alone read it, and too late; the critic is shown all that it read."""
        if roster.architecture != "debate_critic":
            return None
        if len(roster.agents) == 1:
            return Loss(self.fact.id, "machinery_never_fired")
        return Loss(self.fact.id, "critic_missed_error" if self._critic_missed() else None)

    def _at_work(self) -> frozenset[str]:
        """The agents of which a connection was seen."""
        opened = [event for event in self._of("mcp_connection_initialized") if not event.reported]
        return frozenset(str(event.fields.get("agent")) for event in opened) | frozenset(
            _agent(call) for call in self.evidence.trace.tool_calls
        )

    def _never_fired(self) -> Mode | None:
        return "machinery_never_fired" if self.heard and not self._of(*_BETWEEN) else None

    def _never_read(self) -> Loss | None:
        delegated = self._of("delegation")
        server = self.fact.known.server
        able = {_agent(call) for call in self.evidence.trace.tool_calls if call.mcp_server_id == server}
        able |= {_whose(event) for event in self._of(*_ASKED) if event.fields.get("server_id") == server}
        if delegated:
            lost = all(event.fields.get("to") not in able for event in delegated)
            return Loss(self.fact.id, "request_loss") if lost else None
        if self._several() and not self._of("handoff", "critique"):
            return Loss(self.fact.id, "machinery_never_fired")
        return None

    def _several(self) -> bool:
        return self.architecture not in (None, "single_agent")

    def _mode(self, readers: set[str]) -> Mode | None:
        for event in self._of("handoff"):
            if event.fields.get("from") in readers and not self._states(_text(event)):
                return "handoff_data_loss"
        for event in self._of("summary"):
            worker = event.fields.get("from")
            if worker in readers and not self._states(_text(event)):
                asked = [one for one in self._of("delegation") if one.fields.get("to") == worker]
                return "worker_summary_loss" if any(asks(_text(one), self.fact) for one in asked) else "request_loss"
        return self._never_fired() if self._several() else None

    def _critic_missed(self) -> bool:
        """Whether a critic that was shown the fact accepted a draft that does not state it."""
        for event in self._of("critique"):
            draft = event.fields.get("draft")
            if event.fields.get("accepted") is True and isinstance(draft, str) and self._states(_input(event)):
                return not self._states(draft)
        return False


def _agent(call: ToolCall) -> str:
    return call.agent or "agent"


def _whose(event: Event) -> str:
    """Whose connection an event is of, as `_agent` names it."""
    agent = event.fields.get("agent")
    return agent if isinstance(agent, str) else "agent"


def _critic(event: Event) -> str:
    agent = event.fields.get("agent")
    return agent if isinstance(agent, str) else "critic"


def _input(event: Event) -> str:
    shown = event.fields.get("input")
    return shown if isinstance(shown, str) else json.dumps(shown)


def _text(event: Event) -> str:
    fields: Mapping[str, JSON] = event.fields
    return " ".join(text for name in ("text", "instruction") if isinstance(text := fields.get(name), str))
