"""Which scenarios a run has, and which agent each of them gets. Everything that is wrong is found before anything runs.

Refuses to know how a trial is run.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.agentfile import Agent, CommandAgent, ScriptedAgent, load_agent
from harness.results import Kind
from harness.runfolder import RESERVED
from harness.scenario import FixtureServer, Scenario, UrlServer, load_scenario
from harness.targets.fixtures import NAMES
from proxy.problem import Problem, ProblemError

SUFFIXES = (".yaml", ".yml")


class SelectionError(ProblemError):
    """Scenarios or an agent that cannot be run; `problems` has everything that is wrong."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a person asked for: files and folders, and at most one of an agent file and a command."""

    paths: tuple[str, ...]
    agent_file: str | None = None
    command: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """The scenarios by id, in order of their paths, and the agent of each."""

    by_id: Mapping[str, Scenario]
    agents: Mapping[str, Agent]

    def files(self, scenario_id: str) -> tuple[Path, ...]:
        """All files that a scenario and its agent are made of, the scenario's own first."""
        agent = self.agents[scenario_id].path
        files = self.by_id[scenario_id].files
        return files if agent is None or agent in files else (*files, agent)

    def digests(self) -> dict[str, str]:
        """SHA-256 in hex of every file, by its path."""
        files = dict.fromkeys(path for scenario_id in self.by_id for path in self.files(scenario_id))
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def kind_of(agent: Agent) -> Kind:
    """Whether the agent's results are scripted or real."""
    match agent:
        case ScriptedAgent():
            return "scripted"
        case CommandAgent():
            return "real"


def load_selection(selection: Selection) -> Selected:
    """Load everything. Raises SelectionError with all that is wrong."""
    problems: list[Problem] = []
    by_id: dict[str, Scenario] = {}
    agents: dict[str, Agent] = {}
    for path in find_scenarios(selection.paths, problems):
        try:
            scenario = load_scenario(path, NAMES)
        except ProblemError as error:
            problems += error.problems
            continue
        if (other := by_id.get(scenario.id)) is not None:
            problems.append(Problem(str(path), None, "id", f"{scenario.id!r} is the id of {other.path} too"))
            continue
        by_id[scenario.id] = scenario
        agent = _agent(scenario, selection, problems)
        if agent is not None:
            problems += _check(scenario, agent)
            agents[scenario.id] = agent
    if problems:
        # The same agent file is read once for each scenario.
        raise SelectionError(dict.fromkeys(problems))
    return Selected(by_id, agents)


def find_scenarios(paths: tuple[str, ...], problems: list[Problem]) -> tuple[Path, ...]:
    """The scenario files that the paths name: a file is one, of a folder every file that is a map with an `id`."""
    found: dict[Path, None] = {}
    for text in paths:
        path = Path(text)
        if path.is_dir():
            below = [file for file in sorted(path.rglob("*")) if file.suffix in SUFFIXES and is_scenario(file)]
            if not below:
                problems.append(Problem(text, None, "", "the folder has no scenario"))
            found.update(dict.fromkeys(below))
        elif path.exists():
            found[path] = None
        else:
            problems.append(Problem(text, None, "", "there is no such file or folder"))
    return tuple(found)


def _agent(scenario: Scenario, selection: Selection, problems: list[Problem]) -> Agent | None:
    if selection.command is not None:
        return CommandAgent(selection.command)
    if selection.agent_file is not None:
        try:
            return load_agent(Path(selection.agent_file), scenario.servers)
        except ProblemError as error:
            problems += error.problems
            return None
    if scenario.agent is None:
        problems.append(
            Problem(str(scenario.path), None, "agent", "the scenario has no agent; give one with --agent or --command")
        )
    return scenario.agent


def _check(scenario: Scenario, agent: Agent) -> list[Problem]:
    """What cannot be run, though it can be read."""
    file = str(scenario.path)
    wrong = []
    if scenario.id in RESERVED:
        wrong.append(Problem(file, None, "id", f"{scenario.id!r} is the name of a file in a run folder"))
    for server_id, server in scenario.servers.items():
        match server, agent:
            case UrlServer(), _:
                said = "a server with a url cannot be run yet; give it a fixture or a command"
                wrong.append(Problem(file, None, f"servers.{server_id}", said))
            case (FixtureServer(), _) | (_, CommandAgent() | ScriptedAgent(transport="stdio")):
                pass
            case _:
                said = "only a fixture can be run in_process; the agent file says transport: in_process"
                wrong.append(Problem(file, None, f"servers.{server_id}", said))
    return wrong
