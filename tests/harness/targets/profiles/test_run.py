"""An agent with a profile runs a scenario to its verdict; what it prints is its messages and tokens."""

import json
import sys
from pathlib import Path

import pytest

from harness.agentfile import CommandAgent, load_agent
from harness.scenario import load_scenario
from proxy.problem import ProblemError
from proxy.spans import JSON
from tests.harness.runs import run, write_scenario

PLAYS_CODEX = [sys.executable, str(Path(__file__).with_name("plays_codex.py"))]


def agent_file(folder: Path, *arguments: str) -> Path:
    path = folder / "codex.yaml"
    path.write_text(json.dumps({"profile": "codex", "command": [*PLAYS_CODEX, *arguments]}))
    return path


def events(document: dict[str, JSON], kind: str) -> list[dict[str, JSON]]:
    found = document["events"]
    assert isinstance(found, list)
    return [event for event in found if isinstance(event, dict) and event["type"] == kind]


def test_an_agent_with_a_profile_runs_to_its_verdict_with_a_whole_record_though_it_kills_its_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "auth.json").write_text("mine.")
    assertions: list[JSON] = [
        {"type": "tool_called", "tool": "mcp/echo/echo", "arguments": {"text": "Say hello."}},
        {"type": "tool_not_called", "tool": "mcp/echo/other"},
    ]
    agent = agent_file(tmp_path, "--model", "gpt-4.1-2025-04-14")
    ran = run([write_scenario(tmp_path, assertions=assertions)], tmp_path, agent=agent)
    (trial,) = ran.result.trials
    assert (trial.verdict.result, trial.verdict.status, trial.gaps) == ("pass", "completed", ())
    trace = ran.document("small", "1", "trace.json")
    messages = trace["messages"]
    assert isinstance(messages, list)
    said = [message["content"] for message in messages if isinstance(message, dict) and message["role"] == "assistant"]
    assert said == ["I was told: Say hello. Login: mine."]
    (call,) = events(trace, "model_call")
    assert {name: call[name] for name in ("in", "cached", "out", "error", "reported", "model")} == {
        "in": 6, "cached": 4, "out": 2, "error": False, "reported": True, "model": "gpt-4.1-2025-04-14",
    }  # fmt: skip
    cost = trial.measures["cost"]
    assert cost.seen == "derived"
    assert cost.value == pytest.approx((6 * 2 + 4 * 0.5 + 2 * 8) / 1e6)
    assert (tmp_path / "own" / "auth.json").read_text() == "mine."


def test_a_run_whose_model_failed_last_is_incomplete(tmp_path: Path) -> None:
    other: list[JSON] = [{"type": "tool_called", "tool": "mcp/echo/other"}]
    ran = run([write_scenario(tmp_path, assertions=other)], tmp_path, agent=agent_file(tmp_path, "fails"))
    (trial,) = ran.result.trials
    assert (trial.verdict.result, trial.verdict.status) == ("fail", "completed")
    assert trial.verdict.category == "incomplete"


def test_a_profile_may_stand_in_a_scenario_and_in_an_agent_file_with_a_command_or_without(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, agent={"profile": "claude-code"})
    assert load_scenario(path).agent == CommandAgent(("claude",), None, "claude-code")
    path = write_scenario(tmp_path, agent={"profile": "claude-code", "command": ["my-claude", "--model", "x"]})
    assert load_scenario(path).agent == CommandAgent(("my-claude", "--model", "x"), None, "claude-code")
    file = tmp_path / "a.yaml"
    file.write_text("profile: gemini-cli\n")
    assert load_agent(file) == CommandAgent(("gemini",), file, "gemini-cli")


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ({"profile": "cursor"}, "agent.profile"),
        ({"profile": "codex", "scripted": "a.yaml"}, "exactly one of scripted, command"),
        ({"profile": "codex", "command": ["codex", "{promt}"]}, "there is no placeholder {promt}"),
    ],
)
def test_a_profile_that_is_none_or_has_steps_beside_it_is_an_error(agent: JSON, said: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"small.yaml") as raised:
        load_scenario(write_scenario(tmp_path, agent=agent))
    assert said in str(raised.value)
