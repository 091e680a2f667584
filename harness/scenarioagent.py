"""The agent of a scenario: an agent file that it names, or any other agent than steps, which stands in it.

Refuses to know how an agent is run, and which other agents a run may give.
"""

from collections.abc import Callable
from pathlib import Path

from harness.agentfile import Agent, CommandAgent, command_agent, read_agent, unknown_placeholders
from harness.intake import Intake, fields_of
from harness.modelagent import read_model_agent
from harness.offer import Tools
from harness.scenariofile import AgentEntry
from harness.targetfile import KINDS, read_target
from proxy.problem import Path as FieldPath
from proxy.problem import Problem, describe
from proxy.spans import JSON

_HERE: FieldPath = ("agent",)
_KNOWN = ", ".join((fields_of(AgentEntry), "model", *KINDS))


def read_scenario_agent(
    intake: Intake,
    data: JSON,
    path: Path,
    tools: Tools | None,
    elsewhere: list[Problem],
    find: Callable[[str, FieldPath], Path | None],
) -> Agent | None:
    """The agent of the field `agent`, None where it cannot be used; problems are noted.

    `path` is the scenario's file, in whose folder an agent that stands here has its files. `find` gives the file that a
    field names, and notes what is wrong with that; problems in other files go to `elsewhere`.
    """
    match data:
        case dict() if data.keys() & {*KINDS}:
            return read_target(intake, data, path, _HERE)
        case dict() if "model" in data:
            return read_model_agent(intake, data, path, tools, elsewhere, _HERE)
        case dict() if unknown := [name for name in data if name not in AgentEntry.model_fields]:
            for name in unknown:
                intake.wrong((*_HERE, name), f"unknown field; here may stand {_KNOWN}")
            return None
        case dict():
            entry = intake.read(AgentEntry, data, _HERE)
        case _:
            intake.wrong(_HERE, f"expected a map with one of {_KNOWN}, not {describe(data)}")
            return None
    if entry is None:
        return None
    program = command_agent(entry.command, entry.profile)
    if (entry.scripted is None) == (program is None):
        said = f"an agent has exactly one of scripted, command, model, {', '.join(KINDS)}"
        intake.wrong(_HERE, f"{said}; a profile is with a command or in its place")
        return None
    if program is not None:
        for message in unknown_placeholders(program.command):
            intake.wrong((*_HERE, "command"), message)
        return program
    file = find(entry.scripted or "", (*_HERE, "scripted"))
    agent = None if file is None else read_agent(file, tools, elsewhere)
    if isinstance(agent, CommandAgent):
        intake.wrong((*_HERE, "scripted"), f"{file} has a command and no steps; write agent: {{command: …}}")
    return None if isinstance(agent, CommandAgent) else agent
