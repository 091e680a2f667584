from pathlib import Path

import pytest

from harness.agentfile import Agent, AgentError, CommandAgent, ScriptedAgent, load_agent
from harness.steps import Call, Goal, Say, split_tool


def agent(tmp_path: Path, text: str, servers: tuple[str, ...] | None = ("crm",)) -> Agent:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    return load_agent(file, None if servers is None else dict.fromkeys(servers))


def test_steps_are_calls_words_and_goals(tmp_path: Path) -> None:
    got = agent(
        tmp_path,
        "transport: in_process\nsteps:\n"
        "- {call: mcp/crm/get%2Fit, arguments: {id: no}, as: p, expect_error: true, optional: true}\n"
        '- {call: mcp/crm/put, arguments: {v: "${p.json.x}"}}\n- {say: "it is ${p.text}"}\n- {goal: help}\n',
    )
    assert got == ScriptedAgent(
        tmp_path / "a.yaml",
        (
            Call("crm", "get/it", {"id": "no"}, "p", True, True),
            Call("crm", "put", {"v": "${p.json.x}"}),
            Say("it is ${p.text}"),
            Goal("help"),
        ),
        "in_process",
    )


def test_stdio_is_the_transport_that_is_not_named(tmp_path: Path) -> None:
    got = agent(tmp_path, "steps: []")
    assert isinstance(got, ScriptedAgent)
    assert got.transport == "stdio"


def test_a_command_is_a_list_of_words(tmp_path: Path) -> None:
    assert agent(tmp_path, "command: [run, '{prompt}']") == CommandAgent(("run", "{prompt}"), tmp_path / "a.yaml")


def test_without_a_scenario_any_server_may_be_called(tmp_path: Path) -> None:
    assert isinstance(agent(tmp_path, "steps: [{call: mcp/any/get}]", None), ScriptedAgent)


@pytest.mark.parametrize(
    ("text", "line", "field", "says"),
    [
        ("", 1, "", "expected a map with transport, steps"),
        ("steps: []\nstep: []", 2, "step", "unknown field"),
        ("steps: {}", 1, "steps", "expected a list"),
        ("steps: []\ncommand: [a]", 2, "command", "unknown field"),
        ("command: run it", 1, "command", "expected a list"),
        ("command: []", 1, "command", "may not be empty"),
        ("command: [run, 1]", 1, "command[1]", "in quotes"),
        ("transport: http\nsteps: []", 1, "transport", "'stdio' or 'in_process'"),
        ("steps:\n- get", 2, "steps[0]", "exactly one of call, read, prompt, say, goal"),
        ("steps:\n- {}", 2, "steps[0]", "exactly one of call, read, prompt, say, goal"),
        ("steps:\n- {say: a, goal: b}", 2, "steps[0]", "exactly one of call, read, prompt, say, goal"),
        ("steps:\n- say: 12", 2, "steps[0].say", "expected text, not the number 12"),
        ("steps:\n- call: get", 2, "steps[0].call", "no canonical tool name"),
        ("steps:\n- call: mcp/crm/a/b", 2, "steps[0].call", "no canonical tool name"),
        ("steps:\n- call: mcp/crm/", 2, "steps[0].call", "no canonical tool name"),
        ("steps:\n- call: mcp/crn/get", 2, "steps[0].call", "no server 'crn'; its servers are: crm"),
        ("steps:\n- call: mcp/crm/get\n  argument: {}", 3, "steps[0].argument", "unknown field"),
        ("steps:\n- call: mcp/crm/get\n  arguments: [1]", 3, "steps[0].arguments", "expected a map"),
        ("steps:\n- call: mcp/crm/get\n  expect_error: yes", 3, "steps[0].expect_error", "true or false"),
        ("steps:\n- call: mcp/crm/get\n  as: a b", 3, "steps[0].as", "no name"),
        ("steps:\n- {call: mcp/crm/get, as: p}\n- call: mcp/crm/get\n  as: p", 4, "steps[1].as", "already"),
        ("steps:\n- say: '${p.text}'\n- {call: mcp/crm/get, as: p}", 2, "steps[0].say", "no earlier step"),
        (
            "steps:\n- call: mcp/crm/get\n  as: p\n  arguments: {a: ['${p.text}']}",
            4,
            "steps[0].arguments.a[0]",
            "no earlier",
        ),
        ("steps:\n- call: mcp/crm/get\n  arguments:\n    a: ${HOME}", 4, "steps[0].arguments.a", "no reference"),
    ],
)
def test_an_agent_file_that_is_wrong_names_file_line_and_field(
    tmp_path: Path, text: str, line: int, field: str, says: str
) -> None:
    with pytest.raises(AgentError) as caught:
        agent(tmp_path, text)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.field) == (str(tmp_path / "a.yaml"), line, field)
    assert says in problem.message


def test_a_name_of_a_broken_step_is_known_to_later_ones(tmp_path: Path) -> None:
    with pytest.raises(AgentError) as caught:
        agent(tmp_path, "steps:\n- {call: mcp/crm/get, as: p, nonsense: 1}\n- {say: '${p.text}'}")
    assert [problem.field for problem in caught.value.problems] == ["steps[0].nonsense"]


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="cannot be read"):
        load_agent(tmp_path / "none.yaml")


def test_a_canonical_name_is_a_server_and_a_bare_name() -> None:
    assert split_tool("mcp/crm/get%3Aall%25") == ("crm", "get:all%")
    assert split_tool("mcp/c m/get") is None
    assert split_tool("mcp/crm/resource:x") is None
    assert split_tool("get") is None
