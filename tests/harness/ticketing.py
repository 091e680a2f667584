"""Scripted agents before the ticketing fixture, and `wiretrap run` over them."""

import json
import os
import subprocess
from pathlib import Path

from click.testing import CliRunner

from harness.commands.run import command
from harness.targets.proxied import wiretrap_command
from proxy.spans import JSON
from tests.harness.runs import write_scenario

DIRECT: JSON = {"transport": "in_process", "steps": [{"say": "All done."}]}


def write_agent(folder: Path, agent: JSON, name: str = "agent.yaml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(agent))
    return path


def wiretrap(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [*wiretrap_command(), "run", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False)


def refused(*arguments: str) -> str:
    """What `wiretrap run` says, in this process, of what it does not even begin."""
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 2, done.output
    return done.stderr


def ticketing(folder: Path, agent: JSON, **fields: JSON) -> Path:
    """A scenario over the ticketing fixture in this process's likeness: nothing is started."""
    given: dict[str, JSON] = {
        "id": "tickets",
        "servers": {"ticketing": {"fixture": "ticketing", "trust": "internal"}},
        "assertions": [{"type": "tool_called", "tool": "mcp/ticketing/get_ticket"}],
        "agent": {"scripted": str(write_agent(folder, agent))},
        **fields,
    }
    return write_scenario(folder, **given)


def call(tool: str, **more: JSON) -> dict[str, JSON]:
    return {"call": f"mcp/ticketing/{tool}", **more}


def direct(*steps: JSON) -> JSON:
    return {"transport": "in_process", "steps": list(steps)}


GET: JSON = {"call": "mcp/ticketing/get_ticket", "arguments": {"ticket_id": 1}}
