import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from harness.verdict import Status
from proxy.spans import JSON
from tests.harness.runs import AGENT, HERE, SCENARIOS, behave, marked, run, write_scenario


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """Every process of the test carries it, so that one that is left can be told."""
    monkeypatch.setenv("WIRETRAP_TEST_MARK", str(tmp_path))
    monkeypatch.setenv("TEST_MARK", str(tmp_path))
    return {"TEST_MARK": str(tmp_path)}


@pytest.mark.measured
def test_an_agent_that_does_what_it_was_asked_passes(tmp_path: Path) -> None:
    ran = run([write_scenario(tmp_path)], tmp_path, command=behave("polite"))
    (trial,) = ran.result.trials
    assert (trial.verdict.result, trial.verdict.status, trial.kind) == ("pass", "completed", "real")
    assert ran.result.exit_code == 0
    assert (ran.folder / "small/1/agent.out").read_text() == "All done.\n"
    messages = ran.document("small", "1", "trace.json")["messages"]
    assert isinstance(messages, list)
    said = [(message["role"], message["content"]) for message in messages if isinstance(message, dict)]
    assert said == [("user", "Say hello."), ("assistant", "All done.\n")]


@pytest.mark.parametrize(
    ("behaviour", "status", "reason", "limits"),
    [
        ("exit3", "agent_crash", "exit code 3", {}),
        ("kills_itself", "agent_crash", "SIGKILL", {}),
        ("endless", "agent_timeout", "limits.seconds", {"seconds": 2}),
        ("calls_on", "limit", "limits.tool_calls = 5", {"tool_calls": 5}),
        ("calls_four", "limit", "limits.tool_calls = 3", {"tool_calls": 3}),
    ],
)
def test_an_agent_that_does_not_come_to_a_good_end_fails_by_its_status_and_leaves_nothing(
    tmp_path: Path, mark: dict[str, str], behaviour: str, status: Status, reason: str, limits: dict[str, JSON]
) -> None:
    ran = run([write_scenario(tmp_path, limits=limits)], tmp_path, command=behave(behaviour))
    (trial,) = ran.result.trials
    assert (trial.verdict.result, trial.verdict.status) == ("fail", status)
    assert reason in trial.verdict.reason
    assert ran.result.exit_code == 1
    assert marked(mark) == []


@pytest.mark.measured
def test_daemons_and_servers_in_sessions_of_their_own_are_gone_and_the_verdict_stands(
    tmp_path: Path, mark: dict[str, str]
) -> None:
    ran = run([write_scenario(tmp_path)], tmp_path, command=behave("daemons"))
    assert ran.result.result == "pass"
    assert ran.result.trials[0].gaps == ()
    assert marked(mark) == []


@pytest.mark.measured
def test_an_agent_that_kills_its_proxy_leaves_a_record_that_says_it_is_not_whole(tmp_path: Path) -> None:
    ran = run([write_scenario(tmp_path)], tmp_path, command=behave("kills_proxy"))
    (trial,) = ran.result.trials
    assert trial.gaps
    record = ran.document("manifest.json")["record"]
    assert isinstance(record, dict)
    assert record["complete"] is False


def test_an_agent_that_kills_its_worker_fails_and_leaves_nothing(tmp_path: Path, mark: dict[str, str]) -> None:
    ran = run([write_scenario(tmp_path)], tmp_path, command=behave("kills_worker"), trials=2)
    assert [trial.verdict.status for trial in ran.result.trials] == ["agent_crash", "agent_crash"]
    assert all("the worker ended with code -9" in trial.verdict.reason for trial in ran.result.trials)
    assert ran.result.exit_code == 1
    assert marked(mark) == []


def test_ten_megabytes_of_answer_are_kept(tmp_path: Path) -> None:
    ran = run([write_scenario(tmp_path)], tmp_path, command=behave("chatter"))
    assert (ran.folder / "small/1/agent.out").stat().st_size == 10_000_000
    (trial,) = ran.result.trials
    assert (trial.verdict.result, trial.verdict.status) == ("not_run", "completed")


def test_trials_at_once_do_not_end_each_others_processes(tmp_path: Path, mark: dict[str, str]) -> None:
    polite = write_scenario(tmp_path, id="polite", agent={"command": list(behave("polite"))})
    daemons = write_scenario(tmp_path, id="daemons", agent={"command": list(behave("daemons"))})
    ran = run([polite, daemons], tmp_path, trials=3, jobs=2)
    assert [trial.verdict.result for trial in ran.result.trials] == ["pass"] * 6
    assert marked(mark) == []


@pytest.mark.measured
def test_placeholders_are_replaced_once_and_without_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told.json"
    monkeypatch.setenv("TOLD", str(told))
    prompt = "Say $HOME; `id` {mcp_config} \"'\n*"
    given: JSON = {"user_message": prompt, "context": [{"source": "mail", "trust": "untrusted", "content": "x"}]}
    path = write_scenario(tmp_path, input=given)
    run([path], tmp_path, command=behave("tells_what_it_got", "<{prompt}>", "{prompt_file}", "{mcp_config}", "{other}"))
    got = json.loads(told.read_text())
    assert got["arguments"][0] == f"<{prompt}>"
    assert got["arguments"][1].endswith("prompt.txt")
    assert got["arguments"][2].endswith("mcp.json")
    assert got["arguments"][3] == "{other}"
    assert got["prompt"] == prompt
    assert got["input"] == given
    assert got["stdin"] == ""
    assert got["variables"] == ["WIRETRAP_INPUT_FILE", "WIRETRAP_MCP_CONFIG", "WIRETRAP_PROMPT"]
    assert got["cwd"] == os.getcwd()
    entry = got["config"]["mcpServers"]["echo"]
    assert set(entry) == {"command", "args", "env"}
    assert "--context" in entry["args"]
    assert not Path(got["arguments"][1]).exists()


def test_a_prompt_too_long_for_a_variable_is_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told.json"
    monkeypatch.setenv("TOLD", str(told))
    path = write_scenario(tmp_path, input={"user_message": "long " * 50_000})
    ran = run([path], tmp_path, command=behave("tells_what_it_got", "{prompt_file}"))
    assert ran.result.trials[0].verdict.status == "completed"
    got = json.loads(told.read_text())
    assert got["prompt"] is None
    assert len(got["input"]["user_message"]) == 250_000


def test_a_command_of_an_agent_file_runs_in_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told.json"
    monkeypatch.setenv("TOLD", str(told))
    agent = tmp_path / "agents" / "mine.yaml"
    agent.parent.mkdir()
    agent.write_text(json.dumps({"command": list(behave("tells_what_it_got"))}))
    run([write_scenario(tmp_path)], tmp_path, agent=agent)
    assert json.loads(told.read_text())["cwd"] == str(agent.parent)


@pytest.mark.measured
def test_an_agent_whose_program_is_not_there_is_an_infra_error(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, agent={"command": ["./no-such-program"]})
    ran = run([path], tmp_path)
    (trial,) = ran.result.trials
    assert trial.verdict.status == "infra_error"
    assert "no-such-program" in trial.verdict.reason
    assert ran.result.exit_code == 3


def test_a_server_whose_command_is_not_there_is_an_infra_error(tmp_path: Path) -> None:
    servers: JSON = {"echo": {"command": ["no-such-server"], "trust": "internal"}}
    ran = run([write_scenario(tmp_path, servers=servers)], tmp_path, command=behave("polite"))
    (trial,) = ran.result.trials
    assert (trial.verdict.result, trial.verdict.status) == ("error", "infra_error")
    assert "no-such-server" in trial.verdict.reason


def test_a_change_made_behind_the_proxy_is_named_as_unexplained(tmp_path: Path) -> None:
    servers: JSON = {"ticketing": {"fixture": "ticketing", "trust": "internal"}}
    asserted: JSON = [{"type": "tool_called", "tool": "mcp/ticketing/update_ticket"}]
    path = write_scenario(tmp_path, servers=servers, assertions=asserted)
    ran = run([path], tmp_path, command=behave("behind"))
    (trial,) = ran.result.trials
    assert trial.verdict.result == "fail"
    unexplained = next(finding for finding in trial.verdict.findings if finding.id == "state_unexplained")
    assert unexplained.result == "fail"
    assert "tier" in unexplained.reason
    assert "status" not in unexplained.reason


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_sdks_client_passes_end_to_end(tmp_path: Path, mode: str) -> None:
    import sys

    command = (sys.executable, str(HERE / "sdk_agent.py"), mode, "{mcp_config}")
    ran = run([SCENARIOS / "support" / "customer_escalation.yaml"], tmp_path, command=command)
    (trial,) = ran.result.trials
    assert trial.verdict.result == "pass", trial.verdict
    assert trial.gaps == ()


def test_the_manifest_says_which_program_ran_and_never_its_command_line(tmp_path: Path) -> None:
    def sha256(path: str | Path) -> str:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()

    scenario = write_scenario(tmp_path)
    ran = run([scenario], tmp_path, command=behave("polite", "--key=very-secret-word"))
    text = (ran.folder / "manifest.json").read_text()
    assert "very-secret-word" not in text
    python = {"name": Path(sys.executable).name, "sha256": sha256(sys.executable)}
    own = {"name": AGENT.name, "sha256": sha256(AGENT)}
    agent = json.loads(text)["scenarios"]["small"]["agent"]
    assert {**agent, "sha256": ""} == {"kind": "real", "named_by": "--command", "sha256": "", "program": [python, own]}

    (tmp_path / "own.py").write_text("print('hello')")
    scenario = write_scenario(tmp_path, agent={"command": ["python3", "own.py", "{prompt}", "x" * 5000, "."]})
    ran = run([scenario], tmp_path)
    agent = json.loads((ran.folder / "manifest.json").read_text())["scenarios"]["small"]["agent"]
    assert agent["named_by"] == str(scenario)
    assert [file["name"] for file in agent["program"]] == ["python3", "own.py"]
    assert agent["program"][1]["sha256"] == sha256(tmp_path / "own.py")
