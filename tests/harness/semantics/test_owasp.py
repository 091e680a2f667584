import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.semantics.owasp import OwaspError, OwaspScenario, OwaspTrace, judge, read_scenario, read_trace
from proxy.spans import JSON
from proxy.yamlfile import load_document
from tests.harness.shared_data import shared_data


def test_all_273_pairs_get_the_verdicts_of_the_harness_itself_assertion_by_assertion() -> None:
    root = shared_data("owasp")
    pairs = json.loads((root / "expected.json").read_text())
    assert len(pairs) == 273
    for pair in pairs:
        path = root / "scenarios" / pair["scenario"]
        scenario = read_scenario(load_document(path.read_bytes(), str(path)).data)
        verdict = judge(scenario, read_trace(json.loads((root / "traces" / pair["trace"]).read_text())))
        found = [{"id": item.id, "result": item.result} for item in verdict.assertions]
        assert (verdict.result, found) == (pair["result"], pair["assertions"]), pair


def test_all_52_quirks_get_the_verdicts_of_the_harness_itself() -> None:
    quirks = json.loads(shared_data("owasp", "quirks.json").read_text())
    assert len(quirks) == 52
    for quirk in quirks:
        scenario = OwaspScenario("x", quirk["expected"], tuple(quirk["assertions"]), tuple(quirk["context"]))
        verdict = judge(scenario, read_trace(quirk["trace"]))
        found = [item.result for item in verdict.assertions]
        assert (verdict.result, found) == (quirk["result"], quirk["verdicts"]), quirk["case"]


def whole() -> dict[str, JSON]:
    return {
        "id": "a.b",
        "title": "t",
        "category": "goal_hijack",
        "severity": "low",
        "target": {"adapter": "http_agent"},
        "input": {},
        "expected": {"denied_tools": ["x"], "allowed_tools": None},
        "assertions": [{"type": "no_denied_tool_call"}],
    }


def test_a_whole_scenario_is_read_and_null_is_as_absent() -> None:
    assert read_scenario(whole()).expected == {"denied_tools": ["x"], "allowed_tools": None}


@pytest.mark.parametrize("key", sorted(whole()))
def test_a_missing_field_is_refused_by_name(key: str) -> None:
    data = whole()
    del data[key]
    with pytest.raises(OwaspError, match=key):
        read_scenario(data)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": "a b"}, "id"),
        ({"id": ""}, "id"),
        ({"category": "task"}, "category"),
        ({"severity": "none"}, "severity"),
        ({"expected": {"denied_tools": "x"}}, "denied_tools"),
        ({"expected": {"allowed_tools": [" "]}}, "allowed_tools"),
        ({"assertions": []}, "assertions"),
        ({"assertions": [{"type": "memory_isolation"}]}, "forbidden_markers"),
        ({"assertions": [{"type": "goal_integrity"}]}, "expected_goal"),
        ({"assertions": [{"type": "approval_required", "action": " "}]}, "action"),
        ({"servers": {}}, "servers"),
        ({"target": {}}, "adapter"),
    ],
)
def test_what_the_harness_refuses_to_load_is_refused(change: dict[str, JSON], field: str) -> None:
    with pytest.raises(OwaspError, match=field):
        read_scenario({**whole(), **change})


@pytest.mark.parametrize("trace", [[], "x", {"messages": {}}, {"events": [1]}, {"tool_calls": None}])
def test_a_trace_that_is_none_is_refused(trace: JSON) -> None:
    with pytest.raises(OwaspError):
        read_trace(trace)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["x", "a@b.c", "goal", "approval", " "]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "to", "type", "id"]), inner),
    max_leaves=6,
)
KEYS = st.sampled_from(["name", "tool", "arguments", "type", "id", "code", "data", "source", "action", "decision"])
OBJECTS = st.lists(st.dictionaries(KEYS, JSONS, max_size=4), max_size=4)
ALL = ("no_denied_tool_call", "goal_integrity", "memory_isolation", "no_external_recipient", "approval_required")


@settings(max_examples=100, deadline=None)
@given(OBJECTS, OBJECTS, OBJECTS, st.permutations(ALL))
def test_any_trace_has_a_verdict_that_follows_from_its_results_in_order(
    messages: list[dict[str, JSON]], calls: list[dict[str, JSON]], events: list[dict[str, JSON]], kinds: list[str]
) -> None:
    expected: dict[str, JSON] = {
        "denied_tools": ["x"],
        "allowed_domains": ["b.c"],
        "memory_isolation": {"forbidden_markers": ["goal"]},
    }
    asked: list[dict[str, JSON]] = [{"type": kind, "expected_goal": "x", "action": "x"} for kind in kinds]
    trace = OwaspTrace(tuple(messages), tuple(calls), tuple(events))
    verdict = judge(OwaspScenario("s", expected, tuple(asked)), trace)
    found = [item.result for item in verdict.assertions]
    assert [item.id for item in verdict.assertions] == kinds
    assert verdict.result == ("fail" if "fail" in found else "pass" if set(found) == {"pass"} else "not_run")
    shuffled = OwaspTrace(tuple(messages), tuple(reversed(calls)), tuple(reversed(events)))
    assert [item.result for item in judge(OwaspScenario("s", expected, tuple(asked)), shuffled).assertions] == found
