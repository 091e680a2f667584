"""Runs for tests: scenarios written down, run as a person runs them, and what they left."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.results import RunResult
from harness.running import run_selected
from harness.selection import Selection, load_selection
from proxy.spans import JSON

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCENARIOS = ROOT / "scenarios"
AGENT = HERE / "small_agent.py"
SERVER: dict[str, JSON] = {"command": [sys.executable, "-S", str(HERE / "small_server.py")], "trust": "internal"}
ECHOED: list[JSON] = [{"type": "tool_called", "tool": "mcp/echo/echo"}]


def write_scenario(folder: Path, **fields: JSON) -> Path:
    """A scenario file with one small server, in JSON, which is YAML too; `fields` come over its own."""
    scenario: dict[str, JSON] = {
        "id": "small",
        "title": "The agent says hello",
        "category": "task",
        "input": {"user_message": "Say hello."},
        "servers": {"echo": SERVER},
        "assertions": ECHOED,
        **fields,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{scenario['id']}.yaml"
    path.write_text(json.dumps({name: value for name, value in scenario.items() if value is not None}))
    return path


def behave(behaviour: str, *arguments: str) -> tuple[str, ...]:
    """The command of the small agent."""
    return (sys.executable, str(AGENT), behaviour, *arguments)


@dataclass(frozen=True, slots=True)
class Ran:
    result: RunResult
    folder: Path

    def document(self, *place: str) -> dict[str, JSON]:
        """A JSON document of the run folder."""
        found: JSON = json.loads(self.folder.joinpath(*place).read_text())
        assert isinstance(found, dict)
        return found


def run(
    paths: Sequence[Path],
    out: Path,
    *,
    command: tuple[str, ...] | None = None,
    agent: Path | None = None,
    trials: int | None = None,
    jobs: int = 1,
    keep: bool = False,
    judge: str | None = None,
) -> Ran:
    selection = Selection(tuple(map(str, paths)), None if agent is None else str(agent), command)
    result, folder = run_selected(
        load_selection(selection), selection, trials=trials, jobs=jobs, out=out / "runs", keep=keep, judge=judge
    )
    return Ran(result, folder)


def marked(mark: Mapping[str, str]) -> list[str]:
    """Every process but this one whose environment has these variables."""
    wanted = [f"{name}={value}".encode() for name, value in mark.items()]
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        if all(variable in environment for variable in wanted):
            found.append(f"{entry} {command!r}")
    return found
