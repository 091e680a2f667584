"""The project's own strict reading of the OWASP harness's scenarios and traces, in every pair of them."""

import json
import os
from pathlib import Path

import pytest
import yaml

from harness.assertions.assertion import parse_assertion
from harness.evidence import Evidence
from harness.judge import judge
from harness.trace import Coverage, Event, Message, Source, ToolCall, Trace
from harness.verdict import Result
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


def test_no_pair_that_their_rules_fail_passes_ours_and_strictness_only_adds_not_run_or_fail() -> None:
    results: list[tuple[str, Result]] = []
    for where, scenario, trace, verdicts in theirs():
        expected, specs = scenario["expected"], scenario["assertions"]
        assert isinstance(expected, dict)
        assert isinstance(specs, list)
        seen = evidence(trace, expected)
        for spec in specs:
            assertion = parse_assertion(spec)
            if assertion.type not in ("no_denied_tool_call", "goal_integrity"):
                continue
            ours, other = assertion.judge(seen), verdicts[assertion.type]
            results.append((assertion.type, ours.result))
            absent = (
                seen.trace.coverage.tool_calls if assertion.needs == ("tool_calls",) else seen.trace.coverage.events
            ) == "none"
            if absent:
                assert ours.result == "not_run", where
            elif assertion.type == "no_denied_tool_call":
                assert ours.result == other, f"{where}: {ours.reason}"
            elif other == "pass":
                assert ours.result == "pass", f"{where}: {ours.reason}"
            else:
                assert ours.result in ("fail", "not_run"), f"{where}: {ours.reason}"
    assert {("no_denied_tool_call", result) for result in ("pass", "fail", "not_run")} <= set(results)
    assert {("goal_integrity", result) for result in ("pass", "fail", "not_run")} <= set(results)


def test_a_scenario_with_an_assertion_that_is_not_built_never_passes() -> None:
    for _, scenario, trace, _ in theirs():
        expected, specs = scenario["expected"], scenario["assertions"]
        assert isinstance(expected, dict)
        assert isinstance(specs, list)
        assertions = [parse_assertion(spec) for spec in specs]
        verdict = judge(assertions, evidence(trace, expected), "completed")
        kinds = {assertion.type for assertion in assertions}
        assert verdict.result != "pass" or kinds <= {"no_denied_tool_call", "goal_integrity"}
