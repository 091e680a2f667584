"""Agent files of agents that are reached, called or read."""

import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agentfile import AgentError, load_agent
from harness.hiding import make_hiding
from harness.modelagent import ModelAgent
from harness.scenario import ScenarioError, load_scenario
from harness.selection import Selection, SelectionError, kind_of, load_selection
from harness.targetfile import FRAMEWORKS, LARGEST_ANSWER, PROMPT, Called, Recorded, Remote, filled, texts_of
from harness.trial import TrialPlan, run_trial
from proxy.spans import JSON
from tests.harness.runs import write_scenario


def write(folder: Path, data: JSON) -> Path:
    path = folder / "agent.yaml"
    path.write_text(json.dumps(data))
    return path


def test_each_kind_of_agent_is_read(tmp_path: Path) -> None:
    def read(data: JSON) -> object:
        return load_agent(write(tmp_path, data))

    path = tmp_path / "agent.yaml"
    url = "https://agent.example/run"
    assert read({"http": {"url": url}}) == Remote("http", url, path=path)
    assert read({"http": {"url": url, "hand_over": True}}) == Remote("http", url, ports={}, hand_over=True, path=path)
    ports: JSON = {"crm": 9001}
    assert read({"http": {"url": url, "ports": ports, "max_bytes": 5}}) == Remote(
        "http", url, max_bytes=5, ports={"crm": 9001}, path=path
    )
    chat = read({"chat": {"url": url}})
    assert isinstance(chat, Remote)
    assert (chat.target, chat.ports, chat.max_bytes) == ("chat alone", None, LARGEST_ANSWER)
    assert PROMPT in texts_of(chat.request)
    asked = read({"chat": {"url": url, "request": {"q": "Do: {prompt}", "mcp": "{mcp_servers}"}, "answer": "a.0"}})
    assert isinstance(asked, Remote)
    assert (asked.target, asked.hand_over, asked.answer) == ("chat", True, "a.0")
    assert read({"python": "pack.agent:make.one"}) == Called("python", "pack.agent:make.one", sys.executable, path)
    beside: JSON = {"function": "a:f", "interpreter": "venv/bin/python"}
    assert read({"langchain": beside}) == Called("langchain", "a:f", str(tmp_path / "venv/bin/python"), path)
    recorded = read({"trace": "traces/{scenario_id}.json"})
    assert isinstance(recorded, Recorded)
    assert recorded.file("my.id") == tmp_path / "traces/my.id.json"
    assert kind_of(recorded) == "imported"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"http": {"url": "file:///etc/passwd"}}, "http.url: 'file:///etc/passwd' is no address of a server"),
        ({"http": {"url": "http://a b/"}}, "is no address of a server; it begins with http:// or https://"),
        ({"http": {"url": "http://[::1/"}}, "is no address of a server; it begins with http:// or https://"),
        ({"http": {"url": "http://[1"}}, "http.url: 'http://[1' is no address of a server"),
        ({"chat": {"url": "http://me:word-9f31/x@[1"}}, "chat.url: the URL is no address of a server"),
        ({"http": {"url": "http://me:word@host/"}}, "http.url: a user and a password may not stand in a URL"),
        ({"http": {"url": "http://h/", "header_env": {"Authorization": "BOX"}}}, "does not say that it is a secret"),
        ({"http": {"url": "http://h/", "headers": {"a b": "x"}}}, "is no name of a header"),
        ({"http": {"url": "http://h/", "headers": {"Host": "x"}}}, "Host is set for each request"),
        ({"http": {"url": "http://h/", "headers": {"a": "x\r\nb: y"}}}, "a header's value is printable ASCII"),
        ({"http": {"url": "http://h/", "ports": {"crm": 0}}}, "http.ports.crm: expected at least 1, not the number 0"),
        ({"http": {"url": "http://h/"}, "python": "a:f"}, "python: unknown field; an agent of the kind `http`"),
        ({"chat": {"url": "http://h/", "request": {"q": 1}}}, "chat.request: the task is nowhere in it; put {prompt}"),
        ({"chat": {"url": "http://h/", "hand_over": True}}, "chat.hand_over: unknown field"),
        ({"python": "just_a_name"}, "python.function: 'just_a_name' names no function; write module:function"),
        ({"python": "a:f; import os"}, "names no function"),
        ({"openai-agents": {"module": "x"}}, "openai-agents.function: this field is missing"),
        ({"trace": ["x"]}, "trace: expected the name of a trace's file"),
    ],
)
def test_what_is_wrong_with_one_is_said(data: JSON, says: str, tmp_path: Path) -> None:
    with pytest.raises(AgentError) as caught:
        load_agent(write(tmp_path, data))
    assert says in str(caught.value)
    # The same under a scenario's `agent`, with the line that it stands on there.
    scenario = write_scenario(tmp_path, agent=None)
    whole = json.loads(scenario.read_text())
    scenario.write_text(f'{json.dumps(whole)[1:-1]},\n"agent": {json.dumps(data)}'.join("{}"))
    with pytest.raises(ScenarioError) as found:
        load_scenario(scenario)
    within = re.sub(r"^(?=(http|chat|python|openai-agents|trace)[.:])", "agent.", says)
    assert within in str(found.value)
    assert all(problem.line == 2 for problem in found.value.problems)


def test_each_kind_may_stand_in_a_scenario_and_finds_its_files_beside_it(tmp_path: Path) -> None:
    def read(data: JSON) -> object:
        return load_scenario(write_scenario(tmp_path, agent=data)).agent

    path = tmp_path / "small.yaml"
    url = "https://agent.example/run"
    assert read({"http": {"url": url, "hand_over": True}}) == Remote("http", url, ports={}, hand_over=True, path=path)
    chat = read({"chat": {"url": url}})
    assert isinstance(chat, Remote)
    assert (chat.target, chat.path) == ("chat alone", path)
    for kind in FRAMEWORKS:
        assert read({kind: "pack:make"}) == Called(kind, "pack:make", sys.executable, path)
    beside: JSON = {"function": "a:f", "interpreter": "venv/bin/python"}
    assert read({"langchain": beside}) == Called("langchain", "a:f", str(tmp_path / "venv/bin/python"), path)
    recorded = read({"trace": "traces/{scenario_id}.json"})
    assert isinstance(recorded, Recorded)
    assert recorded.file("small") == tmp_path / "traces/small.json"
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/s.yaml").write_text("script: [{say: x}]")
    model: JSON = {"provider": "scripted", "script": "scripts/s.yaml"}
    agent = read({"model": model, "architecture": "debate_critic", "rounds": 3})
    assert isinstance(agent, ModelAgent)
    assert (agent.architecture, agent.rounds) == ("debate_critic", 3)
    assert agent.files == (path, tmp_path / "scripts/s.yaml")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"model": {"provider": "nobody"}}, "agent.model.provider: expected 'scripted'"),
        ({"model": {"provider": "scripted"}}, "agent.model.script: a scripted model needs the file of its script"),
        ({"model": {"provider": "openai", "name": "x"}, "models": {"critic": {"provider": "openai", "name": "y"}}},
         "agent.models.critic: there is no agent of that name"),
        ({"model": {"provider": "openai", "name": "x"}, "agents": {"a": ["crm"]}}, "agent.agents: only peer_to_peer"),
        ({"model": {"provider": "openai", "name": "x"}, "command": ["a"]}, "agent.command: unknown field"),
        ({"htttp": {"url": "http://h/"}}, "agent.htttp: unknown field; here may stand scripted, command"),
        ({}, "agent: an agent has exactly one of scripted, command, model, http, chat, trace, python"),
        ("http", "agent: expected a map with one of scripted, command"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_agent_that_stands_in_a_scenario_is_said(data: JSON, says: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(write_scenario(tmp_path, agent=data))
    assert says in str(caught.value)


def test_a_trace_that_is_not_there_is_named_as_a_field_of_the_scenario(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, agent={"trace": "none.json"})
    with pytest.raises(SelectionError, match=r"small\.yaml: agent\.trace: there is no file "):
        load_selection(Selection((str(scenario),)))


def test_an_agent_over_a_model_that_stands_in_a_scenario_is_run_with_the_script_beside_it(tmp_path: Path) -> None:
    script: JSON = {
        "script": [{"at_most": 1, "call": "search_tickets", "arguments": {"customer_id": "CUST-003"}}, {"say": "done"}]
    }
    (tmp_path / "s.yaml").write_text(json.dumps(script))
    scenario = write_scenario(
        tmp_path,
        servers={"ticketing": {"fixture": "ticketing"}},
        assertions=[{"type": "tool_called", "tool": "mcp/ticketing/search_tickets"}],
        agent={"model": {"provider": "scripted", "script": "s.yaml"}, "transport": "in_process"},
    )
    selected = load_selection(Selection((str(scenario),)))
    [(name, one)] = selected.by_id.items()
    result = run_trial(TrialPlan("run", tmp_path / "run", make_hiding({}, bytes(32)), one, selected.agents[name], 1))
    assert (result.verdict.result, result.target) == ("pass", "model (single_agent)"), result.verdict
    assert set(selected.files(name)) == {scenario, tmp_path / "s.yaml"}


def test_a_port_of_no_server_and_a_trace_that_is_not_there_are_found_before_anything_runs(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path)
    wrong: list[tuple[JSON, str]] = [
        ({"http": {"url": "http://h/", "ports": {"crm": 9001}}}, "http.ports.crm: the scenario small has no such"),
        ({"trace": "none/{scenario_id}.json"}, "trace: there is no file"),
    ]
    for data, says in wrong:
        with pytest.raises(SelectionError) as caught:
            load_selection(Selection((str(scenario),), str(write(tmp_path, data))))
        assert says in str(caught.value)


@given(prompt=st.text())
def test_a_prompt_is_put_in_as_it_is_whatever_it_says(prompt: str) -> None:
    template: JSON = {"a": ["x {prompt} y", 1, None], "b": "{scenario_id}", "c": "{mcp_servers}", "d": "{other}"}
    got = filled(template, prompt, "s.1", {"crm": {"url": "http://h/"}})
    assert got == {"a": [f"x {prompt} y", 1, None], "b": "s.1", "c": {"crm": {"url": "http://h/"}}, "d": "{other}"}
