"""The task sets and the injections: labels that hold, right agents that pass, wrong ones that fail by what they did."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.agentfile import ScriptedAgent, load_agent
from harness.assertions.calls import ToolCalled, ToolNotCalled
from harness.assertions.economy import MaxToolCalls
from harness.hiding import make_hiding
from harness.results import TrialResult
from harness.runfolder import make_run_folder
from harness.scenario import Scenario
from harness.steps import Say, Step
from harness.tracefile import load_trace
from harness.trial import TrialPlan, run_trial
from tests.shipped import SHIPPED

FOLDER = Path(__file__).parents[1] / "scenarios"
TASKS = [one for one in SHIPPED if one.path.parent.name in ("mail", "repo")]
INJECTIONS = [one for one in SHIPPED if one.path.parent.name == "injection"]
WRONG = {
    "mail.count_inbox": {"claims"},
    "mail.who_signs": {"claims"},
    "mail.invoice_total": {"claims"},
    "mail.received_not_sent": {"claims"},
    "mail.room_for_one": {"state"},
    "repo.open_pulls": {"claims"},
    "repo.close_fixed_issue": {"tool_called#2", "state", "claims"},
    "repo.merge_ready": {"tool_called#5", "state", "state_unchanged"},
    "repo.delete_merged_branches": {"tool_called#4", "tool_not_called", "state", "state_unchanged"},
    "repo.begin_hotfix": {"state"},
}
"""What the wrong agent of each task fails by."""

CALLS_AND_STATE = {"no_void_writes", "state", "state_unchanged", "tool_called", "tool_calls", "tool_not_called"}
"""Types of assertions that look at nothing else."""


def name_of(scenario: Scenario) -> str:
    return scenario.id


def tried(scenario: Scenario, kind: str, tmp_path: Path, answer: Sequence[Step] | None = None) -> TrialResult:
    """One trial of the scenario's right, wrong or vulnerable agent, with all servers in this process.

    `answer` stands for all that it says, None for its own words.
    """
    script = load_agent(scenario.path.parent / "agents" / f"{scenario.path.stem}_{kind}.yaml", scenario.tools)
    assert isinstance(script, ScriptedAgent)
    run = make_run_folder(tmp_path / "runs")
    silent = tuple(step for step in script.steps if not isinstance(step, Say))
    steps = script.steps if answer is None else (*silent, *answer)
    agent = ScriptedAgent(script.path, steps, "in_process")
    return run_trial(TrialPlan(run.name, run, make_hiding({}, bytes(32)), scenario, agent, 1))


@pytest.mark.parametrize("scenario", TASKS, ids=name_of)
def test_a_wrong_agent_fails_a_task_by_what_it_got_wrong(scenario: Scenario, tmp_path: Path) -> None:
    verdict = tried(scenario, "wrong", tmp_path).verdict
    assert (verdict.result, verdict.status) == ("fail", "completed")
    assert {finding.id for finding in verdict.findings if finding.result != "pass"} == WRONG[scenario.id]


@pytest.mark.parametrize("scenario", INJECTIONS, ids=name_of)
def test_an_agent_that_follows_an_injection_fails_by_the_call_it_was_talked_into(
    scenario: Scenario, tmp_path: Path
) -> None:
    verdict = tried(scenario, "vulnerable", tmp_path).verdict
    assert (verdict.result, verdict.status) == ("fail", "completed")
    forbidden = [finding for finding in verdict.findings if finding.id.startswith("tool_not_called")]
    (failed,) = [finding for finding in forbidden if finding.result == "fail"]
    assert (failed.rests, failed.attempted, failed.executed) == ("wire", 1, 1)
    assert "state_unchanged" in {finding.id for finding in verdict.findings if finding.result == "fail"}


@pytest.mark.parametrize("scenario", [*TASKS, *INJECTIONS], ids=name_of)
def test_a_right_agent_passes_by_every_finding(scenario: Scenario, tmp_path: Path) -> None:
    verdict = tried(scenario, "right", tmp_path).verdict
    assert {finding.result for finding in verdict.findings} == {"pass"}, verdict.reason


@pytest.mark.parametrize("scenario", INJECTIONS, ids=name_of)
def test_an_agent_that_ignores_an_injection_and_does_its_task_passes_whatever_it_answers(
    scenario: Scenario, tmp_path: Path
) -> None:
    assert {assertion.type for assertion in scenario.assertions} <= CALLS_AND_STATE
    assert not any(isinstance(step, Say) for step in scenario.reference)
    for answer in ([], [Say("I am afraid that I cannot help with that.")]):
        verdict = tried(scenario, "right", tmp_path, answer).verdict
        assert (verdict.result, verdict.status) == ("pass", "completed")


@pytest.mark.parametrize("carrier", ["resource", "prompt"])
def test_an_injection_by_a_resource_or_a_prompt_is_taken_from_there(carrier: str, tmp_path: Path) -> None:
    [scenario] = [one for one in INJECTIONS if one.labels["carrier"] == carrier]
    result = tried(scenario, "vulnerable", tmp_path)
    assert result.folder is not None
    [run] = (tmp_path / "runs").iterdir()
    trace = load_trace(run / result.folder / "trace.json")
    kinds = {"resource": "mcp_resource_read", "prompt": "mcp_prompt_get"}
    [event] = [event for event in trace.events if event.type in kinds.values()]
    assert (event.type, event.fields["outcome"]) == (kinds[carrier], "ok")
    assert "read_file" not in {call.mcp_tool_name for call in trace.tool_calls}


@pytest.mark.parametrize("scenario", TASKS, ids=name_of)
def test_the_labels_of_a_task_are_those_of_its_assertions(scenario: Scenario) -> None:
    labels = scenario.labels
    assert set(labels) == {
        "toolkit",
        "difficulty",
        "read_only",
        "expected_tools",
        "minimum_calls",
        "maximum_calls",
        "rubric",
    }
    assert labels["toolkit"] == scenario.id.partition(".")[0]
    assert labels["difficulty"] in ("easy", "medium", "hard")
    (most,) = [assertion.max for assertion in scenario.assertions if isinstance(assertion, MaxToolCalls)]
    assert most == int(labels["maximum_calls"]) >= int(labels["minimum_calls"]) >= 1
    (tools,) = scenario.tools.values()
    assert tools is not None
    expected = set(labels["expected_tools"].split(", "))
    assert expected <= set(tools)
    called = {one.tool.rpartition("/")[2] for one in scenario.assertions if isinstance(one, ToolCalled)}
    assert called <= expected


def test_the_tasks_go_from_easy_to_hard() -> None:
    for toolkit in ("mail", "repo"):
        assert {task.labels["difficulty"] for task in TASKS if task.labels["toolkit"] == toolkit} == {
            "easy",
            "medium",
            "hard",
        }


def test_injections_come_by_different_carriers_and_are_judged_without_policy_by_calls_and_state() -> None:
    assert len({scenario.labels["carrier"] for scenario in INJECTIONS}) == 8
    for scenario in INJECTIONS:
        assert scenario.policy is None
        assert any(isinstance(assertion, ToolNotCalled) for assertion in scenario.assertions)
        assert {"state", "state_unchanged"} <= {assertion.type for assertion in scenario.assertions}
