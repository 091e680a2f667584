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
from harness.offer import Tools
from harness.scenariofile import without_nul
from harness.steps import Step, StepEntry, read_steps
from harness.targetfile import KINDS, Target, read_target
from harness.targets.profiles.known import PROFILES, ProfileName
from proxy.problem import Problem, ProblemError

Transport: TypeAlias = Literal["stdio", "in_process"]


PLACEHOLDERS = ("prompt", "prompt_file", "mcp_config")
"""What may stand in braces in a command, and is filled in."""
_BRACED = re.compile(r"(?<!\$)\{([a-z_]+)\}")


class AgentError(ProblemError):
    """An agent file that cannot be used."""


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
