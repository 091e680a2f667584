"""What a run was made of: versions, digests, the platform, where each result is from, and whether the record is whole.

Refuses to know what the results say.
"""

import json
import platform
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version

from harness.agentfile import Agent, CommandAgent, ScriptedAgent
from harness.agentprogram import ProgramFile, named_by
from harness.hiding import Hiding
from harness.modelagent import ModelAgent
from harness.results import TrialResult
from harness.scenario import FixtureServer, Scenario
from harness.selection import Selected, Selection, kind_of
from harness.targetfile import Called, Recorded, Remote
from proxy.spans import JSON

PACKAGES = ("wiretrap", "mcp", "pydantic", "jsonschema", "PyYAML", "click")
"""Distributions whose version may change a result."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known when a run begins.

    `digests` are the files' by path, each of the file without secrets; `redacted` are the paths of those that had one.
    `programs` are the files that the command of each scenario's agent is made of. `selection` is what was asked for,
    and `resumed_at` when the run was gone on with. `judge` is the name of the model that is asked for opinions.
    `started_in` is the folder that relative paths are meant from.
    """

    run_id: str
    started_at: datetime
    trials: int | None
    jobs: int
    selected: Selected
    hiding: Hiding
    digests: Mapping[str, str]
    redacted: frozenset[str] = frozenset()
    programs: Mapping[str, tuple[ProgramFile, ...]] = field(default_factory=dict)
    selection: Selection = field(default_factory=lambda: Selection(()))
    resumed_at: tuple[datetime, ...] = ()
    judge: str | None = None
    started_in: str = ""


def manifest(facts: RunFacts, results: Sequence[TrialResult], ended_at: datetime | None) -> JSON:
    """The manifest as JSON. `ended_at` is None while the run is under way, and the results are those so far."""
    incomplete: list[JSON] = [
        {"scenario": result.scenario, "trial": result.trial, "gaps": list(result.gaps)}
        for result in results
        if result.gaps
    ]
    return {
        "schema_version": 1,
        "run_id": facts.run_id,
        "started_at": _moment(facts.started_at),
        "resumed_at": [_moment(moment) for moment in facts.resumed_at],
        "ended_at": None if ended_at is None else _moment(ended_at),
        "versions": {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, **_versions()},
        "platform": {
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "python": sys.implementation.name,
        },
        "options": _options(facts),
        # Nothing of a run is drawn at random but ids and keys, so there is no seed that would repeat it. What a
        # scripted model draws comes from the seed in its agent file, which has a digest.
        "random_seed": None,
        "scenarios": {
            scenario_id: _scenario(scenario, facts) for scenario_id, scenario in facts.selected.by_id.items()
        },
        "results": [
            {"scenario": result.scenario, "trial": result.trial, "kind": result.kind, "model": result.model}
            for result in results
        ],
        "record": {"complete": not incomplete, "incomplete": incomplete},
    }


def _options(facts: RunFacts) -> JSON:
    agent, hiding = facts.selection.agent_file, facts.hiding
    return {
        "trials": facts.trials,
        "jobs": facts.jobs,
        "folder": hiding.text(facts.started_in),
        "paths": [hiding.text(path) for path in facts.selection.paths],
        "agent": None if agent is None else hiding.text(agent),
        # Whether there was one; the words may hold a secret.
        "command": facts.selection.command is not None,
        "profile": facts.selection.profile,
        "judge": facts.judge,
    }


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _versions() -> dict[str, JSON]:
    return {package.lower(): version(package) for package in PACKAGES}


def _scenario(scenario: Scenario, facts: RunFacts) -> JSON:
    hiding = facts.hiding

    def digest(path: object) -> JSON:
        return facts.digests.get(str(path))

    policy = scenario.policy_map
    agent = facts.selected.agents[scenario.id]
    paths = [str(path) for path in facts.selected.files(scenario.id)]
    files: dict[str, JSON] = {hiding.text(path): digest(path) for path in paths}
    seeds: dict[str, JSON] = {
        server_id: digest(server.seed)
        for server_id, server in scenario.servers.items()
        if isinstance(server, FixtureServer) and server.seed is not None
    }
    return {
        "path": hiding.text(str(scenario.path)),
        "sha256": digest(scenario.path),
        "files": files,
        "redacted_files": [hiding.text(path) for path in paths if path in facts.redacted],
        "seeds": seeds,
        "policy_sha256": None if policy is None else _digest(dict(policy), hiding),
        "agent": {
            "kind": kind_of(agent),
            "named_by": hiding.text(named_by(agent, scenario)),
            "sha256": _agent_digest(agent, facts),
            **({"roster": agent.roster(scenario.servers).as_json()} if isinstance(agent, ModelAgent) else {}),
            "program": [{"name": file.name, "sha256": file.sha256} for file in facts.programs.get(scenario.id, ())],
        },
    }


def _agent_digest(agent: Agent, facts: RunFacts) -> JSON:
    match agent:
        case CommandAgent(command=command, path=None, profile=profile):
            return _digest([*command] if profile is None else [profile, *command], facts.hiding)
        case (
            ScriptedAgent(path=path)
            | CommandAgent(path=path)
            | ModelAgent(path=path)
            | Remote(path=path)
            | Called(path=path)
            | Recorded(path=path)
        ):
            return facts.digests.get(str(path))


def _digest(value: JSON, hiding: Hiding) -> str:
    """SHA-256 of a value as JSON with sorted keys; a command may hold a secret, so it stands nowhere itself."""
    return hiding.file_digest(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())
