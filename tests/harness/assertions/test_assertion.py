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
