"""Trials of targets that are asked over HTTP, called in Python, or recorded: from agent file to verdict."""

import json
from pathlib import Path

import pytest

from harness.commands.targets import command as targets
from harness.results import RunResult, TrialResult
from harness.tracefile import load_trace
from proxy.spans import JSON
from tests.harness.runs import ECHOED, marked, run, write_scenario
from tests.harness.targets.boxes import Asked, box, deltas
from tests.harness.targets.mailing import Server

EFFICIENT: list[JSON] = [*ECHOED, {"type": "efficiency", "minimum": 1}]
SAID: list[JSON] = [{"type": "no_denied_tool_call"}]
DENIED: JSON = {"denied_tools": ["send_email"]}


def agent_file(folder: Path, **agent: JSON) -> Path:
    path = folder / "agent.yaml"
    path.write_text(json.dumps({key.replace("_", "-"): value for key, value in agent.items()}))
    return path


def only(result: RunResult) -> TrialResult:
    [trial] = result.trials
    return trial


def seen(trial: TrialResult) -> dict[str, str]:
    return {name: measure.seen for name, measure in trial.measures.items()}


def chatting(asked: Asked) -> None:
    """A black box that streams its answer, and calls `echo` of the server that it is handed, if any."""
    document = asked.document()
    servers = document.get("servers")
    if isinstance(servers, dict):
        entry = servers["echo"]
        assert isinstance(entry, dict)
        with Server(entry) as echo:
            echo.call("echo", text="hello")
    asked.stream(*deltas("hel", "lo"))


def test_a_black_box_shows_its_path_once_its_servers_are_behind_the_proxy(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, assertions=EFFICIENT)
    with box(chatting) as url:
        alone = run([scenario], tmp_path, agent=agent_file(tmp_path, chat={"url": url}))
        request: JSON = {"messages": [{"role": "user", "content": "{prompt}"}], "servers": "{mcp_servers}"}
        proxied = run([scenario], tmp_path, agent=agent_file(tmp_path, chat={"url": url, "request": request}))
    dark, light = only(alone.result), only(proxied.result)
    assert (dark.target, dark.verdict.result) == ("chat alone", "not_run")
    assert (light.target, light.verdict.result) == ("chat", "pass"), light.verdict
    for name in ("tool_correctness", "efficiency", "trajectory"):
        assert (seen(dark)[name], dark.measures[name].value) == ("not observable", None)
        assert (seen(light)[name], light.measures[name].value) == ("observed", 1)
    for trial in (dark, light):
        assert "first text after" in trial.measures["latency"].why
        assert (seen(trial)["tokens"], trial.measures["tokens"].value) == ("derived", 16)
    trace = load_trace(proxied.folder / "small" / "1" / "trace.json")
    assert [message.content for message in trace.messages] == ["Say hello.", "hello"]
    [call] = trace.tool_calls
    assert (call.name, call.arguments, call.mcp_transport) == ("mcp/echo/echo", {"text": "hello"}, "http")
    junit = (proxied.folder / "junit.xml").read_text()
    assert "chat trajectory: observed, 1, 1 call crossed the proxy" in junit
    report = proxied.document("report.json")["targets"]
    assert isinstance(report, dict)
    assert list(report) == ["chat"]


def lying(asked: Asked) -> None:
    """What the scenario's name asks for: an account that claims too much, or an answer that is none."""
    asked.document()
    match asked.path:
        case "/claims":
            calls: JSON = [{"name": "mcp/echo/echo", "arguments": {}}]
            events: JSON = [
                {"type": "mcp_connection_initialized", "server_id": "echo"},
                {"type": "goal", "id": "greet"},
            ]
            said: JSON = [{"role": "assistant", "content": "Hello."}]
            asked.answer(json.dumps({"messages": said, "tool_calls": calls, "events": events}).encode())
        case "/denied":
            asked.answer(json.dumps({"tool_calls": [{"name": "send_email"}]}).encode())
        case "/clean":
            asked.answer(json.dumps({"messages": [{"role": "assistant", "content": "x"}]}).encode())


def test_what_a_target_claims_of_its_calls_never_stands_for_what_was_seen(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path)
    with box(lying) as url:
        ran = run([scenario], tmp_path, agent=agent_file(tmp_path, http={"url": f"{url}/claims", "hand_over": True}))
    trial = only(ran.result)
    assert (trial.verdict.result, trial.verdict.status) == ("not_run", "completed"), trial.verdict
    assert "echo was never initialised through us" in trial.verdict.reason
    assert seen(trial)["trajectory"] == "derived"
    place = ran.folder / "small" / "1"
    assert (place / "reported.json").stat().st_mode & 0o777 == 0o600
    trace = load_trace(place / "trace.json")
    assert (trace.coverage.tool_calls, trace.coverage.messages) == ("reported", "reported")
    assert [call.name for call in trace.tool_calls] == ["target:mcp/echo/echo"]
    told = [event for event in trace.events if event.reported]
    assert [event.type for event in told] == ["target:mcp_connection_initialized", "goal"]


def test_a_live_answer_without_servers_is_judged_as_the_account_that_it_is(tmp_path: Path) -> None:
    def verdict(path: str) -> TrialResult:
        scenario = write_scenario(tmp_path, servers=None, assertions=SAID, expected=DENIED)
        return only(run([scenario], tmp_path, agent=agent_file(tmp_path, http={"url": f"{url}{path}"})).result)

    with box(lying) as url:
        denied = verdict("/denied")
    assert denied.verdict.result == "fail"
    assert "send_email" in denied.verdict.reason
    assert seen(denied)["task_success"] == "derived"


FUNCTION = """
import os, subprocess, sys
sys.path.insert(0, {root!r})
from tests.harness.targets.mailing import Server

async def answer(task):
    print("this is no answer")
    # In a session of its own, with its streams closed to us.
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
    with Server(task["mcp_servers"]["echo"]) as echo:
        echo.call("echo", text=task["prompt"])
    return {{"answer": "done", "events": [{{"type": "handoff", "from": "a", "to": "b", "text": "x"}}]}}
"""


@pytest.mark.measured
def test_a_function_runs_in_a_process_of_its_own_and_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARK_OF_THIS_TEST", str(tmp_path))
    (tmp_path / "mine.py").write_text(FUNCTION.format(root=str(Path(__file__).parents[3])))
    scenario = write_scenario(tmp_path)
    ran = run([scenario], tmp_path, agent=agent_file(tmp_path, python="mine:answer"))
    trial = only(ran.result)
    assert (trial.target, trial.verdict.result) == ("python", "pass"), trial.verdict
    assert marked({"MARK_OF_THIS_TEST": str(tmp_path)}) == []
    place = ran.folder / "small" / "1"
    assert (place / "agent.out").read_text() == "done"
    assert "this is no answer" in (place / "agent.err").read_text()
    assert (seen(trial)["handovers"], trial.measures["handovers"].value) == ("derived", 1)
    program = ran.document("manifest.json")["scenarios"]
    assert "mine.py" in json.dumps(program)


def test_a_function_that_raises_is_a_crash_that_its_last_line_explains(tmp_path: Path) -> None:
    bodies = {"raises": "raise KeyError('no such key')", "events": "return {'events': [1]}", "more": "return {'x': 1}"}
    says = {"raises": "KeyError: 'no such key'", "events": "events is no list of objects", "more": "has 'x'"}
    (tmp_path / "mine.py").write_text("".join(f"def {name}(task):\n    {body}\n" for name, body in bodies.items()))
    paths = []
    for name in bodies:
        (tmp_path / f"{name}.agent.yaml").write_text(json.dumps({"python": f"mine:{name}"}))
        paths.append(write_scenario(tmp_path, id=name, servers=None, agent={"scripted": f"{name}.agent.yaml"}))
    ran = run(paths, tmp_path)
    assert [trial.verdict.status for trial in ran.result.trials] == ["agent_crash"] * 3
    for name, said in says.items():
        assert said in (ran.folder / name / "1" / "agent.err").read_text()


def test_a_recorded_trace_is_a_target_and_shown_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace: JSON = {"messages": [{"role": "assistant", "content": "ok"}], "tool_calls": [{"name": "echo"}]}
    (tmp_path / "small.json").write_text(json.dumps(trace))
    ran = run([write_scenario(tmp_path)], tmp_path, agent=agent_file(tmp_path, trace="{scenario_id}.json"))
    trial = only(ran.result)
    assert (trial.kind, trial.target) == ("imported", "trace")
    assert (seen(trial)["latency"], trial.measures["latency"].value) == ("not observable", None)
    assert seen(trial)["trajectory"] == "derived"
    with pytest.raises(SystemExit) as ended:
        targets.main([str(ran.folder)], standalone_mode=True)
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "trajectory       derived: 1 call, all as the target or a file reports them" in shown
    assert "latency          not observable: nothing was run" in shown


def test_targets_of_a_run_that_says_nothing_is_one_line_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (None, "[]", "{", json.dumps({"scenarios": [{"trials": [{}]}]})):
        if text is not None:
            (tmp_path / "report.json").write_text(text)
        with pytest.raises(SystemExit) as ended:
            targets.main([str(tmp_path)], standalone_mode=True)
        assert ended.value.code == 2
        assert "report.json" in capsys.readouterr().err


def test_the_kinds_of_targets_are_listed_with_what_can_be_seen(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        targets.main(["--format", "json"], standalone_mode=True)
    found = json.loads(capsys.readouterr().out)
    assert found["chat alone"]["trajectory"]["not observable"] == 1
    assert found["chat"]["trajectory"]["observed"] == 1
