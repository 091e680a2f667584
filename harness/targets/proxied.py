"""The files and commands that put our proxy between an agent and each server of a scenario.

Refuses to know who starts the commands, and what the servers do.
"""

import json
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.canaries import canary_names, draw, plant
from harness.runfolder import write_new
from harness.scenario import CommandServer, FixtureServer, Scenario, Server, UrlServer
from harness.targets.context import DEFAULT_AGENT, Context
from harness.targets.fixtures import fixture_command, init_fixture
from proxy.digests import command_digest, policy_digest
from proxy.faults import load_faults
from proxy.grants import load_grants
from proxy.policy import load_policy


class PreparationError(ValueError):
    """A server that cannot be got ready; the message names it."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """One server with our proxy in front of it. `front` is where the agent reaches it over HTTP, "" over stdio.

    `listens` is true where the proxy is to be started for the agent, and waits for it at a port.

    `policy` is the proxy's policy file, None where nothing is enforced, `grants` its file of approvals made beforehand,
    and `faults` that of faults; `database` is that of a fixture. `command` and `environment` are how an agent starts
    the proxy; the digests are those that its spans must have (proxy.digests).
    """

    id: str
    server: Server
    policy: Path | None
    database: Path | None
    command: tuple[str, ...]
    environment: Mapping[str, str]
    command_sha256: str
    policy_sha256: str
    front: str = ""
    grants: Path | None = None
    listens: bool = False
    faults: Path | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """All servers of one trial, seeded, and the context file that tells their proxies whose calls they see.

    `canaries` are those that the seeds planted, by name; `agents` the ids of all agents that have connections.
    """

    context: Path
    upstreams: tuple[Upstream, ...]
    canaries: Mapping[str, str] = field(default_factory=dict)
    agents: tuple[str, ...] = (DEFAULT_AGENT,)


def wiretrap_command() -> tuple[str, ...]:
    """How `wiretrap` is started from here: the console script beside this interpreter, else the module."""
    script = Path(sys.executable).with_name("wiretrap")
    return (str(script),) if script.is_file() else (sys.executable, "-P", "-m", "harness.cli")


def prepare(
    scenario: Scenario,
    agent: Context,
    spans: Path,
    folder: Path,
    otlp: str | None = None,
    canaries: Mapping[str, str] | None = None,
    ports: Mapping[str, int] | None = None,
) -> Prepared:
    """Seed the databases and write context and policy files into the private `folder`. Raises PreparationError.

    `otlp` is where the proxies send copies of their spans; None for nowhere. `canaries` are those to plant, None for
    new ones. With `ports` the agent starts no proxy: each listens, at the port of its server or else at any.
    """
    context = write_new(folder / "context.json", agent.as_text(str(spans.absolute())))
    canaries = new_canaries(scenario) if canaries is None else canaries
    key = bytes.fromhex(agent.redact_key)
    upstreams = tuple(
        _upstream(scenario, server_id, planted(server, canaries), context, key, folder, otlp, ports)
        for server_id, server in scenario.servers.items()
    )
    return Prepared(context, upstreams, canaries)


def told_of(upstream: Upstream, before: Path, context: Path) -> Upstream:
    """The same server for the agent of another context file than `before`."""
    end = upstream.command.index("--") if "--" in upstream.command else len(upstream.command)
    ours = tuple(str(context) if word == str(before) else word for word in upstream.command[:end])
    return replace(upstream, command=(*ours, *upstream.command[end:]))


def new_canaries(scenario: Scenario) -> dict[str, str]:
    """A new canary for each name that the scenario's seeds plant."""
    fixtures = [server for server in scenario.servers.values() if isinstance(server, FixtureServer)]
    return draw((name for fixture in fixtures for name in canary_names(dict(fixture.rows or {}))), secrets.choice)


def planted(server: Server, canaries: Mapping[str, str]) -> Server:
    """The server with canaries in its rows, where the scenario gives it rows."""
    match server:
        case FixtureServer(rows=dict() as rows):
            return replace(server, rows={table: plant(found, canaries) for table, found in rows.items()})
        case _:
            return server


def _upstream(
    scenario: Scenario,
    server_id: str,
    server: Server,
    context: Path,
    key: bytes,
    folder: Path,
    otlp: str | None,
    ports: Mapping[str, int] | None,
) -> Upstream:
    policy_map = scenario.policy_for(server_id)
    policy = None
    if policy_map is not None:
        # In ASCII: YAML folds some line ends of Unicode, and a glob would become another.
        policy = write_new(folder / f"{server_id}.policy.json", json.dumps(policy_map, indent=2))
    grants = None
    if scenario.grants:
        grants = write_new(folder / f"{server_id}.grants.json", json.dumps(scenario.grants, indent=2))
    meant = scenario.faults_for(server_id)
    faults = write_new(folder / f"{server_id}.faults.json", json.dumps(meant, indent=2)) if meant else None
    environment: Mapping[str, str] = {}
    database = None
    match server:
        case FixtureServer():
            database = folder / f"{server_id}.db"
            init_fixture(server.fixture, database, server.seed, server.rows)
            start = fixture_command(server.fixture, database)
        case CommandServer():
            start = find_command(server.command, scenario.path.parent)
            environment = server.env
            if shutil.which(start[0], path=environment.get("PATH")) is None:
                raise PreparationError(f"server {server_id}: the command {start[0]!r} is not found")
        case UrlServer():
            start = (server.url,)
    options = ["--server", server_id, "--trust", server.trust, "--context", str(context), "--quiet"]
    if policy is not None:
        options += ["--policy", str(policy)]
    if grants is not None:
        options += ["--grants", str(grants)]
    if faults is not None:
        options += ["--faults", str(faults)]
    if otlp is not None:
        options += ["--otlp", otlp]
    port = str((ports or {}).get(server_id, 0))
    if isinstance(server, UrlServer):
        command = (*wiretrap_command(), "proxy", "http", *options, "--url", server.url, "--port", port)
    elif ports is not None:
        command = (*wiretrap_command(), "proxy", "bridge", *options, "--port", port, "--", *start)
    else:
        command = (*wiretrap_command(), "proxy", "stdio", *options, "--", *start)
    said = None if policy is None else load_policy(str(policy))
    granted = () if grants is None else load_grants(str(grants)).grants
    listens = isinstance(server, UrlServer) or ports is not None
    spoilt = () if faults is None else load_faults(str(faults))
    made_of = command_digest(key, start), policy_digest(key, said, granted, spoilt)
    return Upstream(
        server_id,
        server,
        policy,
        database,
        command,
        environment,
        *made_of,
        grants=grants,
        listens=listens,
        faults=faults,
    )


def find_command(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The command with every word that names a file of `folder` made absolute: agents start servers from anywhere."""

    def absolute(word: str) -> str:
        return str((folder / word).absolute()) if word and (folder / word).is_file() else word

    program, *rest = command
    return (absolute(program) if "/" in program else program, *map(absolute, rest))
