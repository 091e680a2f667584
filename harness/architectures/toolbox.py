"""The tools that one agent has: those of its servers, and those of the architecture.

Refuses to know models, and what lies between a client and its server.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from harness.architectures.fetching import Fetching, fetching_tools
from harness.models.model import ToolOffer, ToolUse
from harness.targets.client import Client
from harness.targets.ending import LimitError
from proxy.spans import JSON

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_NAME = 64
"""Characters of a tool's name that providers take."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to, as the model is told it. `done`: the agent has nothing more to do."""

    text: str
    is_error: bool = False
    done: bool = False


@dataclass(frozen=True, slots=True)
class OwnTool:
    """A tool of the architecture: no server has it, and no call of it crosses the wire."""

    offer: ToolOffer
    use: Callable[[Mapping[str, JSON]], Outcome]


@dataclass(slots=True)
class CallBudget:
    """How many tool calls all agents of a trial may make; None is no limit."""

    most: int | None
    made: int = 0

    def spend(self) -> None:
        """One more call. Raises LimitError."""
        if self.most is not None and self.made >= self.most:
            raise LimitError(f"the agents would make call {self.made + 1}; limits.tool_calls is {self.most}")
        self.made += 1


@dataclass(slots=True)
class Toolbox:
    """`log` has a line for each call that went to a server: what was called, and what it answered. The same for what
    was read there, which is no tool call and spends nothing."""

    budget: CallBudget
    offers: list[ToolOffer] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    _remote: dict[str, tuple[Client, str]] = field(default_factory=dict)
    _own: dict[str, OwnTool] = field(default_factory=dict)
    _fetching: dict[str, Fetching] = field(default_factory=dict)

    def use(self, use: ToolUse) -> Outcome:
        """Carry a call out. Raises LimitError, and ClientError where the server cannot be talked to."""
        if use.problem:
            return Outcome(use.problem, is_error=True)
        own = self._own.get(use.tool)
        if own is not None:
            return own.use(use.arguments)
        fetching, remote = self._fetching.get(use.tool), self._remote.get(use.tool)
        if fetching is not None:
            answer = fetching.take(use.arguments)
        elif remote is not None:
            client, tool = remote
            self.budget.spend()
            answer = client.call_tool(tool, use.arguments)
        else:
            return Outcome(f"There is no tool {use.tool!r}.", is_error=True)
        text = answer.text
        if not text and answer.result is not None and "structuredContent" in answer.result:
            text = json.dumps(answer.result["structuredContent"], ensure_ascii=False)
        arguments = json.dumps(use.arguments, ensure_ascii=False)
        self.log.append(f"- {use.tool}({arguments}) -> {'error: ' if answer.failed else ''}{text}")
        return Outcome(text, is_error=answer.failed)


def open_toolbox(clients: Mapping[str, Client], own: tuple[OwnTool, ...], budget: CallBudget) -> Toolbox:
    """Open every connection and collect the tools. Raises ClientError."""
    box = Toolbox(budget)
    found: list[tuple[Client, dict[str, JSON]]] = []
    for client in clients.values():
        client.initialize()
        found += [(client, tool) for tool in client.tool_definitions()]
    names = [str(tool["name"]) for _, tool in found]
    taken = {tool.offer.name for tool in own}
    for client, tool in found:
        bare = str(tool["name"])
        shared = names.count(bare) > 1 or bare in taken
        name = _unused(f"{client.server}__{bare}" if shared else bare, {*box._remote, *taken})
        schema = tool.get("inputSchema")
        parameters: Mapping[str, JSON] = schema if isinstance(schema, dict) else {"type": "object"}
        description = tool.get("description")
        box._remote[name] = client, bare
        box.offers.append(ToolOffer(name, description if isinstance(description, str) else "", parameters))
    fetching = [one for client in clients.values() for one in fetching_tools(client)]
    kinds = [one.offer.name for one in fetching]
    for one in fetching:
        bare = one.offer.name
        shared = kinds.count(bare) > 1 or bare in names or bare in taken
        name = _unused(f"{one.server}__{bare}" if shared else bare, {*box._remote, *box._fetching, *taken})
        box._fetching[name] = one
        box.offers.append(replace(one.offer, name=name))
    for tool_of_ours in own:
        box._own[tool_of_ours.offer.name] = tool_of_ours
        box.offers.append(tool_of_ours.offer)
    return box


def _unused(name: str, taken: set[str]) -> str:
    """The name as providers take it, with a number where it is taken."""
    fitting = _NOT_IN_A_NAME.sub("_", name)[:LONGEST_NAME]
    number = 2
    while fitting in taken:
        fitting = f"{fitting[: LONGEST_NAME - 4]}_{number}"
        number += 1
    return fitting
