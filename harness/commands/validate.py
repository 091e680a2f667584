"""`wiretrap validate PATH…`: check scenarios, policies, agent files and seeds without running anything.

Refuses to know how any of them is read.
"""

import os
import secrets
from pathlib import Path

import click

from harness.agentfile import AgentError, load_agent
from harness.assertions.not_built import NotBuilt
from harness.discovery import Kind, classify, repeated_ids, yaml_files
from harness.runsecrets import hiding_for
from harness.scenario import Scenario, ScenarioError, load_scenario
from harness.seedfile import read_seed
from harness.targets.fixtures import NAMES
from proxy.policy import PolicyError, load_policy
from proxy.problem import Problem


def check_file(path: Path, kind: Kind) -> Scenario | None:
    """Read a file as what it is; a scenario is given back. Raises a ProblemError."""
    match kind:
        case "scenario":
            return load_scenario(path, NAMES)
        case "agent":
            load_agent(path)
        case "policy":
            load_policy(str(path))
        case "seed":
            problems: list[Problem] = []
            read_seed(path, problems)
            if problems:
                raise ScenarioError(problems)
    return None


def describe_scenario(scenario: Scenario) -> str:
    """What `validate` says of a scenario that holds: its id, and why it is not_run where an assertion is not judged."""
    unbuilt = dict.fromkeys(assertion.why for assertion in scenario.assertions if isinstance(assertion, NotBuilt))
    return f"scenario {scenario.id}" + (f" (not_run: {'; '.join(unbuilt)})" if unbuilt else "")


@click.command("validate", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
def command(paths: tuple[Path, ...]) -> None:
    """Check scenarios, policies, agent files and seeds without running them.

    PATH is a file, or a folder with all YAML files under it. Each file has one line, `ok` or every error of it as
    file:line: field: message. The exit code is 0 when all hold, 2 when one does not.
    """
    problems: dict[Problem, None] = {}
    scenarios: list[Scenario] = []
    files: dict[Path, Path] = {}
    for path in paths:
        found = yaml_files(path) if path.is_dir() else [path]
        if not found or not path.exists():
            missing = "there is no YAML file in this folder" if path.exists() else "there is no such file or folder"
            problems[Problem(str(path), None, "", missing)] = None
            continue
        for file in found:
            files.setdefault(file.resolve(), file)
    for file in files.values():
        kind = classify(file)
        try:
            scenario = check_file(file, kind)
        except (AgentError, PolicyError, ScenarioError) as error:
            problems.update(dict.fromkeys(error.problems))
            continue
        said = kind if scenario is None else describe_scenario(scenario)
        if scenario is not None:
            scenarios.append(scenario)
        click.echo(f"{file}: ok: {said}")
    problems.update(dict.fromkeys(repeated_ids(scenarios)))
    hiding = hiding_for((), os.environ, secrets.token_hex(32))
    for problem in problems:
        click.echo(hiding.text(str(problem)), err=True)
    if problems:
        raise SystemExit(2)
