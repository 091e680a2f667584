"""Where an assertion names tools: every field of every type that does, and whether case counts in it.

Refuses to know which tools there are.
"""

from collections.abc import Iterator
from typing import NamedTuple

from harness.assertions.approval import ApprovalRequired
from harness.assertions.assertion import Assertion
from harness.assertions.calls import ToolCalled, ToolNotCalled
from harness.assertions.claims import Claims
from harness.assertions.economy import NoRepeatedReads, NoVoidWrites
from harness.assertions.matcher import ToolCalls
from harness.assertions.recipients import NoExternalRecipient
from proxy.problem import Path


class NamedTool(NamedTuple):
    """A tool's name, bare or canonical, by its path in the assertion. `fold`: case and blanks around do not count."""

    path: Path
    tool: str
    fold: bool


def tools_named(assertion: Assertion) -> Iterator[NamedTool]:
    """The tools that an assertion names."""
    match assertion:
        case ToolCalled(tool=tool):
            yield NamedTool(("tool",), tool, fold=False)
        case ToolNotCalled(tool=tool):
            yield NamedTool(("tool",), tool, fold=True)
        case ApprovalRequired(action=action):
            yield NamedTool(("action",), action, fold=True)
        case NoRepeatedReads(tools=tools) | NoVoidWrites(tools=tools):
            for place, tool in enumerate(tools or []):
                yield NamedTool(("tools", place), tool, fold=True)
        case NoExternalRecipient(outbound_tools=tools):
            for place, tool in enumerate(tools):
                yield NamedTool(("outbound_tools", place), tool, fold=True)
        case ToolCalls(expected=expected):
            for place, wanted in enumerate(expected or []):
                yield NamedTool(("expected", place, "tool"), wanted.tool, wanted.ignore_case)
        case Claims(claims=claims):
            for place, claim in enumerate(claims):
                if claim.then.tool is not None:
                    yield NamedTool(("claims", place, "then", "tool"), claim.then.tool, fold=False)
        case _:
            pass
