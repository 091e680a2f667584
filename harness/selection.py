"""Which scenarios a run has, and which agent each of them gets. Everything that is wrong is found before anything runs.

Refuses to know how a trial is run.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.agentfile import Agent, CommandAgent, ScriptedAgent, command_agent, load_agent, read_agent
from harness.agentthere import not_there
from harness.discovery import load_scenarios
from harness.looseverdict import Rules, loose_scenario
from harness.modelagent import ModelAgent
from harness.models.provided import missing_for
from harness.places import is_file
from harness.results import Kind
from harness.runfolder import RESERVED
from harness.scenario import CommandServer, FixtureServer, Scenario, UrlServer
from harness.semantics.owasp import OwaspScenario
from harness.targetfile import Called, Recorded, Remote
from harness.targets.fixtures import FixtureError, fixture_offers, init_fixture
from harness.targets.profiles.known import ProfileName
from proxy.problem import Problem, ProblemError


class SelectionError(ProblemError):
    """Scenarios or an agent that cannot be run; `problems` has everything that is wrong."""


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Arm:
    """One agent of a sweep: its name, and its file, or the file for each task by the scenario's id."""

    name: str
    file: str | None = None
    by_task: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a person asked for: files and folders, and an agent file, or a command, a profile or both of these.

    With `arms`, each of these agents does each scenario, which then has the id ARM.ID. `semantics` are whose rules
    judge the trials.
    """

    paths: tuple[str, ...]
    agent_file: str | None = None
    command: tuple[str, ...] | None = None
    profile: ProfileName | None = None
    arms: tuple[Arm, ...] = ()
    semantics: Rules = "wiretrap"


@dataclass(frozen=True, slots=True)
class Selected:
    """The scenarios by id, in order of their paths, and the agent of each.

    `loose` are the scenarios as the OWASP harness reads them, where its rules judge.
    """

    by_id: Mapping[str, Scenario]
    agents: Mapping[str, Agent]
    loose: Mapping[str, OwaspScenario] = field(default_factory=dict)

    def files(self, scenario_id: str) -> tuple[Path, ...]:
        """All files that a scenario and its agent are made of, the scenario's own first."""
        match self.agents[scenario_id]:
            case ModelAgent(files=own):
                pass
            case Recorded(path=path) as recorded:
                own = (path, recorded.file(scenario_id))
            case agent:
                own = () if agent.path is None else (agent.path,)
        return tuple(dict.fromkeys((*self.by_id[scenario_id].files, *own)))

    def digests(self, digest: Callable[[bytes], str] = _sha256) -> dict[str, str]:
        """SHA-256 in hex of every file, by its path; or what else `digest` makes of its bytes."""
        files = dict.fromkeys(path for scenario_id in self.by_id for path in self.files(scenario_id))
        return {str(path): digest(path.read_bytes()) for path in files}


def kind_of(agent: Agent) -> Kind:
    """Whether the agent's results are scripted, real or imported."""
    match agent:
        case ScriptedAgent():
            return "scripted"
        case ModelAgent() as agent:
            return "scripted" if agent.scripted else "real"
        case CommandAgent() | Remote() | Called():
            return "real"
        case Recorded():
            return "imported"


def load_selection(selection: Selection) -> Selected:
    """Load everything. Raises a ProblemError with all that is wrong."""
    scenarios = load_scenarios([Path(path) for path in selection.paths], fixture_offers())
    problems: list[Problem] = []
    agents: dict[str, Agent] = {}
    by_id: dict[str, Scenario] = {}
    for scenario, arm in _pairs(scenarios, selection):
        agent = _agent(scenario, selection, problems) if arm is None else _agent_of(arm, scenario, problems)
        one = scenario if arm is None else replace(scenario, id=f"{arm.name}.{scenario.id}")
        problems += _check_folder(one)
        if agent is not None:
            problems += _check_servers(scenario, agent)
            problems += _check_models(agent, _within(scenario, agent))
            problems += check_there(agent, scenario)
            agents[one.id] = agent
        by_id[one.id] = one
    if problems:
        # An agent file is read once for each scenario, and may be wrong for all of them.
        raise SelectionError(dict.fromkeys(problems))
    loose = {} if selection.semantics == "wiretrap" else {name: loose_scenario(by_id[name].path) for name in by_id}
    return Selected(by_id, agents, loose)


def _pairs(scenarios: Sequence[Scenario], selection: Selection) -> Iterator[tuple[Scenario, Arm | None]]:
    arms: tuple[Arm | None, ...] = selection.arms or (None,)
    yield from ((scenario, arm) for arm in arms for scenario in scenarios)


def _agent_of(arm: Arm, scenario: Scenario, problems: list[Problem]) -> Agent | None:
    name = arm.by_task.get(scenario.id, arm.file)
    if name is None:
        said = f"the agent {arm.name!r} of the sweep has no file for this scenario; name one under its id"
        problems.append(Problem(str(scenario.path), None, "agent", said))
        return None
    return read_agent(Path(name), scenario.tools, problems)


def _agent(scenario: Scenario, selection: Selection, problems: list[Problem]) -> Agent | None:
    if (program := command_agent(selection.command, selection.profile)) is not None:
        return program
    if selection.agent_file is not None:
        try:
            return load_agent(Path(selection.agent_file), scenario.tools)
        except ProblemError as error:
            problems += error.problems
            return None
    if scenario.agent is None:
        said = "the scenario has no agent; give one with --agent, --command or --profile"
        problems.append(Problem(str(scenario.path), None, "agent", said))
    return scenario.agent


def _check_folder(scenario: Scenario) -> list[Problem]:
    if scenario.id.casefold() in RESERVED:
        return [Problem(str(scenario.path), None, "id", f"{scenario.id!r} is the name of a file in a run folder")]
    return []


def _check_servers(scenario: Scenario, agent: Agent) -> list[Problem]:
    """What cannot be run, though it can be read."""
    wrong = _check_target(scenario, agent)
    for server_id, server in scenario.servers.items():
        match server, agent:
            case CommandServer() | UrlServer(), ScriptedAgent(transport="in_process") | ModelAgent(
                transport="in_process"
            ):
                said = "only a fixture can be run in_process; the agent file says transport: in_process"
            case FixtureServer(), _:
                said = _try_seed(server)
            case _:
                said = ""
        if said:
            wrong.append(Problem(str(scenario.path), None, f"servers.{server_id}", said))
    return wrong


def _within(scenario: Scenario, agent: Agent) -> str:
    """What leads to the agent in the file that it stands in, with a dot behind it."""
    return "agent." if agent.path == scenario.path else ""


def _check_target(scenario: Scenario, agent: Agent) -> list[Problem]:
    within = _within(scenario, agent)
    match agent:
        case Recorded(path=path) if not is_file(agent.file(scenario.id)):
            return [Problem(str(path), None, f"{within}trace", f"there is no file {agent.file(scenario.id)}")]
        case Remote(path=path, ports=dict() as ports):
            unknown = [server for server in ports if server not in scenario.servers]
            known = ", ".join(scenario.servers) or "none"
            said = f"the scenario {scenario.id} has no such server; its servers are: {known}"
            return [Problem(str(path), None, f"{within}{agent.contract}.ports.{server}", said) for server in unknown]
        case _:
            return []


def check_there(agent: Agent, scenario: Scenario | None = None) -> list[Problem]:
    """What an agent names, in its own file or in the scenario's, and is not there to be run."""
    folder = agent.path.parent if agent.path is not None else Path(os.getcwd())
    if scenario is not None and agent is scenario.agent:
        folder = scenario.path.parent
    match not_there(agent, folder):
        case (field, said):
            file = agent.path if agent.path is not None else None if scenario is None else scenario.path
            given = file is None or (agent.path is None and scenario is not None and agent is not scenario.agent)
            within = "" if scenario is None or given else _within(scenario, agent)
            return [Problem("--command" if given else str(file), None, "" if given else f"{within}{field}", said)]
        case _:
            return []


def check_jobs(selected: Selected, jobs: int) -> None:
    """Raises SelectionError where trials could not be run at once: proxies at ports that the agent knows."""
    problems = [
        Problem(str(agent.path), None, f"{agent.contract}.ports", "only one trial at a time can have them; --jobs 1")
        for agent in selected.agents.values()
        if jobs > 1 and isinstance(agent, Remote) and agent.ports
    ]
    if problems:
        raise SelectionError(dict.fromkeys(problems))


def _check_models(agent: Agent, within: str) -> list[Problem]:
    """Models that cannot be asked, though the file can be read: for lack of a key or of the extra."""
    match agent:
        case ModelAgent(path=path, model=model, models=models):
            asked = {"model": model, **{f"models.{name}": choice for name, choice in models.items()}}
            missing = {field: missing_for(choice, os.environ) for field, choice in asked.items()}
            return [Problem(str(path), None, f"{within}{field}", said) for field, said in missing.items() if said]
        case _:
            return []


def _try_seed(server: FixtureServer) -> str:
    """What is wrong with the rows of a seed: whether they fit the tables shows only when they are put in."""
    if server.rows is None:
        return ""
    with tempfile.TemporaryDirectory(prefix="wiretrap-") as folder:
        try:
            init_fixture(server.fixture, Path(folder) / "try.db", server.seed, server.rows)
        except FixtureError as error:
            return str(error)
    return ""
