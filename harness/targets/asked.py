"""Runs a target that is no program of its own: hands a task to one of `harness.targets.programs`, and reads its report.

Refuses to know HTTP and frameworks. A program gets `{scenario_id, prompt, input, mcp_servers}` as a file, and leaves
what the target itself reported as another: that is the whole protocol. All of it is the target's own word.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.finite import finite
from harness.hiding import Hiding
from harness.jsontext import JsonReader
from harness.runfolder import write_new
from harness.targetfile import Called, Remote, filled
from harness.targets.command import Handed, run_command
from harness.targets.conversation import Conversation
from harness.targets.deadline import Deadline
from harness.targets.ending import Ending
from harness.targets.needed import lacking
from harness.targets.streams import Streams
from proxy.plainfile import open_plain
from proxy.spans import JSON

PROGRAMS = Path(__file__).parent / "programs"
LARGEST_REPORT = 1 << 30


@dataclass(frozen=True, slots=True)
class Task:
    """What a target is asked: the scenario, its input, its servers as `mcpServers` has them, and where all is written.

    `servers` has none that the target could not reach.
    """

    scenario_id: str
    given: Mapping[str, JSON]
    servers: Mapping[str, JSON]
    handed: Handed
    streams: Streams
    private: Path
    hiding: Hiding
    deadline: Deadline
    most_calls: int | None

    def document(self) -> dict[str, JSON]:
        """The task as a program gets it, and with `python` the agent."""
        return {
            "scenario_id": self.scenario_id,
            "prompt": self.handed.prompt,
            "input": dict(self.given),
            "mcp_servers": dict(self.servers),
        }


def run_asked(agent: Remote | Called, task: Task, conversation: Conversation) -> Ending:
    """Ask the agent, end all that it started, and keep what it reported in the trial's folder."""
    document = task.document()
    match agent:
        case Remote():
            document["ask"] = _ask(agent, task)
            program = [sys.executable, "-P", str(PROGRAMS / "posting.py")]
            conversation.reported = agent.contract == "http"
            folder = task.private
        case Called():
            why = lacking(agent)
            if why is not None:
                return Ending("infra_error", why)
            folder = Path.cwd() if agent.path is None else agent.path.parent
            words = [agent.framework, agent.function, str(folder.absolute())]
            program = [agent.interpreter, "-P", str(PROGRAMS / "calling.py"), *words]
    asked = write_new(task.private / "task.json", json.dumps(document))
    report = task.private / "report.json"
    words = [*program, str(asked), str(report)]
    ending = run_command(words, folder, task.handed, task.streams, conversation, task.deadline, task.most_calls)
    told = _read(report)
    if told is None:
        return _unread(ending)
    ending = replace(ending, first_ms=_milliseconds(told.get("first_ms")))
    failure = told.get("failure")
    match agent, failure, ending.status:
        case Remote(), {"status": "infra_error", "reason": str(reason)}, "agent_crash":
            # Our own program says so, and the target is not on this machine's side of it.
            return replace(ending, status="infra_error", reason=reason)
        case Called(), {"status": "infra_error", "reason": str(reason)}, "agent_crash":
            # Its function never got the task: what is wrong is how it was set up, whoever says so.
            return replace(ending, status="infra_error", reason=reason)
        case Remote(), {"reason": str(reason)}, "agent_crash":
            return replace(ending, reason=reason)
        case _:
            pass
    reported = told.get("reported")
    if ending.status != "completed" or not isinstance(reported, dict):
        return ending
    try:
        write_new(task.streams.folder.reported, task.hiding.text(json.dumps(reported)))
    except OSError as error:
        said = f"what the agent reported cannot be written: {error.strerror or error}"
        return replace(ending, damage=(*ending.damage, said))
    return ending


def _unread(ending: Ending) -> Ending:
    """The end of a target whose report is there and no JSON that is read, such as one that is nested too deep."""
    if ending.status != "completed":
        return ending
    return replace(ending, status="agent_crash", reason="what the agent reported is no JSON that can be read")


def _ask(agent: Remote, task: Task) -> JSON:
    servers: dict[str, JSON] = {
        name: {"type": "http", "url": entry["url"]}
        for name, entry in task.servers.items()
        if isinstance(entry, dict) and "url" in entry
    }
    if agent.contract == "http":
        body: JSON = {
            "scenario_id": task.scenario_id,
            "input": dict(task.given),
            **({"mcp_servers": servers} if agent.hand_over else {}),
        }
    else:
        body = filled(agent.request, task.handed.prompt, task.scenario_id, servers)
    return {
        "contract": agent.contract,
        "url": agent.url,
        "headers": dict(agent.headers),
        "header_env": dict(agent.header_env),
        "max_bytes": agent.max_bytes,
        "answer": agent.answer,
        "body": body,
    }


def _milliseconds(value: JSON) -> float | None:
    number = finite(value)
    return number if number is not None and number >= 0 else None


def _read(report: Path) -> dict[str, JSON] | None:
    """What a program left; nothing where it ended before, and None where it cannot be read."""
    try:
        with open_plain(report) as file:
            # NaN and numbers past a double become texts, so that what is written of them is JSON.
            found = JsonReader().read(file.read(LARGEST_REPORT).decode("utf-8", "surrogateescape"))
    except OSError:
        return {}
    return found if isinstance(found, dict) else None
