"""The steps of a scripted agent, and of a reference: what they say, and how they are read from a file.

Refuses to know how a step is carried out.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import Field, JsonValue

from harness.intake import Entry, Intake
from harness.offer import Tools, missing_tool
from harness.references import NAME, check_references
from proxy.glob import check_server_id, decode_tool_name, encode_tool_name
from proxy.problem import Path as FieldPath
from proxy.problem import describe
from proxy.spans import JSON

KINDS = ("call", "read", "prompt", "say", "goal")
"""The fields of which a step has exactly one."""


@dataclass(frozen=True, slots=True)
class Call:
    """Call `tool` (its bare name) of `server`. `arguments` may hold references; later steps call the answer `name`.

    `give_up_after` are seconds after which the agent cancels a call that has no answer, and takes it for failed.
    """

    server: str
    tool: str
    arguments: dict[str, JSON]
    name: str | None = None
    expect_error: bool = False
    optional: bool = False
    give_up_after: float | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """Take what is no tool from `server`: the resource of the URI `what`, or the prompt of the name `what`.

    `arguments` are those of a prompt; the rest is as for a call.
    """

    server: str
    kind: Literal["resource", "prompt"]
    what: str
    arguments: dict[str, JSON] = field(default_factory=dict)
    name: str | None = None
    expect_error: bool = False
    optional: bool = False

    @property
    def canonical(self) -> str:
        """`mcp/SERVER/resource:URI` or `mcp/SERVER/prompt:NAME`."""
        return f"mcp/{self.server}/{self.kind}:{self.what}"


@dataclass(frozen=True, slots=True)
class Say:
    """Say `text`, which may hold references; what is said last is the final answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Goal:
    """State the goal `id`: an event, the agent's own word."""

    id: str


Step: TypeAlias = Call | Fetch | Say | Goal


class CallEntry(Entry):
    """A step that calls a tool, by its canonical name."""

    call: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    name: str | None = Field(default=None, alias="as")
    expect_error: bool = False
    optional: bool = False
    give_up_after: float | None = Field(default=None, gt=0)


class ReadEntry(Entry):
    """A step that reads a resource, by its canonical name."""

    read: str
    name: str | None = Field(default=None, alias="as")
    expect_error: bool = False
    optional: bool = False


class PromptEntry(Entry):
    """A step that takes a prompt, by its canonical name; MCP gives prompts arguments that are texts."""

    prompt: str
    arguments: dict[str, str] = Field(default_factory=dict)
    name: str | None = Field(default=None, alias="as")
    expect_error: bool = False
    optional: bool = False


class SayEntry(Entry):
    """A step that says something."""

    say: str


class GoalEntry(Entry):
    """A step that states a goal."""

    goal: str = Field(min_length=1)


StepEntry: TypeAlias = CallEntry | ReadEntry | PromptEntry | SayEntry | GoalEntry
"""A step as it is written."""


def split_tool(canonical: str) -> tuple[str, str] | None:
    """Server id and bare name of a tool's canonical name, None when it is none."""
    room, _, rest = canonical.partition("/")
    server, _, name = rest.partition("/")
    bare = decode_tool_name(name)
    if room != "mcp" or check_server_id(server) is not None or not name or encode_tool_name(bare) != name:
        return None
    return server, bare


def read_steps(intake: Intake, data: list[JSON], path: FieldPath, servers: Tools | None) -> tuple[Step, ...]:
    """The steps of a list at `path`; problems are noted. `servers` are the scenario's, None if not known."""
    names: list[str] = []
    steps: list[Step] = []
    for place, item in enumerate(data):
        step = _read_step(intake, item, (*path, place), names, servers)
        if step is not None:
            steps.append(step)
    return tuple(steps)


def _read_step(intake: Intake, data: JSON, path: FieldPath, names: list[str], servers: Tools | None) -> Step | None:
    kinds = [kind for kind in KINDS if isinstance(data, dict) and kind in data]
    match kinds:
        case ["call"]:
            return _read_call(intake, data, path, names, servers)
        case ["read"]:
            return _read_fetch(intake, ReadEntry, "resource", data, path, names, servers)
        case ["prompt"]:
            return _read_fetch(intake, PromptEntry, "prompt", data, path, names, servers)
        case ["say"]:
            say = intake.read(SayEntry, data, path)
            if say is None:
                return None
            for _, message in check_references(say.say, names):
                intake.wrong((*path, "say"), message)
            return Say(say.say)
        case ["goal"]:
            goal = intake.read(GoalEntry, data, path)
            return None if goal is None else Goal(goal.goal)
        case _:
            wanted = f"a step is a map with exactly one of {', '.join(KINDS)}"
            intake.wrong(path, f"{wanted}, not {describe(data)}" if not isinstance(data, dict) else wanted)
            return None


def _read_call(intake: Intake, data: JSON, path: FieldPath, names: list[str], servers: Tools | None) -> Step | None:
    entry = intake.read(CallEntry, data, path)
    if entry is None:
        _keep_name(data, names)
        return None
    split = split_tool(entry.call)
    if split is None:
        intake.wrong((*path, "call"), f"{entry.call!r} is no canonical tool name; write mcp/SERVER/TOOL")
    elif servers is not None and split[0] not in servers:
        intake.wrong((*path, "call"), _no_server(split[0], servers))
    elif servers is not None and not entry.expect_error and (missing := missing_tool(*split, servers)) is not None:
        intake.wrong((*path, "call"), f"{missing} (a step that is meant to fail says expect_error: true)")
    for inner, message in check_references(entry.arguments, names):
        intake.wrong((*path, "arguments", *inner), message)
    _check_name(intake, entry.name, path, names)
    if split is None:
        return None
    return Call(split[0], split[1], entry.arguments, entry.name, entry.expect_error, entry.optional,
                entry.give_up_after)  # fmt: skip


def _read_fetch(
    intake: Intake,
    model: type[ReadEntry] | type[PromptEntry],
    kind: Literal["resource", "prompt"],
    data: JSON,
    path: FieldPath,
    names: list[str],
    servers: Tools | None,
) -> Step | None:
    entry = intake.read(model, data, path)
    if entry is None:
        _keep_name(data, names)
        return None
    match entry:
        case ReadEntry():
            text, field_name, arguments = entry.read, "read", dict[str, JSON]()
        case PromptEntry():
            text, field_name, arguments = entry.prompt, "prompt", dict[str, JSON](entry.arguments)
    room, server, name = (*text.split("/", 2), "", "")[:3]
    what = name.removeprefix(f"{kind}:")
    if room != "mcp" or check_server_id(server) is not None or what in ("", name):
        wanted = "mcp/SERVER/resource:URI" if kind == "resource" else "mcp/SERVER/prompt:NAME"
        intake.wrong((*path, field_name), f"{text!r} is no canonical name of a {kind}; write {wanted}")
    elif servers is not None and server not in servers:
        intake.wrong((*path, field_name), _no_server(server, servers))
    for inner, message in check_references(arguments, names):
        intake.wrong((*path, "arguments", *inner), message)
    _check_name(intake, entry.name, path, names)
    return Fetch(server, kind, what, arguments, entry.name, entry.expect_error, entry.optional)


def _no_server(server: str, servers: Tools) -> str:
    return f"the scenario has no server {server!r}; its servers are: {', '.join(servers) or 'none'}"


def _keep_name(data: JSON, names: list[str]) -> None:
    """Keep the name of a step that is wrong, so that a reference to it is not wrong too."""
    if isinstance(data, dict) and isinstance(name := data.get("as"), str):
        names.append(name)


def _check_name(intake: Intake, name: str | None, path: FieldPath, names: list[str]) -> None:
    if name is None:
        return
    if NAME.fullmatch(name) is None:
        intake.wrong((*path, "as"), f"{name!r} is no name; use letters, digits, '_' and '-'")
    elif name in names:
        intake.wrong((*path, "as"), f"an earlier step is called {name!r} already")
    names.append(name)
