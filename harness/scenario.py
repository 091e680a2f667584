"""Scenarios: a task with its servers, policy, agent and assertions, joined from its files (verdicts.md section 1).

Refuses to know how a trial is run and how an assertion judges.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from harness.agentfile import Agent
from harness.agentmark import as_scenario, is_task
from harness.assertions.assertion import Assertion, AssertionSpecError, parse_assertion
from harness.intake import Intake, open_document
from harness.lookalike import looks_like
from harness.offer import Offers, Tools
from harness.offerchecks import check_state, check_tools
from harness.scenarioagent import read_scenario_agent
from harness.scenariochecks import check_fields, check_ids, check_servers, note_slips
from harness.scenariofile import (
    Category,
    FactEntry,
    ScenarioEntry,
    ServerEntry,
    Severity,
    Trust,
)
from harness.scenariopolicy import read_faults, read_grants, read_policy
from harness.seedfile import read_seed
from harness.steps import Step, read_steps
from proxy.faults import Fault
from proxy.glob import check_server_id, glob_server
from proxy.policy import Policy
from proxy.problem import Path as FieldPath
from proxy.problem import Problem, ProblemError, describe
from proxy.spans import JSON
from proxy.yamlfile import Document


class ScenarioError(ProblemError):
    """Scenarios that cannot be used; `problems` has everything that is wrong."""


@dataclass(frozen=True, slots=True)
class FixtureServer:
    """A fixture of ours by its name. `rows` are those of the file `seed`, by table; without one it has its own seed."""

    fixture: str
    seed: Path | None = None
    rows: Mapping[str, JSON] | None = None
    trust: Trust = "third_party"


@dataclass(frozen=True, slots=True)
class CommandServer:
    """A server that a command starts; `env` is put over our environment."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    trust: Trust = "third_party"


@dataclass(frozen=True, slots=True)
class UrlServer:
    """A server that runs elsewhere."""

    url: str
    trust: Trust = "third_party"


Server: TypeAlias = FixtureServer | CommandServer | UrlServer


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a trial is ended; None is no limit."""

    seconds: float = 60
    tool_calls: int | None = None
    tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. `path` is its file, `files` are all that it is made of, itself first.

    `input` is the whole open map and `user_message` its task. `policy` is what was written, `policy_map` its map;
    what a server's proxy gets is `policy_for`, and `grants` as written. `severity` is None for some of category task.
    `tools` are those of each server, None where only the running server knows; `notes` are what looks like a slip and
    is none for sure.
    """

    path: Path
    files: tuple[Path, ...]
    id: str
    title: str
    category: Category
    severity: Severity | None
    labels: Mapping[str, str]
    target: Mapping[str, JSON]
    input: Mapping[str, JSON]
    user_message: str
    servers: Mapping[str, Server]
    policy: Policy | None
    policy_map: Mapping[str, JSON] | None
    grants: tuple[JSON, ...]
    agent: Agent | None
    trials: int
    limits: Limits
    facts: tuple[FactEntry, ...]
    expected: Mapping[str, JSON]
    assertions: tuple[Assertion, ...]
    reference: tuple[Step, ...]
    tools: Tools = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    fault_maps: tuple[JSON, ...] = ()
    notes: tuple[Problem, ...] = ()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The globs of the tools that the policy takes out of tools/list."""
        rules = self.policy.rules if self.policy is not None and self.policy.in_force else ()
        return tuple(rule.glob for rule in rules if rule.form == "hidden")

    def faults_for(self, server: str) -> list[JSON]:
        """What the server's proxy gets of the faults: those that may speak of it."""
        both = zip(self.faults, self.fault_maps, strict=True)
        return [said for fault, said in both if glob_server(fault.glob) in {None, server}]

    def policy_for(self, server: str) -> dict[str, JSON] | None:
        """The map of the policy that the proxy in front of `server` gets, None where there is nothing to enforce.

        A server that is untrusted or third_party may not ask the client for anything unless the policy says so
        (design.md section 4).
        """
        said = dict(self.policy_map) if self.policy_map is not None else None
        if self.servers[server].trust not in ("untrusted", "third_party"):
            return said
        asked: dict[str, JSON] = {"sampling": "deny", "elicitation": "deny", "roots": "deny"}
        written = (said or {}).get("client_requests")
        return {**(said or {}), "client_requests": {**asked, **(written if isinstance(written, dict) else {})}}


class _Reading:
    """One scenario being read, with the files that it names."""

    def __init__(self, path: Path, document: Document, fixtures: Offers | None) -> None:
        self.path, self.fixtures = path, fixtures
        self.intake = Intake(document)
        self.elsewhere: list[Problem] = []
        self.files = [path]
        # By server id. `known` is false without `servers`; `tools` is None where `servers` is broken.
        self.known = False
        self.tools: dict[str, tuple[str, ...] | None] | None = {}
        self.schemas: dict[str, tuple[str, ...]] = {}

    def problems(self) -> list[Problem]:
        return self.intake.problems + self.elsewhere

    def scenario(self) -> Scenario | None:
        data = self.intake.document.data
        if is_task(data) and isinstance(data, dict):
            data = as_scenario(self.intake, data)
            if data is None:
                return None
        if (other := looks_like(data, "scenario")) is not None:
            self.intake.wrong((), other)
            return None
        entry = self.intake.read(ScenarioEntry, data, ())
        if not isinstance(data, dict):
            return None
        servers = self.servers(data["servers"]) if "servers" in data else {}
        tools = self.tools if self.known else None
        policy, policy_map = read_policy(self.intake, data, tools, self.elsewhere, self.file)
        grants = read_grants(self.intake, data, tools, policy)
        agent = None
        if "agent" in data:
            agent = read_scenario_agent(self.intake, data["agent"], self.path, self.tools, self.elsewhere, self.file)
        assertions = self.assertions(data.get("assertions"))
        steps = data.get("reference", [])
        reference = read_steps(self.intake, steps, ("reference",), self.tools) if isinstance(steps, list) else ()
        if self.known and self.tools is not None:
            check_servers(self.intake, entry, assertions, self.tools)
            check_tools(self.intake, entry, assertions, self.tools)
            check_state(self.intake, assertions, self.schemas)
        if entry is None:
            return None
        note_slips(self.intake, data)
        check_ids(self.intake, assertions)
        check_fields(self.intake, entry, {assertion.type for assertion in assertions.values()})
        expected, target = data.get("expected", {}), data.get("target", {})
        return Scenario(
            self.path,
            tuple(dict.fromkeys(self.files)),
            entry.id,
            entry.title,
            entry.category,
            entry.severity,
            entry.labels,
            target if isinstance(target, dict) else {},
            given if isinstance(given := data.get("input"), dict) else {},
            entry.input.user_message,
            servers,
            policy,
            policy_map,
            grants,
            agent,
            entry.trials,
            Limits(entry.limits.seconds, entry.limits.tool_calls, entry.limits.tokens, entry.limits.cost),
            tuple(entry.facts),
            expected if isinstance(expected, dict) else {},
            tuple(assertions.values()),
            reference,
            self.tools or {},
            *read_faults(self.intake, data, tools),
            tuple(self.intake.notes),
        )

    def file(self, name: str, path: FieldPath) -> Path | None:
        """The file that the field at `path` names, relative to the scenario's folder; None (and noted) when missing."""
        file = self.path.parent / name
        try:
            there = file.is_file()
        except OSError as error:
            self.intake.wrong(path, f"{describe(name)} is no path: {error.strerror}")
            return None
        if not there:
            self.intake.wrong(path, f"there is no file {file}; paths are relative to the scenario's folder")
            return None
        self.files.append(file)
        return file

    def servers(self, data: JSON) -> dict[str, Server]:
        if not isinstance(data, dict):
            self.intake.wrong(("servers",), f"expected a map from server ids to servers, not {describe(data)}")
            self.tools = None
            return {}
        self.known, self.tools = True, dict.fromkeys(data)
        servers: dict[str, Server] = {}
        for name, item in data.items():
            path: FieldPath = ("servers", name)
            if (problem := check_server_id(name)) is not None or not name.strip("."):
                self.intake.wrong(path, problem or "a server id may not be dots alone")
            entry = self.intake.read(ServerEntry, item, path)
            if entry is not None and (server := self.server(entry, path)) is not None:
                servers[name] = server
            offer = (self.fixtures or {}).get(entry.fixture or "") if entry is not None else None
            if offer is not None:
                self.tools[name], self.schemas[name] = offer.tools, offer.schema
        return servers

    def server(self, entry: ServerEntry, path: FieldPath) -> Server | None:
        if (entry.fixture is not None) + (entry.command is not None) + (entry.url is not None) != 1:
            self.intake.wrong(path, "a server has exactly one of fixture, command and url")
            return None
        for name, value, owner in (("seed", entry.seed, entry.fixture), ("env", entry.env, entry.command)):
            if value is not None and owner is None:
                wanted = "a fixture" if name == "seed" else "a command"
                self.intake.wrong((*path, name), f"only {wanted} has {name}")
        if entry.command is not None:
            return CommandServer(tuple(entry.command), entry.env or {}, entry.trust)
        if entry.url is not None:
            return UrlServer(entry.url, entry.trust)
        fixture = entry.fixture or ""
        if self.fixtures is not None and fixture not in self.fixtures:
            there = ", ".join(sorted(self.fixtures))
            self.intake.wrong((*path, "fixture"), f"there is no fixture {fixture!r}; there are {there}")
        if entry.seed is None:
            return FixtureServer(fixture, trust=entry.trust)
        seed = self.file(entry.seed, (*path, "seed"))
        rows = None if seed is None else read_seed(seed, self.elsewhere)
        return FixtureServer(fixture, seed, rows, entry.trust)

    def assertions(self, data: JSON) -> dict[int, Assertion]:
        assertions: dict[int, Assertion] = {}
        for place, item in enumerate(data if isinstance(data, list) else []):
            try:
                assertions[place] = parse_assertion(item)
            except AssertionSpecError as error:
                for path, message in error.problems:
                    self.intake.wrong(("assertions", place, *path), message)
        return assertions


def load_scenario(path: Path, fixtures: Offers | None = None) -> Scenario:
    """The scenario of a file, with the files that it names. Raises ScenarioError with everything that is wrong.

    `fixtures` are what `fixture:` may name, None where they are not known.
    """
    problems: list[Problem] = []
    document = open_document(path, problems)
    if document is None:
        raise ScenarioError(problems)
    reading = _Reading(path, document, fixtures)
    scenario = reading.scenario()
    if scenario is None or reading.problems():
        raise ScenarioError(reading.problems())
    return scenario
