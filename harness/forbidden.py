"""What the assertions of a scenario forbid, as steps that do it: so it shows whether they notice.

Refuses to know how steps are carried out.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.assertions.approval import ApprovalRequired
from harness.assertions.assertion import Assertion
from harness.assertions.calls import ToolNotCalled
from harness.assertions.canary import NoCanaryFlow
from harness.assertions.denied import NoDeniedToolCall
from harness.assertions.disclosed import MemoryIsolation, NoSecretDisclosure
from harness.assertions.economy import Efficiency, MaxToolCalls, NoRepeatedReads, NoVoidWrites
from harness.assertions.goals import GoalIntegrity
from harness.assertions.names import read_name
from harness.assertions.recipients import KEYS, NoExternalRecipient
from harness.mutants import Reference, Wrong
from harness.othervalues import STRANGER, made_arguments
from harness.steps import Call, Goal, Say
from proxy.spans import JSON

MOST = 200
"""Calls more than the reference's that a mutant makes: a limit that is further off counts as none."""

NEED_AIM = frozenset(
    {
        "approval_required",
        "no_canary_flow",
        "no_external_recipient",
        "no_repeated_reads",
        "no_secret_disclosure",
        "no_void_writes",
        "tool_definitions_stable",
    }
)
"""Types of assertions that may hold in every mutant of a scenario that is right, unless one is aimed at them."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the steps are made of: `expected` of the scenario, its reference, the canaries that the results of its calls
    carried, by the call's place, and the environment that secrets may come from."""

    expected: Mapping[str, JSON]
    reference: Reference
    carried: Mapping[int, str]
    environment: Mapping[str, str]


def forbidden_steps(assertions: Sequence[Assertion], known: Known) -> tuple[Wrong, ...]:
    """What each assertion forbids and steps can do."""
    return tuple(wrong for aim, assertion in enumerate(assertions) for wrong in _wrongs(assertion, aim, known))


def _wrongs(assertion: Assertion, aim: int, known: Known) -> Iterator[Wrong]:
    expected, takes = known.expected, known.reference.takes
    match assertion:
        case ToolNotCalled(tool=tool, arguments=arguments):
            yield from _calls(tool, arguments or {}, aim, known)
        case ApprovalRequired(action=tool):
            yield from _calls(tool, {}, aim, known)
        case NoDeniedToolCall():
            for tool in _texts(expected.get("denied_tools")):
                yield from _calls(tool, {}, aim, known)
            allowed = {read_name(tool) for tool in _texts(expected.get("allowed_tools"))}
            for server, tool in takes if allowed else ():
                if not any(name.tool == tool and name.server in (None, server) for name in allowed):
                    yield from _calls(f"mcp/{server}/{tool}", {}, aim, known)
                    return
        case GoalIntegrity():
            yield Wrong((Goal("some other goal"),), aim)
        case MemoryIsolation():
            isolation = expected.get("memory_isolation")
            for marker in _texts(isolation.get("forbidden_markers") if isinstance(isolation, dict) else None):
                yield Wrong((Say(marker),), aim)
        case NoSecretDisclosure():
            for secret in _secrets(known):
                yield Wrong((Say(secret),), aim)
        case NoExternalRecipient():
            yield from _to_stranger(aim, known)
        case NoCanaryFlow():
            yield from _flow(assertion, aim, known)
        case MaxToolCalls(max=most):
            yield from _too_many(most, aim, known)
        case Efficiency(minimum=minimum, at_least=float() as share):
            yield from _too_many(math.floor(minimum / share), aim, known)
        case NoRepeatedReads(tools=tools):
            yield from _again(tools, aim, known)
        case NoVoidWrites(tools=tools):
            for place, step in _own(known, tools):
                if place in known.reference.writes:
                    yield Wrong((step,), aim, place + 1, "twice", f"step {place + 1}, {step.tool}: done twice")
        case _:
            pass


def _secrets(known: Known) -> Iterator[str]:
    """The secrets that can be said; of a pattern nobody can."""
    secrets = known.expected.get("secrets")
    for secret in secrets if isinstance(secrets, list) else []:
        match secret:
            case {"value": str() as value}:
                yield value
            case {"env": str() as variable} if known.environment.get(variable, "").strip():
                yield known.environment[variable]
            case _:
                pass


def _texts(value: JSON) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _calls(tool: str, given: Mapping[str, JSON], aim: int, known: Known) -> Iterator[Wrong]:
    """A call of the tool, on the first server that has it; with no valid arguments an attempt counts all the same."""
    takes, name = known.reference.takes, read_name(tool.strip())
    for server, offered in takes:
        if offered.casefold() == name.tool.casefold() and name.server in (None, server):
            arguments = made_arguments(takes[server, offered], server, known.reference.rows, given)
            yield Wrong((Call(server, offered, arguments),), aim)
            return


def _own(known: Known, tools: Sequence[str] | None) -> Iterator[tuple[int, Call]]:
    """The calls of the reference that are of these tools, with their places."""
    wanted = None if tools is None else [read_name(tool.strip().casefold()) for tool in tools]
    for place, step in enumerate(known.reference.steps):
        if isinstance(step, Call) and (wanted is None or any(_is_of(name.server, name.tool, step) for name in wanted)):
            yield place, step


def _is_of(server: str | None, tool: str, call: Call) -> bool:
    return tool == call.tool.casefold() and server in (None, call.server.casefold())


def _to_stranger(aim: int, known: Known) -> Iterator[Wrong]:
    """A call that addresses somebody whom no list has: like one of the reference, else of any tool that can."""
    entries = [text for key in ("allowed_recipients", "allowed_domains") for text in _texts(known.expected.get(key))]
    taken = {text.strip().casefold().rpartition("@")[2] for text in entries}
    person, _, domain = STRANGER.partition("@")
    free = next(one for one in (domain, *(f"elsewhere{n}.example" for n in range(2, 1000))) if one not in taken)
    reference = known.reference
    own = [(step.server, step.tool, dict(step.arguments)) for _, step in _own(known, None)]
    any_tool: list[tuple[str, str, dict[str, JSON]]] = [(server, tool, {}) for server, tool in reference.takes]
    for server, tool, given in (*own, *any_tool):
        takes = reference.takes.get((server, tool))
        for name in takes.properties if takes is not None else ():
            if takes is None or re.sub(r"[\s_-]", "", name).casefold() not in KEYS:
                continue
            values: tuple[JSON, ...] = ([f"{person}@{free}"], f"{person}@{free}")
            for value in values:
                arguments = made_arguments(takes, server, reference.rows, {**given, name: value})
                if takes.allows(arguments):
                    yield Wrong((Call(server, tool, arguments),), aim)
                    return
    for server, tool, given in any_tool[:1]:
        # What no tool takes may be tried all the same.
        made = made_arguments(reference.takes[server, tool], server, reference.rows, given)
        yield Wrong((Call(server, tool, {**made, "to": f"{person}@{free}"}),), aim)


def _flow(assertion: NoCanaryFlow, aim: int, known: Known) -> Iterator[Wrong]:
    """After a call that was answered with a canary, one of another server that is told it."""
    allowed = {(flow.from_, flow.to) for flow in assertion.allow}
    for place, canary in known.carried.items():
        step = known.reference.steps[place]
        for (server, tool), takes in known.reference.takes.items():
            if isinstance(step, Call) and server != step.server and (step.server, server) not in allowed:
                made = made_arguments(takes, server, known.reference.rows, {})
                name = next((one for one, value in made.items() if isinstance(value, str)), "note")
                what = f"after step {place + 1} {tool} of {server} is told what {step.server} answered"
                call = Call(server, tool, {**made, name: canary})
                yield Wrong((call,), aim, place + 1, what=what)
                return


def _reads(known: Known) -> Iterator[tuple[int, Call]]:
    return ((place, step) for place, step in _own(known, None) if place not in known.reference.writes)


def _too_many(most: int, aim: int, known: Known) -> Iterator[Wrong]:
    """A read, else any call, done again until there are more than `most` calls like it."""
    for place, step in (*_reads(known), *_own(known, None)):
        if most <= MOST:
            what = f"step {place + 1}, {step.tool}: done {most + 1} times"
            yield Wrong((step,) * most, aim, place + 1, "repeated", what)
        return


def _again(tools: Sequence[str] | None, aim: int, known: Known) -> Iterator[Wrong]:
    """A read of the reference done again at once, else one by any tool that says that it reads."""
    for place, step in _own(known, tools):
        if place not in known.reference.writes:
            yield Wrong((step,), aim, place + 1, "repeated", f"step {place + 1}, {step.tool}: done again at once")
            return
    wanted = None if tools is None else [read_name(tool.strip().casefold()) for tool in tools]
    for (server, tool), takes in known.reference.takes.items():
        call = Call(server, tool, made_arguments(takes, server, known.reference.rows, {}))
        if takes.reads and (wanted is None or any(_is_of(name.server, name.tool, call) for name in wanted)):
            yield Wrong((call, call), aim, kind="repeated", what=f"first of all {tool}, twice")
            return
