import pytest

from harness.assertions.assertion import AssertionSpecError, parse_assertion
from proxy.spans import JSON
from tests.harness.made import call, wire


@pytest.mark.parametrize(
    ("kind", "hint"),
    [("tool_invoked", "'tool_invoked'"), (" state ", "did you mean state?"), ("zzz", "'zzz'")],
)
def test_an_unknown_type_loads_and_is_not_run_with_the_nearest_known_one(kind: str, hint: str) -> None:
    finding = parse_assertion({"type": kind, "tool": 3}).judge(wire(call()))
    assert finding.result == "not_run"
    assert hint in finding.reason


@pytest.mark.parametrize("kind", ["tool_caled", "no_canary_flows", "Tool_Called"])
def test_a_known_type_that_is_misspelt_is_refused(kind: str) -> None:
    with pytest.raises(AssertionSpecError, match="did you mean"):
        parse_assertion({"type": kind})


@pytest.mark.parametrize("data", [None, [], "state", 1, {}, {"type": None}, {"type": 1}, {"type": ["state"]}])
def test_what_is_no_map_with_a_type_is_refused(data: JSON) -> None:
    with pytest.raises(AssertionSpecError, match="type"):
        parse_assertion(data)


def test_every_problem_of_an_assertion_is_named_with_its_path() -> None:
    with pytest.raises(AssertionSpecError) as caught:
        parse_assertion({"type": "tool_called", "min": "x", "typo": 1})
    assert {path for path, _ in caught.value.problems} == {("tool",), ("min",), ("typo",)}


def test_an_assertion_is_frozen() -> None:
    assertion = parse_assertion({"type": "tool_not_called", "tool": "x"})
    with pytest.raises(ValueError, match="frozen"):
        assertion.id = "y"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"type": "tool_calls", "mode": "superset", "expected": []}, "can never fail"),
        ({"type": "tool_calls", "mode": "in_order", "expected": []}, "can never fail"),
        ({"type": "tool_calls", "mode": "any_of", "expected": []}, "can never hold"),
        ({"type": "tool_called", "tool": "x", "min": 0}, "can never fail"),
        ({"type": "state_unchanged", "servers": []}, "may not be empty"),
        ({"type": "tool_definitions_stable", "servers": []}, "may not be empty"),
    ],
)
def test_an_assertion_that_can_never_fail_or_never_hold_is_refused(data: JSON, said: str) -> None:
    with pytest.raises(AssertionSpecError, match=said):
        parse_assertion(data)


@pytest.mark.parametrize("mode", ["exact", "any_order", "subset"])
def test_that_no_call_is_expected_holds_of_no_call_alone(mode: str) -> None:
    none = parse_assertion({"type": "tool_calls", "mode": mode, "expected": []})
    assert (none.judge(wire()).result, none.judge(wire(call())).result) == ("pass", "fail")
