"""Task files and results of agent-mark: their scores by its rules, and what ours tells beyond them."""

import json

import pytest

from harness.agentmark import score
from harness.assertions.assertion import parse_assertion
from harness.casefile import evidence_of
from harness.importing.agentmark import read_agentmark
from harness.scenario import load_scenario
from tests.harness.shared_data import shared_data


def test_the_seven_task_files_load_as_scenarios() -> None:
    paths = sorted(shared_data("agent-mark").glob("*.yaml"))
    assert len(paths) == 7
    for path in paths:
        told = load_scenario(path)
        assert {assertion.type for assertion in told.assertions} >= {"tool_calls", "efficiency", "judged"}


def test_the_five_trajectories_score_as_agent_mark_scores_them() -> None:
    runs = json.loads(shared_data("agent-mark", "synthetic.json").read_text())
    assert len(runs) == 5
    for run in runs:
        (imported,) = read_agentmark(json.dumps(run), "x", "x")
        names = [call.name or "" for call in imported.trace.tool_calls]
        told = score(run["task"]["expected_tools"], run["task"]["min_tool_calls"], names)
        assert {name: round(value, 4) for name, value in told.items()} == run["expected"], run["id"]


def test_ours_tells_the_wrong_scope_by_its_arguments_where_the_tool_is_right() -> None:
    runs = json.loads(shared_data("agent-mark", "synthetic.json").read_text())
    (run,) = [run for run in runs if "scope" in run["id"]]
    (imported,) = read_agentmark(json.dumps(run), "x", "x")
    told = load_scenario(shared_data("agent-mark", "gmail_001.yaml"))
    seen = evidence_of(told, imported.trace, completed=True, state={}, environment={}, canaries={})
    (made,) = imported.trace.tool_calls
    assert made.arguments == {"q": "has:attachment newer_than:7d"}

    def judged(pattern: str) -> str:
        expected = {"tool": "gmail_fetch_emails", "ignore_case": True, "arguments": {"q": {"$regex": pattern}}}
        spec = {"type": "tool_calls", "mode": "any_of", "compare": "subset", "expected": [expected]}
        return parse_assertion(json.loads(json.dumps(spec))).judge(seen).result

    # Mail that was sent has attachments too: what was received is in the inbox.
    assert judged("(?=.*in:inbox)(?=.*has:attachment).*") == "fail"
    assert judged(".*has:attachment.*") == "pass"


@pytest.mark.parametrize(
    ("minimum", "names", "efficiency"), [(1, ["a"], 1.0), (2, ["A"], 1.0), (1, ["a"] * 4, 0.25), (1, [], 0.0)]
)
def test_the_minimum_over_the_calls_is_at_most_1_and_0_for_none(
    minimum: int, names: list[str], efficiency: float
) -> None:
    assert score(["A"], minimum, names)["efficiency"] == efficiency
