"""Agent files: the steps of a scripted agent, the command or profile of a real one, our own model, or another target.

Refuses to know how either is run, and which scenario it is for.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, JsonValue

from harness.intake import Entry, Intake, open_document
from harness.lookalike import looks_like
from harness.modelagent import ModelAgent, read_model_agent
from harness.offer import Tools, missing_tool
from harness.references import NAME, check_references
from harness.scenariofile import without_nul
from harness.targetfile import KINDS, Target, read_target
from harness.targets.profiles.known import PROFILES, ProfileName
from proxy.glob import check_server_id, decode_tool_name, encode_tool_name
from proxy.problem import Path as FieldPath
from proxy.problem import Problem, ProblemError, describe
from proxy.spans import JSON

Transport: TypeAlias = Literal["stdio", "in_process"]


PLACEHOLDERS = ("prompt", "prompt_file", "mcp_config")
"""What may stand in braces in a command, and is filled in."""
_BRACED = re.compile(r"(?<!\$)\{([a-z_]+)\}")


class AgentError(ProblemError):
    """An agent file that cannot be used."""


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
class Say:
    """Say `text`, which may hold references; what is said last is the final answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Goal:
    """State the goal `id`: an event, the agent's own word."""

    id: str


Step: TypeAlias = Call | Say | Goal


@dataclass(frozen=True, slots=True)
class ScriptedAgent:
    """An agent that follows steps. `path` is its file."""

    path: Path
    steps: tuple[Step, ...]
    transport: Transport = "stdio"

    @property
    def target(self) -> str:
        """Its name in reports."""
        return "scripted"


@dataclass(frozen=True, slots=True)
class CommandAgent:
    """An agent that is a program. `command` may hold {prompt}, {prompt_file} and {mcp_config}.

    `path` is its file, None where it stands in the scenario or on the command line. With a `profile`, the command is
    the program and what a person adds, and the profile knows the rest.
    """

    command: tuple[str, ...]
    path: Path | None = None
    profile: ProfileName | None = None

    @property
    def target(self) -> str:
        """Its name in reports."""
        return "command" if self.profile is None else self.profile

    @property
    def unpointed(self) -> bool:
        """Whether nothing in its command tells it where the servers are; WIRETRAP_MCP_CONFIG still does."""
        return self.profile is None and not any("{mcp_config}" in word for word in self.command)


Agent: TypeAlias = ScriptedAgent | CommandAgent | ModelAgent | Target


class CallEntry(Entry):
    """A step that calls a tool, by its canonical name."""

    call: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    name: str | None = Field(default=None, alias="as")
    expect_error: bool = False
    optional: bool = False
    give_up_after: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class SayEntry(Entry):
    """A step that says something."""

    say: str


class GoalEntry(Entry):
    """A step that states a goal."""

    goal: str = Field(min_length=1)


class _ScriptedEntry(Entry):
    # Each step is read by itself, which gives better messages than a union.
    transport: Transport = "stdio"
    steps: list[JsonValue]


class CommandEntry(Entry):
    """`{command: [PROGRAM, ARG…]}`, `{profile: NAME}`, or both."""

    command: list[Annotated[str, AfterValidator(without_nul)]] | None = Field(default=None, min_length=1)
    profile: ProfileName | None = None


def command_agent(
    command: Iterable[str] | None, profile: ProfileName | None, path: Path | None = None
) -> CommandAgent | None:
    """The agent of a command and a profile, whose own program it is where there is no command; None without both."""
    if command is not None:
        return CommandAgent(tuple(command), path, profile)
    return None if profile is None else CommandAgent((PROFILES[profile].program,), path, profile)


StepEntry: TypeAlias = CallEntry | SayEntry | GoalEntry
"""A step as it is written."""


class StepsEntry(Entry):
    """`{steps: [STEP…], transport: …}`."""

    transport: Transport = "stdio"
    steps: list[StepEntry]


def unknown_placeholders(command: Iterable[str]) -> list[str]:
    """A sentence for each `{word}` in a command that nobody would fill in; `${word}` is a shell's."""
    words = dict.fromkeys(word for argument in command for word in _BRACED.findall(argument))
    return [
        f"there is no placeholder {{{word}}}; there are {', '.join(f'{{{known}}}' for known in PLACEHOLDERS)}"
        for word in words
        if word not in PLACEHOLDERS
    ]


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
    kinds = [kind for kind in ("call", "say", "goal") if isinstance(data, dict) and kind in data]
    match kinds:
        case ["call"]:
            return _read_call(intake, data, path, names, servers)
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
            wanted = "a step is a map with exactly one of call, say and goal"
            intake.wrong(path, f"{wanted}, not {describe(data)}" if not isinstance(data, dict) else wanted)
            return None


def _read_call(intake: Intake, data: JSON, path: FieldPath, names: list[str], servers: Tools | None) -> Step | None:
    entry = intake.read(CallEntry, data, path)
    if entry is None:
        if isinstance(data, dict) and isinstance(name := data.get("as"), str):
            names.append(name)
        return None
    split = split_tool(entry.call)
    if split is None:
        intake.wrong((*path, "call"), f"{entry.call!r} is no canonical tool name; write mcp/SERVER/TOOL")
    elif servers is not None and split[0] not in servers:
        known = ", ".join(servers) or "none"
        intake.wrong((*path, "call"), f"the scenario has no server {split[0]!r}; its servers are: {known}")
    elif servers is not None and not entry.expect_error and (missing := missing_tool(*split, servers)) is not None:
        intake.wrong((*path, "call"), f"{missing} (a step that is meant to fail says expect_error: true)")
    for inner, message in check_references(entry.arguments, names):
        intake.wrong((*path, "arguments", *inner), message)
    if entry.name is not None:
        if NAME.fullmatch(entry.name) is None:
            intake.wrong((*path, "as"), f"{entry.name!r} is no name; use letters, digits, '_' and '-'")
        elif entry.name in names:
            intake.wrong((*path, "as"), f"an earlier step is called {entry.name!r} already")
        names.append(entry.name)
    if split is None:
        return None
    return Call(split[0], split[1], entry.arguments, entry.name, entry.expect_error, entry.optional,
                entry.give_up_after)  # fmt: skip


def read_agent(path: Path, servers: Tools | None, problems: list[Problem]) -> Agent | None:
    """The agent of a file, None where it cannot be used; what is wrong is added to `problems`."""
    document = open_document(path, problems)
    if document is None:
        return None
    intake, data = Intake(document), document.data
    agent: Agent | None = None
    if (other := looks_like(data, "agent")) is not None:
        intake.wrong((), other)
    elif isinstance(data, dict) and data.keys() & {*KINDS}:
        agent = read_target(intake, data, path)
    elif isinstance(data, dict) and ("command" in data or "profile" in data) and "steps" not in data:
        entry = intake.read(CommandEntry, data, ())
        agent = None if entry is None else command_agent(entry.command, entry.profile, path)
        if entry is not None and agent is None:
            intake.wrong((), "an agent has a command, a profile or steps")
        for message in unknown_placeholders(agent.command) if agent is not None else []:
            intake.wrong(("command",), message)
    elif isinstance(data, dict) and "model" in data and "steps" not in data:
        inside: list[Problem] = []
        agent = read_model_agent(intake, data, path, servers, inside)
        problems.extend(inside)
        agent = None if inside else agent
    else:
        scripted = intake.read(_ScriptedEntry, data, ())
        if scripted is not None:
            steps = read_steps(intake, list(scripted.steps), ("steps",), servers)
            agent = ScriptedAgent(path, steps, scripted.transport)
    problems.extend(intake.problems)
    return None if intake.problems else agent


def load_agent(path: Path, servers: Tools | None = None) -> Agent:
    """The agent of a file. Raises AgentError with everything that is wrong; `servers` are the scenario's."""
    problems: list[Problem] = []
    agent = read_agent(path, servers, problems)
    if agent is None or problems:
        raise AgentError(problems)
    return agent
