import json
from pathlib import Path

import pytest

from harness.agentfile import AgentError, load_agent
from harness.lookalike import looks_like
from harness.scenario import ScenarioError, load_scenario
from proxy.spans import JSON

KINDS: list[tuple[JSON, str]] = [
    ({"mcpServers": {"a": {"command": "x"}}}, "the MCP configuration of a client"),
    ({"rules": []}, "a policy"),
    ({"policy": {"rules": []}}, "a policy"),
    ({"tickets": [{"id": 1}]}, "a seed"),
]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        *KINDS,
        ({"steps": []}, "an agent file"),
        ({"command": ["x"]}, "an agent file"),
        ({"servers": {"a": {"command": ["x"]}}, "health": 0}, "a file of `wiretrap up`"),
    ],
)
def test_a_file_that_is_no_scenario_is_called_by_its_name_and_nothing_else_is_said(
    tmp_path: Path, data: JSON, what: str
) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(json.dumps(data))
    with pytest.raises(ScenarioError) as raised:
        load_scenario(file)
    (problem,) = raised.value.problems
    assert problem.message.startswith(f"this looks like {what}, not like a scenario; ")


@pytest.mark.parametrize(
    ("data", "what"),
    [*KINDS, ({"id": "x", "title": "t"}, "a scenario"), ({"id": "x", "input": {}, "command": 1}, "a scenario")],
)
def test_a_file_that_is_no_agent_file_is_called_by_its_name(tmp_path: Path, data: JSON, what: str) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(json.dumps(data))
    with pytest.raises(AgentError) as raised:
        load_agent(file)
    (problem,) = raised.value.problems
    assert problem.message.startswith(f"this looks like {what}, not like an agent file; ")


@pytest.mark.parametrize("data", [None, [], {}, 3, {"id": "x"}, {"id": "x", "rules": []}, {"whatever": 1}])
def test_what_may_be_a_broken_scenario_is_read_as_one(data: JSON) -> None:
    assert looks_like(data, "scenario") is None
