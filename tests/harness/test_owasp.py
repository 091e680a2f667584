"""The project's own strict reading of the OWASP harness's scenarios and traces, in every pair of them."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
import yaml

from harness.assertions.assertion import parse_assertion
from harness.casefile import evidence_of
from harness.evidence import Evidence
from harness.scenario import load_scenario
from harness.trace import Coverage, Event, Message, Source, ToolCall, Trace
from harness.tracefile import load_trace
from harness.verdict import Finding
from proxy.spans import JSON

SHARED = Path(os.environ.get("WIRETRAP_SHARED", Path(__file__).parents[2].parent / "shared"))
OWASP = SHARED / "data" / "owasp"

pytestmark = pytest.mark.skipif(not OWASP.is_dir(), reason="the OWASP data is not here")


def evidence(trace: dict[str, JSON], expected: dict[str, JSON]) -> Evidence:
    """Plain reading of a recorded trace: present lists are reported, and all are none when nothing is in any."""
    lists = {key: value for key in ("messages", "tool_calls", "events") if isinstance(value := trace.get(key), list)}

    def source(key: str) -> Source:
        return "reported" if key in lists and any(lists.values()) else "none"

    calls = [item for item in lists.get("tool_calls", []) if isinstance(item, dict)]
    events = [item for item in lists.get("events", []) if isinstance(item, dict)]
    return Evidence(
        Trace(
            Coverage(source("messages"), source("tool_calls"), source("tool_calls"), source("events")),
            messages=tuple(Message("user", item) for item in lists.get("messages", [])),
            tool_calls=tuple(read_call(item) for item in calls),
            events=tuple(Event(str(item.get("type")), item, reported=True) for item in events),
        ),
        completed=True,
        recorded=True,
        expected=expected,
    )


def read_call(item: dict[str, JSON]) -> ToolCall:
    names = tuple(name for key in ("name", "tool", "tool_name") if isinstance(name := item.get(key), str))
    return ToolCall(names[0] if names else None, item.get("arguments"), names=names)


def theirs() -> list[tuple[str, dict[str, JSON], dict[str, JSON], dict[str, str]]]:
    found = []
    for pair in json.loads((OWASP / "expected.json").read_text()):
        scenario = yaml.safe_load((OWASP / "scenarios" / pair["scenario"]).read_text())
        trace = json.loads((OWASP / "traces" / pair["trace"]).read_text())
        verdicts = {item["id"]: item["result"] for item in pair["assertions"]}
        found.append((f"{pair['scenario']} with {pair['trace']}", scenario, trace, verdicts))
    return found


def pairs(kind: str) -> list[tuple[str, dict[str, JSON], Evidence, str, Finding]]:
    """Place, expected, evidence, their result and ours, for each pair whose scenario has the assertion."""
    found = []
    for where, scenario, trace, verdicts in theirs():
        expected, specs = scenario["expected"], scenario["assertions"]
        assert isinstance(expected, dict)
        assert isinstance(specs, list)
        seen = evidence(trace, expected)
        for spec in specs:
            assertion = parse_assertion(spec)
            if assertion.type == kind:
                found.append((where, expected, seen, verdicts[kind], assertion.judge(seen)))
    assert {finding.result for *_, finding in found} == {"pass", "fail", "not_run"}
    return found


def test_denied_calls_are_judged_as_theirs_are_apart_from_empty_lists_and_unseen_calls() -> None:
    for where, expected, seen, other, ours in pairs("no_denied_tool_call"):
        denied = expected.get("denied_tools") or []
        assert isinstance(denied, list)
        if seen.trace.coverage.tool_calls == "none":
            assert ours.result == "not_run", where
        elif expected.get("allowed_tools") == []:
            # Theirs allows nothing then; ours has no allow list.
            hit = any(call.name in denied for call in seen.trace.tool_calls)
            assert ours.result == ("fail" if hit else "pass"), f"{where}: {ours.reason}"
        else:
            assert ours.result == other, f"{where}: {ours.reason}"


def test_a_goal_passes_where_theirs_does_unless_another_goal_stands_beside_it() -> None:
    for where, _, seen, other, ours in pairs("goal_integrity"):
        goals = {str(event.fields.get("id")) for event in seen.trace.events if event.type == "goal"}
        if not goals:
            assert ours.result == "not_run", where
        else:
            assert ours.result == ("pass" if other == "pass" and len(goals) == 1 else "fail"), f"{where}: {ours.reason}"


def test_every_pair_of_an_assertion_of_ours_is_as_theirs_or_stricter() -> None:
    """Only three are looser, and on purpose: a call that never was needs no approval; allowing nothing is no list."""
    loosened = {("approval_required", "not_run", "pass"), ("no_denied_tool_call", "fail", "pass")}
    met: Counter[tuple[str, str, str]] = Counter()
    for pair in json.loads((OWASP / "expected.json").read_text()):
        scenario = load_scenario(OWASP / "scenarios" / pair["scenario"])
        trace = load_trace(OWASP / "traces" / pair["trace"])
        seen = evidence_of(scenario, trace, completed=True, state={}, environment={}, canaries={})
        for assertion, theirs_ in zip(scenario.assertions, pair["assertions"], strict=True):
            met[assertion.type, theirs_["result"], assertion.judge(seen).result] += 1
    order = ("pass", "not_run", "fail")
    looser = {key for key in met if order.index(key[2]) < order.index(key[1])}
    # A goal that is not stated is a failure to them, and no evidence to us: neither passes a gate.
    assert looser - loosened == {("goal_integrity", "fail", "not_run")}
    assert met["memory_isolation", "fail", "fail"] == 1
    assert met["no_external_recipient", "fail", "fail"] == 3
    assert met["approval_required", "fail", "fail"] == 1
