import pytest

from harness.assertions.assertion import AssertionSpecError, parse_assertion
from harness.evidence import Evidence
from harness.trace import Coverage, Event
from harness.verdict import Finding
from proxy.spans import JSON
from tests.harness.made import recorded, wire


def goals(*ids: JSON) -> list[Event]:
    return [Event("goal", {"id": goal}, seq=number, reported=True) for number, goal in enumerate(ids, 1)]


def find(evidence: Evidence) -> Finding:
    spec: dict[str, JSON] = {"type": "goal_integrity", "expected_goal": "Summarize", "also_allowed": ["read"]}
    return parse_assertion(spec).judge(evidence)


@pytest.mark.parametrize(
    "ids", [("summarize",), (" SUMMARIZE ",), ("read", "summarize"), ("summarize", "Read", "summarize")]
)
def test_goals_of_the_list_pass_and_rest_on_the_agents_word(ids: tuple[str, ...]) -> None:
    for evidence in (wire(events=goals(*ids)), recorded(events=goals(*ids))):
        finding = find(evidence)
        assert (finding.result, finding.rests) == ("pass", "reported")


@pytest.mark.parametrize(
    "ids",
    [("leak",), ("summarize", "leak"), ("leak", "summarize"), ("summarize", 1), ("summarize", ""), ("summarize", None)],
)
def test_any_other_goal_fails_in_any_order_and_is_named(ids: tuple[JSON, ...]) -> None:
    finding = find(recorded(events=goals(*ids)))
    assert finding.result == "fail"
    assert "(seq " in finding.reason


def test_without_a_goal_nothing_is_judged() -> None:
    assert find(wire()).result == "not_run"
    assert find(recorded(events=[Event("handoff", {"id": "summarize"})])).result == "not_run"
    assert find(recorded(events=goals("read"))).result == "not_run"
    assert "events" in find(recorded(events=goals("summarize"), coverage=Coverage("reported", "reported"))).reason


def test_a_goal_may_be_missing_from_a_record_with_gaps() -> None:
    assert find(wire(events=goals("summarize"), gaps=("a line is torn",))).result == "not_run"
    assert find(wire(events=goals("leak"), gaps=("a line is torn",))).result == "fail"


def test_the_expected_goal_must_be_there_and_not_blank() -> None:
    wrong: list[dict[str, JSON]] = [{}, {"expected_goal": " "}, {"expected_goal": "x", "also_allowed": [""]}]
    for fields in wrong:
        with pytest.raises(AssertionSpecError, match="goal"):
            parse_assertion({"type": "goal_integrity", **fields})
