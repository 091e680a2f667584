"""Who knew a fact, and where it was lost on its way to the agent that decided (verdicts.md section 6).

Refuses to know verdicts. A fact that is not stated is never taken for denied.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.assertions.arguments import holds, is_scalar_equal
from harness.assertions.names import is_certain
from harness.clauses import clauses, phrase, plain
from harness.evidence import Evidence
from harness.scenariofile import FactEntry
from harness.trace import Event, ToolCall
from harness.verdict import Mode
from proxy.spans import JSON

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_YES = frozenset({"true", "yes", "1", "on", "active"})
_NO = frozenset({"false", "no", "0", "off", "none"})


@dataclass(frozen=True, slots=True)
class Loss:
    """A fact that the deciding agent did not know. `mode` is None where nobody can tell how it was lost."""

    fact: str
    mode: Mode | None


def value_at(value: JSON, path: str) -> tuple[JSON] | None:
    """The value at a path such as `$.a.b[0]`, in a tuple; None where there is none."""
    for name, place in _STEP.findall(path):
        match value:
            case dict() if name and name in value:
                value = value[name]
            case list() if place and int(place) < len(value):
                value = value[int(place)]
            case _:
                return None
    return (value,)


def carries(result: JSON, fact: FactEntry) -> bool:
    """Whether a tool's result holds the fact: in its structured content, a text block that is JSON, or as it is."""
    return any(
        found is not None and is_scalar_equal(found[0], fact.value)
        for found in (value_at(body, fact.known.path) for body in _bodies(result))
    )


def _bodies(result: JSON) -> Iterator[JSON]:
    yield result
    if isinstance(result, str):
        yield from _parsed(result)
    if isinstance(result, dict):
        yield result.get("structuredContent")
        content = result.get("content")
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and isinstance(text := block.get("text"), str):
                yield from _parsed(text)


def _parsed(text: str) -> Iterator[JSON]:
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return
    yield value


def states(text: str, fact: FactEntry, task: str) -> bool:
    """Whether a message states the fact: as a key with its value, or by a phrase that is not denied or supposed.

    Copies of the task are taken out first: the task itself may speak of the fact.
    """
    told = " ".join(plain(text).casefold().split())
    copy = " ".join(plain(task).casefold().split())
    told = told.replace(copy, " ") if copy else told
    return _has_key(told, fact) or any(
        clause.states(found.start())
        for words in fact.stated_as
        for clause in clauses(told)
        for found in phrase(words).finditer(clause.text)
    )


def _has_key(told: str, fact: FactEntry) -> bool:
    """A key equal to the last step of the path, case and separators alike, with the value in any spelling."""
    steps = [name for name, _ in _STEP.findall(fact.known.path) if name]
    if not steps:
        return False
    key = r"[\s_-]*".join(re.escape(word) for word in re.split(r"[\s_-]+", steps[-1].casefold()))
    pattern = rf"(?<!\w)[\"']?{key}[\"']?\s*[:=]\s*[\"']?([^\s,;\"'}}\])]+)"
    return any(_spells(found[1].rstrip("."), fact.value) for found in re.finditer(pattern, told))


def _spells(text: str, value: JSON) -> bool:
    match value:
        case bool():
            return text in (_YES if value else _NO)
        case int() | float():
            try:
                return float(text) == value
            except ValueError:
                return False
        case str():
            return text == value.casefold()
        case None:
            return text in ("null", "none")
        case _:
            return False


def asks(text: str, fact: FactEntry) -> bool:
    """Whether a request asks for the fact."""
    told = " ".join(plain(text).casefold().split())
    return any(phrase(words).search(told) is not None for words in fact.asked_as)


class Knowing:
    """One fact in one trial: who read it, who was told, and who decided."""

    def __init__(self, fact: FactEntry, evidence: Evidence, architecture: str | None) -> None:
        self.fact, self.evidence = fact, evidence
        self.events = evidence.trace.events
        self.architecture = architecture or next(
            (str(event.fields.get("name")) for event in self.events if event.type == "architecture"), None
        )
        self.readers: dict[str, int] = {}
        for call in evidence.trace.tool_calls:
            if self._reads(call) and carries(call.result, fact):
                self.readers.setdefault(_agent(call), call.seq if call.result_seq is None else call.result_seq)
        self.known = dict(self.readers)
        for event in self._of("handoff", "delegation", "summary"):
            to = str(event.fields.get("to"))
            if states(_text(event), fact, evidence.user_message):
                self.known.setdefault(to, event.seq)

    def _of(self, *types: str) -> list[Event]:
        return [event for event in self.events if event.type in types]

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
        deciding = self._deciding_calls()
        deadline = deciding[-1].seq if deciding else None
        at = None if decider is None else self.known.get(decider)
        if at is not None and (deadline is None or at <= deadline):
            return None
        if self._critic_missed():
            return Loss(self.fact.id, "critic_missed_error")
        if not self.readers:
            return self._never_read()
        others = {reader for reader in self.readers if reader != decider}
        if not others:
            return None
        return Loss(self.fact.id, self._mode(others))

    def _never_read(self) -> Loss | None:
        delegated = self._of("delegation")
        able = {_agent(call) for call in self.evidence.trace.tool_calls if call.mcp_server_id == self.fact.known.server}
        if delegated:
            lost = all(event.fields.get("to") not in able for event in delegated)
            return Loss(self.fact.id, "request_loss") if lost else None
        several = self.architecture not in (None, "single_agent")
        if several and not self._of("handoff", "critique"):
            return Loss(self.fact.id, "machinery_never_fired")
        return None

    def _mode(self, readers: set[str]) -> Mode | None:
        for event in self._of("handoff"):
            if event.fields.get("from") in readers and not states(_text(event), self.fact, self.evidence.user_message):
                return "handoff_data_loss"
        for event in self._of("summary"):
            worker = event.fields.get("from")
            if worker in readers and not states(_text(event), self.fact, self.evidence.user_message):
                asked = [one for one in self._of("delegation") if one.fields.get("to") == worker]
                return "worker_summary_loss" if any(asks(_text(one), self.fact) for one in asked) else "request_loss"
        several = self.architecture not in (None, "single_agent")
        if several and not self._of("handoff", "delegation", "critique"):
            return "machinery_never_fired"
        return None

    def _critic_missed(self) -> bool:
        """Whether a critic that was shown the fact accepted a draft that does not state it."""
        task = self.evidence.user_message
        for event in self._of("critique"):
            shown, draft = event.fields.get("input"), event.fields.get("draft")
            told = shown if isinstance(shown, str) else json.dumps(shown)
            if event.fields.get("accepted") is True and isinstance(draft, str) and states(told, self.fact, task):
                return not states(draft, self.fact, task)
        return False


def _agent(call: ToolCall) -> str:
    return call.agent or "agent"


def _text(event: Event) -> str:
    fields: Mapping[str, JSON] = event.fields
    return " ".join(text for name in ("text", "instruction") if isinstance(text := fields.get(name), str))
