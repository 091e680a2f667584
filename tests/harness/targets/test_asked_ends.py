"""How targets that are asked or called end before their answer: failures and limits, each with its report.

Those of every kind of target, and Ctrl-C, are tried at length in tests/frameworks/check_ends.py.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest

from harness.tracefile import load_trace
from harness.verdict import Status
from proxy.spans import JSON
from tests.harness.runs import ECHOED, ROOT, Ran, marked, run, write_scenario
from tests.harness.targets.boxes import Asked, box, deltas
from tests.harness.targets.mailing import Server

DEADLINE = 60.0
MARK = "MARK_OF_AN_END"
SAID: list[JSON] = [{"type": "no_denied_tool_call"}]
DENIED: JSON = {"denied_tools": ["send_email"]}
LIMIT = 1.5
"""Seconds of a trial whose target never comes to an end."""
TARGETS = ("http", "chat", "python")
FUNCTION = f"""
import sys
from urllib.request import urlopen
sys.path.insert(0, {str(ROOT)!r})
from tests.harness.targets.mailing import Server

def once(task):
    with Server(task["mcp_servers"]["echo"]) as echo:
        echo.call("echo", text="one")
        urlopen(task["input"]["box"] + "/called", b"{{}}").read()
        urlopen(task["input"]["box"] + "/silence", b"{{}}").read()

def again(task):
    with Server(task["mcp_servers"]["echo"]) as echo:
        while True:
            echo.call("echo", text="more")
"""


class Targets:
    """A server with everything that may go wrong, by path. `gone` are the paths whose client went before the end."""

    def __init__(self) -> None:
        self.called = {name: Event() for name in TARGETS}
        self.gone: dict[str, Event] = {}

    def handle(self, asked: Asked) -> None:
        name = asked.path.strip("/")
        gone = self.gone.setdefault(name, Event())
        document = asked.document()
        match name:
            case "error":
                asked.answer(b"{}", status=500)
            case "moved" | "filed":
                asked.send_response(307)
                asked.send_header("location", "file:///etc/passwd" if name == "filed" else "/fine")
                asked.end_headers()
            case "large":
                asked.answer(json.dumps({"messages": [{"role": "assistant", "content": "x" * 2000}]}).encode())
            case "text":
                asked.answer(b"I did it.")
            case "constant":
                asked.answer(b'{"events": [{"type": "model_call", "in": NaN}]}')
            case "list":
                asked.answer(b"[]")
            case "words":
                asked.answer(b'{"tool_calls": "none"}')
            case "shapes":
                asked.answer(b'{"messages": ["done"]}')
            case "deep":
                asked.answer(b'{"events": [{"type": "x", "y": ' + b"[" * 400 + b"]" * 400 + b"}]}")
            case "cut":
                asked.answer(b'{"messages": []', length=90)
            case "half":
                asked.stream(*deltas("half")[:1])
            case "called":
                self.called["python"].set()
                asked.answer(b"")
            case _:
                self._without_end(asked, name, document)
                gone.set()

    def _without_end(self, asked: Asked, name: str, document: dict[str, JSON]) -> None:
        """What goes on until the client goes, or has no servers any more."""
        servers = document.get("mcp_servers")
        if isinstance(servers, dict) and isinstance(entry := servers["echo"], dict):
            with suppress(OSError), Server(entry) as echo:
                echo.call("echo", text="one")
                self.called["http" if "http" in name else "chat"].set()
                while name.startswith("again"):
                    echo.call("echo", text="more")
                asked.connection.recv(1)
            return
        with suppress(OSError):
            if name.startswith("drip"):
                asked.send_response(200)
                asked.send_header("content-type", "text/plain" if name == "drip_chat" else "application/json")
                asked.end_headers()
                while True:
                    asked.wfile.write(b"so far ")
                    asked.wfile.flush()
            asked.connection.recv(1)


@dataclass(frozen=True)
class Failure:
    """A path, the contract by which it is asked, and how the trial ends."""

    path: str
    status: Status
    says: str
    contract: str = "http"


FAILURES = [
    Failure("refused", "infra_error", "cannot be reached"),
    Failure("error", "agent_crash", "HTTP status 500"),
    Failure("moved", "agent_crash", "redirection (307), which is not followed"),
    Failure("filed", "agent_crash", "redirection (307), which is not followed"),
    Failure("large", "agent_crash", "longer than max_bytes = 1000"),
    Failure("text", "agent_crash", "no JSON"),
    Failure("constant", "agent_crash", "no JSON"),
    Failure("list", "agent_crash", "no object"),
    Failure("words", "agent_crash", "tool_calls is no list of objects"),
    Failure("shapes", "agent_crash", "messages is no list of objects"),
    Failure("deep", "agent_crash", "no JSON that can be read"),
    Failure("cut", "agent_crash", "broke off"),
    Failure("silence", "agent_timeout", "limits.seconds"),
    Failure("drip", "agent_timeout", "limits.seconds"),
    Failure("half", "agent_crash", "ended before its last event", "chat"),
    Failure("drip_chat", "agent_timeout", "limits.seconds", "chat"),
]


def agent_file(folder: Path, name: str, agent: JSON) -> JSON:
    path = folder / f"{name}.agent.json"
    path.write_text(json.dumps(agent))
    return {"scripted": str(path)}


def working(folder: Path, url: str, does: str, target: str, **limits: JSON) -> Path:
    """A scenario whose agent calls `echo` once and is silent then (`once`), or calls it without end (`again`)."""
    name = f"{does}_{target}"
    request: JSON = {"say": "{prompt}", "mcp_servers": "{mcp_servers}"}
    agents: dict[str, JSON] = {
        "http": {"http": {"url": f"{url}/{name}", "hand_over": True}},
        "chat": {"chat": {"url": f"{url}/{name}", "request": request}},
        "python": {"python": f"ends:{does}"},
    }
    (folder / "ends.py").write_text(FUNCTION)
    given: JSON = {"user_message": "Say hello.", "box": url}
    agent = agent_file(folder, name, agents[target])
    return write_scenario(folder, id=name, agent=agent, input=given, limits=limits, assertions=ECHOED)


@dataclass(frozen=True)
class Ended:
    ran: Ran
    targets: Targets
    mark: dict[str, str]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    """One run of all trials that end by themselves or by a limit."""
    folder, targets = tmp_path_factory.mktemp("ends"), Targets()
    mark = {MARK: str(folder)}
    with box(lambda _: None) as nobody:
        pass
    with box(targets.handle) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, str(folder))
        paths = []
        for one in FAILURES:
            asked: JSON = {"url": f"{nobody if one.path == 'refused' else url}/{one.path}", "max_bytes": 1000}
            if one.path.startswith("drip"):
                asked = {"url": f"{url}/{one.path}"}
            agent = agent_file(folder, one.path, {one.contract: asked})
            fields: dict[str, JSON] = {"assertions": SAID, "expected": DENIED, "limits": {"seconds": LIMIT}}
            paths.append(write_scenario(folder, id=one.path, servers=None, agent=agent, **fields))
        paths.append(working(folder, url, "once", "python", seconds=4 * LIMIT))
        paths.append(working(folder, url, "again", "chat", seconds=DEADLINE, tool_calls=2))
        yield Ended(run(paths, folder, jobs=2), targets, mark)


def status_of(ended: Ended, name: str) -> tuple[str, str]:
    """Status and reason, as they stand in the trial's own report and in that of the run."""
    found = ended.ran.document(name, "1", "verdict.json")
    [trial] = [one for one in ended.ran.result.trials if one.scenario == name]
    assert (trial.verdict.status, trial.verdict.reason) == (found["status"], found["reason"])
    assert f'"{name}"' in (ended.ran.folder / "report.json").read_text()
    assert f'name="{name}"' in (ended.ran.folder / "junit.xml").read_text()
    return str(found["status"]), str(found["reason"])


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: str(one.path))
def test_every_failure_of_a_target_over_http_is_a_status_of_its_trial_with_a_report(
    ended: Ended, failure: Failure
) -> None:
    status, reason = status_of(ended, failure.path)
    assert status == failure.status, reason
    assert failure.says in reason
    if status == "agent_timeout":
        assert ended.targets.gone[failure.path].wait(DEADLINE), "the request was not abandoned"
    if failure.path != "refused":
        assert ended.ran.document(failure.path, "1", "verdict.json")["result"] == "fail"


def test_text_that_came_before_the_time_was_up_is_kept(ended: Ended) -> None:
    trace = load_trace(ended.ran.folder / "drip_chat" / "1" / "trace.json")
    assert str(trace.messages[-1].content).startswith("so far so far")
    assert (ended.ran.folder / "half" / "1" / "agent.out").read_text() == "half"
    [trial] = [one for one in ended.ran.result.trials if one.scenario == "drip_chat"]
    assert "first text after" in trial.measures["latency"].why


@pytest.mark.parametrize(("does", "target"), [("once", "python"), ("again", "chat")])
def test_at_a_limit_the_target_is_let_go_and_what_was_seen_is_judged(ended: Ended, does: str, target: str) -> None:
    at_its_limit(ended, does, target)


def at_its_limit(ended: Ended, does: str, target: str) -> None:
    """Check that a trial of `working` ended as it has to, and left nothing."""
    name = f"{does}_{target}"
    found, reason = status_of(ended, name)
    assert found == ("limit" if does == "again" else "agent_timeout"), reason
    calls = load_trace(ended.ran.folder / name / "1" / "trace.json").tool_calls
    assert len(calls) > (2 if does == "again" else 0)
    assert (calls[0].name, calls[0].outcome) == ("mcp/echo/echo", "ok")
    verdict = ended.ran.document(name, "1", "verdict.json")
    assert verdict["result"] == "fail"
    findings = verdict["findings"]
    assert isinstance(findings, list)
    assert [(one["id"], one["result"]) for one in findings if isinstance(one, dict)] == [("tool_called", "pass")]
    if target != "python":
        assert ended.targets.gone[name].wait(DEADLINE), "the request was not abandoned"
    assert marked(ended.mark) == []
