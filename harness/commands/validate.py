"""`wiretrap validate PATH…`: check the files that people write without running anything.

Refuses to know how any of them is read.
"""

import os
import secrets
from pathlib import Path

import click

from harness.agentfile import AgentError, load_agent
from harness.assertions.assertion import Assertion
from harness.assertions.calls import ToolCalled, ToolNotCalled
from harness.assertions.denied import NoDeniedToolCall
from harness.assertions.judged import Judged
from harness.assertions.not_built import NotBuilt
from harness.assertions.state import State, StateUnchanged
from harness.discovery import Kind, classify, repeated_ids, yaml_files
from harness.models.script import read_script
from harness.places import is_file, is_folder, is_there
from harness.runsecrets import hiding_for
from harness.scenario import FixtureServer, Scenario, ScenarioError, load_scenario
from harness.seedfile import read_seed
from harness.selection import SelectionError, check_there
from harness.sweepfile import SweepFileError, load_sweep
from harness.sweeping import check_sweep
from harness.targets.fixtures import fixture_offers
from harness.up.upfile import UpFileError, load_up_file
from proxy.policy import PolicyError, load_policy
from proxy.problem import Problem
from proxy.visible import visible

FORBIDS = frozenset(
    {
        "max_tool_calls",
        "memory_isolation",
        "no_canary_flow",
        "no_external_recipient",
        "no_repeated_reads",
        "no_secret_disclosure",
        "no_void_writes",
        "tool_definitions_stable",
    }
)
"""More types of assertions that hold when nothing happens."""


def check_file(path: Path, kind: Kind) -> Scenario | None:
    """Read a file as what it is; a scenario is given back. Raises a ProblemError."""
    match kind:
        case "scenario":
            scenario = load_scenario(path, fixture_offers())
            if scenario.agent is not None and (missing := check_there(scenario.agent, scenario)):
                raise SelectionError(missing)
            return scenario
        case "agent":
            if missing := check_there(load_agent(path)):
                raise SelectionError(missing)
        case "policy":
            load_policy(str(path))
        case "seed":
            problems: list[Problem] = []
            read_seed(path, problems)
            if problems:
                raise ScenarioError(problems)
        case "up":
            load_up_file(path, os.environ)
        case "sweep":
            check_sweep(load_sweep(path))
        case "script":
            wrong: list[Problem] = []
            read_script(path, wrong)
            if wrong:
                raise ScenarioError(wrong)
    return None


def described(path: Path, kind: Kind) -> str:
    """What `validate` says of a file that holds and is no scenario."""
    if kind == "policy" and load_policy(str(path)).holds:
        return f"{kind} (the calls that it says `approve` of need --grants or --approvals, else they are refused)"
    return "file of `wiretrap up`" if kind == "up" else kind


def describe_scenario(scenario: Scenario) -> str:
    """What `validate` says of a scenario that holds: its id, and why it is not_run where an assertion is not judged."""
    unjudged = dict.fromkeys(why for assertion in scenario.assertions if (why := _unjudged(assertion, scenario)))
    notes = [f"not_run: {'; '.join(unjudged)}"] if unjudged else []
    if scenario.policy is not None and scenario.policy.holds and not scenario.grants:
        notes.append("nobody can approve a call in it, so each that has to be is refused after its wait")
    if all(map(only_forbids, scenario.assertions)):
        notes.append("nothing has to happen in it, so an agent that only connects is not told from one that works")
    return f"scenario {scenario.id}" + (f" ({'; '.join(notes)})" if notes else "")


def _unjudged(assertion: Assertion, scenario: Scenario) -> str | None:
    """Why an assertion can never be judged, None where it can."""
    known = [name for name, server in scenario.servers.items() if isinstance(server, FixtureServer)]
    match assertion:
        case NotBuilt():
            return assertion.why
        case State(server=server):
            unknown = [server] if server not in known else []
        case StateUnchanged(servers=None):
            unknown = [] if known else ["any server"]
        case StateUnchanged(servers=servers):
            unknown = [name for name in servers or () if name not in known]
        case _:
            unknown = []
    if not unknown:
        return None
    return f"{assertion.type}: nothing is known of the state of {', '.join(unknown)}, since only that of fixtures is"


def only_forbids(assertion: Assertion) -> bool:
    """Whether an assertion holds when nothing happens, or decides nothing; not of one whose type nobody knows."""
    match assertion:
        case NoDeniedToolCall() | ToolNotCalled() | StateUnchanged() | Judged():
            return True
        case ToolCalled(min=least):
            return least == 0
        case _:
            return assertion.type in FORBIDS


@click.command("validate", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
def command(paths: tuple[Path, ...]) -> None:
    """Check scenarios, policies, agent files, scripts, seeds, sweeps and files of `wiretrap up` without running them.

    PATH is a file, or a folder with all YAML files under it. Each file has one line, `ok` or every error of it as
    file:line: field: message. The exit code is 0 when all hold, 2 when one does not.
    """
    hiding = hiding_for((), os.environ, secrets.token_hex(32))
    problems: dict[Problem, None] = {}
    scenarios: list[Scenario] = []
    files: dict[Path, Path] = {}
    for path in paths:
        found = yaml_files(path) if is_folder(path) else [path]
        if not found or not is_there(path):
            missing = "there is no YAML file in this folder" if is_there(path) else "there is no such file or folder"
            problems[Problem(str(path), None, "", missing)] = None
            continue
        for file in found:
            files.setdefault(file.resolve(), file)
    for file in files.values():
        if not is_file(file):
            problems[Problem(str(file), None, "", "is no regular file")] = None
            continue
        kind = classify(file)
        try:
            scenario = check_file(file, kind)
        except (AgentError, PolicyError, ScenarioError, SelectionError, SweepFileError, UpFileError) as error:
            problems.update(dict.fromkeys(error.problems))
            continue
        said = described(file, kind) if scenario is None else describe_scenario(scenario)
        if scenario is not None:
            scenarios.append(scenario)
        click.echo(visible(f"{file}: ok: {said}"))
        for note in scenario.notes if scenario is not None else ():
            click.echo(hiding.text(str(note)), err=True)
    problems.update(dict.fromkeys(repeated_ids(scenarios)))
    for problem in problems:
        click.echo(hiding.text(str(problem)), err=True)
    if problems:
        raise SystemExit(2)
