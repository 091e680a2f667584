"""Which values are secret in a run: those that scenarios name, and those of variables whose name says so.

Refuses to know how they are hidden. The rule is record.md section 4; docs/redaction.md tells it to users.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count

from harness.agentfile import Agent
from harness.hiding import Hiding, make_hiding
from harness.scenario import CommandServer, Scenario
from harness.targetfile import Remote
from harness.targetsecrets import target_secrets
from proxy.endpoint import parse_endpoint
from proxy.secretvalues import named_secrets
from proxy.spans import JSON


def run_secrets(
    scenarios: Iterable[Scenario], ours: Mapping[str, str], agents: Iterable[Agent] = (), otlp: str | None = None
) -> dict[str, str]:
    """The secret values of a run, by what a warning may call them; `ours` is the harness's environment.

    All of a run's scenarios and agents count for each of them, since one folder holds what all of them leave. `otlp` is
    the URL that copies of the spans go to: agents can read it, since it stands in the configuration that they get.
    """
    found: dict[str, str] = {}

    def note(label: str, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            if value not in found.values():
                calls = chain((name, f"{name} of {label}"), (f"{name} of {label}, {number}" for number in count(2)))
                found[next(call for call in calls if call not in found)] = value

    # What agents and fixtures get; the harness gives them none of its own variables.
    note("the environment", named_secrets((), _without_ours(ours), {}))
    for scenario in scenarios:
        for server_id, server in scenario.servers.items():
            match server:
                case CommandServer(env=env):
                    note(f"{scenario.id}, server {server_id}", named_secrets((), _without_ours(env), {}))
                case _:
                    pass
        for name, value in _expected(scenario, ours):
            note(scenario.id, {name: value})
    for agent in agents:
        if isinstance(agent, Remote):
            for name, value in target_secrets(agent, ours):
                note(agent.url.partition("?")[0], {name: value})
    if otlp is not None:
        note("the command line", parse_endpoint(otlp).secrets)
    return found


def hiding_for(
    scenarios: Iterable[Scenario],
    ours: Mapping[str, str],
    key: str,
    agents: Iterable[Agent] = (),
    otlp: str | None = None,
) -> Hiding:
    """What hides the secrets of a run; `key` is its key in hex, the rest is as for `run_secrets`."""
    return make_hiding(run_secrets(scenarios, ours, agents, otlp), bytes.fromhex(key))


def missing_variables(scenarios: Iterable[Scenario], ours: Mapping[str, str]) -> list[str]:
    """The variables that scenarios name as secrets and that have no value: `SCENARIO: VARIABLE`."""
    return [
        f"{scenario.id}: {name}"
        for scenario in scenarios
        for entry in _entries(scenario)
        if isinstance(name := entry.get("env"), str) and not list(_values_of(name, scenario, ours))
    ]


def _without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("WIRETRAP_")}


def _entries(scenario: Scenario) -> Iterator[dict[str, JSON]]:
    entries = scenario.expected.get("secrets")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield entry


def _expected(scenario: Scenario, ours: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for entry in _entries(scenario):
        match entry:
            case {"name": str() as name, "value": str() as value} if value.strip():
                yield name, value
            case {"env": str() as variable}:
                for value in _values_of(variable, scenario, ours):
                    yield variable, value
            case _:
                pass


def _values_of(variable: str, scenario: Scenario, ours: Mapping[str, str]) -> Iterator[str]:
    """What the variable may hold for the agent and for each server."""
    places = [ours, *(server.env for server in scenario.servers.values() if isinstance(server, CommandServer))]
    yield from dict.fromkeys(value for place in places if (value := place.get(variable, "")).strip())
