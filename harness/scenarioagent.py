"""The agent of a scenario: an agent file that it names, or a command or profile that stands in it.

Refuses to know how an agent is run, and which other agents a run may give.
"""

from collections.abc import Callable
from pathlib import Path

from harness.agentfile import Agent, CommandAgent, command_agent, read_agent, unknown_placeholders
from harness.intake import Intake
from harness.offer import Tools
from harness.scenariofile import AgentEntry
from proxy.problem import Path as FieldPath
from proxy.problem import Problem
from proxy.spans import JSON


def read_scenario_agent(
    intake: Intake,
    data: JSON,
    tools: Tools | None,
    elsewhere: list[Problem],
    find: Callable[[str, FieldPath], Path | None],
) -> Agent | None:
    """The agent of the field `agent`, None where it cannot be used; problems are noted.

    `find` gives the file that a field names, and notes what is wrong with that; problems in the file go to `elsewhere`.
    """
    entry = intake.read(AgentEntry, data, ("agent",))
    if entry is None:
        return None
    program = command_agent(entry.command, entry.profile)
    if (entry.scripted is None) == (program is None):
        intake.wrong(
            ("agent",), "an agent has exactly one of scripted and command; a profile is with a command or in its place"
        )
        return None
    if program is not None:
        for message in unknown_placeholders(program.command):
            intake.wrong(("agent", "command"), message)
        return program
    file = find(entry.scripted or "", ("agent", "scripted"))
    agent = None if file is None else read_agent(file, tools, elsewhere)
    if isinstance(agent, CommandAgent):
        intake.wrong(("agent", "scripted"), f"{file} has a command and no steps; write agent: {{command: …}}")
    return None if isinstance(agent, CommandAgent) else agent
