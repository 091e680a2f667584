from pathlib import Path

import pytest

from harness.agentfile import CommandAgent, ScriptedAgent
from harness.assertions.calls import ToolCalled
from harness.assertions.judged import Judged
from harness.assertions.state import State, StateUnchanged
from harness.scenario import CommandServer, FixtureServer, Limits, ScenarioError, UrlServer, load_scenario
from harness.steps import Call
from harness.targets.fixtures import fixture_offers
from proxy.policy import parse_policy
from tests.harness.scenariotext import BARE, WHOLE, load, problems, write
from tests.harness.shared_data import shared_data


def test_a_whole_scenario_is_read_with_its_files(tmp_path: Path) -> None:
    some = load(tmp_path, WHOLE)
    assert (some.id, some.title, some.labels, some.trials) == ("a.whole-one_1", "no", {"difficulty": "on"}, 3)
    assert some.limits == Limits(1.5, 5)
    assert some.user_message == "do it"
    assert some.input["more"] == 1
    assert some.servers == {
        "crm": FixtureServer("crm", trust="internal"),
        "ticketing": FixtureServer(
            "ticketing", tmp_path / "seeds/t.yaml", {"tickets": [{"id": 1, "customer_id": "A", "description": "no"}]}
        ),
        "own": CommandServer(("run", "it"), {"A": "b"}, "untrusted"),
        "far": UrlServer("https://example.org/mcp", "trusted"),
    }
    assert isinstance(some.agent, ScriptedAgent)
    assert some.agent.steps == (Call("crm", "get_customer_profile", {}),)
    assert [type(assertion) for assertion in some.assertions] == [ToolCalled, State, StateUnchanged, Judged]
    assert some.policy is not None
    assert some.policy.judge("mcp/ticketing/delete_ticket", "internal", {}).verdict == "deny"
    assert some.files == (tmp_path / "s.yaml", tmp_path / "seeds/t.yaml", tmp_path / "agents/a.yaml")
    assert some.expected == {"denied_tools": ["mcp/elsewhere/x"], "anything": [1]}
    assert some.facts[0].value is True
    assert len(some.reference) == 2


def test_what_may_be_absent_has_a_default(tmp_path: Path) -> None:
    some = load(tmp_path, BARE)
    assert (some.servers, some.policy, some.agent, some.trials, some.severity) == ({}, None, None, 1, None)
    assert some.limits.seconds == 60


def test_an_agent_may_be_a_command(tmp_path: Path) -> None:
    assert load(tmp_path, BARE + "agent: {command: [run, '{prompt}']}").agent == CommandAgent(("run", "{prompt}"))


def test_a_policy_in_a_file_is_as_one_inline(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("rules: [{deny: 'mcp/*/x'}]")
    some = load(tmp_path, BARE + "policy: {file: p.yaml}")
    assert some.policy is not None
    assert some.policy.judge("mcp/a/x", "trusted", {}).verdict == "deny"
    assert some.files == (tmp_path / "s.yaml", tmp_path / "p.yaml")


def test_a_fixture_that_does_not_exist_is_an_error_where_they_are_known(tmp_path: Path) -> None:
    path = write(tmp_path, BARE + "servers: {crm: {fixture: crn}}")
    assert load_scenario(path).servers == {"crm": FixtureServer("crn")}
    with pytest.raises(ScenarioError, match=r"s\.yaml:6: servers\.crm\.fixture: there is no fixture 'crn'; there"):
        load_scenario(path, fixture_offers())


def test_servers_that_are_not_trusted_may_ask_the_client_nothing_unless_the_policy_says_so(tmp_path: Path) -> None:
    some = load(tmp_path, WHOLE)
    assert some.policy_for("crm") == some.policy_map
    made = some.policy_for("own")
    assert made is not None
    assert made["client_requests"] == {"sampling": "deny", "elicitation": "deny", "roots": "allow"}
    assert parse_policy(made, "p", lambda path: None).judge("mcp/ticketing/delete_x", "internal", {}).verdict == "deny"
    bare = load(tmp_path, BARE + "servers: {a: {fixture: crm, trust: trusted}, b: {fixture: crm}}")
    assert bare.policy_for("a") is None
    assert bare.policy_for("b") == {"client_requests": {"sampling": "deny", "elicitation": "deny", "roots": "deny"}}


def test_scenarios_of_the_owasp_harness_load_unchanged() -> None:
    files = sorted(shared_data("owasp", "scenarios").rglob("*.yaml"))
    assert len(files) == 13
    for file in files:
        some = load_scenario(file)
        assert some.category != "task"
        assert some.severity is not None
        assert some.target["adapter"]
        assert some.user_message
        assert some.expected
        assert some.assertions


def test_task_files_of_agent_mark_load_as_scenarios() -> None:
    files = sorted(shared_data("agent-mark").glob("*.yaml"))
    assert len(files) == 7
    for file in files:
        some = load_scenario(file)
        assert some.id == file.stem
        assert (some.category, some.severity) == ("task", None)
        assert some.user_message == some.input["user_message"]
        assert set(some.labels) == {"toolkit", "difficulty"}
        assert [assertion.type for assertion in some.assertions] == [
            "tool_calls",
            "efficiency",
            "max_tool_calls",
            "judged",
        ]


def test_a_task_file_may_have_fields_of_ours_and_none_that_nobody_knows(tmp_path: Path) -> None:
    task = "id: t\nprompt: do it\nexpected_tools: [A_B]\nmin_tool_calls: 1\n"
    some = load(tmp_path, task + "title: mine\nlabels: {a: b}\nassertions: [{type: no_denied_tool_call}]\ntoolkit: x\n")
    assert (some.title, some.labels) == ("mine", {"toolkit": "x", "a": "b"})
    assert [assertion.type for assertion in some.assertions] == ["no_denied_tool_call", "tool_calls", "efficiency"]
    assert load(tmp_path, task).title == "do it"
    assert problems(tmp_path, task + "success: x")[0][:2] == (5, "success")
    assert problems(tmp_path, task + "max_tool_calls: true")[0][:2] == (5, "max_tool_calls")
    assert problems(tmp_path, task + "assertions: [{type: tool_called}]")[0][:2] == (5, "assertions[0].tool")
