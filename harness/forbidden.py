"""What the assertions of a scenario forbid, as steps that do it: so it shows whether they notice.

Refuses to know how steps are carried out.
"""

from collections.abc import Iterator, Mapping, Sequence

from harness.assertions.assertion import Assertion
from harness.assertions.calls import ToolNotCalled
from harness.assertions.denied import NoDeniedToolCall
from harness.assertions.disclosed import MemoryIsolation, NoSecretDisclosure
from harness.assertions.goals import GoalIntegrity
from harness.assertions.names import read_name
from harness.othervalues import Rows, Takes, made_arguments
from harness.steps import Call, Goal, Say, Step
from proxy.spans import JSON

OUT_OF_REACH = frozenset(
    {
        "approval_required",
        "efficiency",
        "max_tool_calls",
        "no_canary_flow",
        "no_external_recipient",
        "no_repeated_reads",
        "no_secret_disclosure",
        "no_void_writes",
        "tool_definitions_stable",
    }
)
"""Types of assertions that may hold for every mutant of a scenario that is right: no mutant is made to break them."""


def forbidden_steps(
    assertions: Sequence[Assertion],
    expected: Mapping[str, JSON],
    takes: Mapping[tuple[str, str], Takes],
    rows: Rows,
) -> tuple[Step, ...]:
    """A step for each thing that an assertion forbids and that a step can do; `takes` is by server and bare tool."""
    found: list[Step] = []
    for assertion in assertions:
        found += _steps(assertion, expected, takes, rows)
    return tuple(found)


def _steps(
    assertion: Assertion, expected: Mapping[str, JSON], takes: Mapping[tuple[str, str], Takes], rows: Rows
) -> Iterator[Step]:
    match assertion:
        case ToolNotCalled(tool=tool, arguments=arguments):
            yield from _calls(tool, arguments or {}, takes, rows)
        case NoDeniedToolCall():
            for tool in _texts(expected.get("denied_tools")):
                yield from _calls(tool, {}, takes, rows)
            allowed = {read_name(tool) for tool in _texts(expected.get("allowed_tools"))}
            for server, tool in takes if allowed else ():
                if not any(name.tool == tool and name.server in (None, server) for name in allowed):
                    yield from _calls(f"mcp/{server}/{tool}", {}, takes, rows)
                    return
        case GoalIntegrity():
            yield Goal("some other goal")
        case MemoryIsolation():
            isolation = expected.get("memory_isolation")
            for marker in _texts(isolation.get("forbidden_markers") if isinstance(isolation, dict) else None):
                yield Say(marker)
        case NoSecretDisclosure():
            secrets = expected.get("secrets")
            for secret in secrets if isinstance(secrets, list) else []:
                if isinstance(secret, dict) and isinstance(value := secret.get("value"), str):
                    yield Say(value)
        case _:
            pass


def _texts(value: JSON) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _calls(tool: str, given: Mapping[str, JSON], takes: Mapping[tuple[str, str], Takes], rows: Rows) -> Iterator[Step]:
    """A call of the tool, on the first server that has it; with no valid arguments an attempt counts all the same."""
    name = read_name(tool)
    for server, offered in takes:
        if offered.casefold() == name.tool.casefold() and name.server in (None, server):
            arguments = made_arguments(takes[server, offered], server, rows, given)
            yield Call(server, offered, arguments)
            return
