from pathlib import Path

import pytest

from harness.agentfile import ScriptedAgent, load_agent
from harness.assertions.calls import ToolCalled
from harness.assertions.not_built import NotBuilt
from harness.assertions.state import State, StateUnchanged
from harness.discovery import classify, load_scenarios, yaml_files
from harness.scenario import Scenario

FOLDER = Path(__file__).parents[1] / "scenarios"
SCENARIOS = load_scenarios([FOLDER])


def test_all_that_is_shipped_is_found() -> None:
    assert [scenario.id for scenario in SCENARIOS] == [
        "security.denied_delete",
        "support.credit_hold_escalation",
        "support.customer_escalation",
    ]
    kinds = {path.parent.name: classify(path) for path in yaml_files(FOLDER)}
    assert kinds == {
        "agents": "agent",
        "seeds": "seed",
        "security": "scenario",
        "support": "scenario",
    }


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_an_agent_that_does_nothing_cannot_pass(scenario: Scenario) -> None:
    assert any(isinstance(assertion, ToolCalled) for assertion in scenario.assertions)
    assert any(isinstance(assertion, State) for assertion in scenario.assertions)
    assert not any(isinstance(assertion, NotBuilt) for assertion in scenario.assertions)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_only_named_columns_of_one_row_may_change(scenario: Scenario) -> None:
    (unchanged,) = [assertion for assertion in scenario.assertions if isinstance(assertion, StateUnchanged)]
    (exemption,) = unchanged.except_
    assert set(exemption.where) == {"id"}
    assert exemption.columns is not None
    assert unchanged.servers is None


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_every_agent_beside_a_scenario_calls_only_its_servers(scenario: Scenario) -> None:
    stem = scenario.path.stem.removesuffix("_escalation") if "credit" in scenario.path.stem else scenario.path.stem
    agents = sorted(scenario.path.parent.glob(f"agents/{stem}_*.yaml"))
    assert len(agents) >= 2
    for path in [*agents, scenario.path.parent / "agents/idle.yaml"]:
        assert isinstance(load_agent(path, scenario.servers), ScriptedAgent)
