"""What of a trial counts as observed, as derived, and as not observable; and the matrix of it."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.assertions.assertion import Assertion, parse_assertion
from harness.evidence import Evidence
from harness.judge import judge
from harness.observability import MEASURES, Measure, Watched, observe, unobserved
from harness.report.seen import matrix, matrix_as_json, matrix_lines, reasons
from harness.targets.sight import SIGHTS
from harness.trace import Coverage, Event, Trace
from harness.verdict import Status, Verdict
from proxy.spans import JSON
from tests.harness.made import REPORTED, call, wire

TOOL = "mcp/ticketing/update_ticket"
WANTED: list[JSON] = [{"type": "tool_called", "tool": TOOL}, {"type": "efficiency", "minimum": 1}]
ASSERTIONS: tuple[Assertion, ...] = tuple(map(parse_assertion, WANTED))
NOTHING = Coverage()


def measures(evidence: Evidence, status: Status = "completed", **watched: float | None) -> dict[str, Measure]:
    seconds, first = watched.get("seconds", 1.5), watched.get("first_ms")
    verdict = judge(ASSERTIONS, evidence, status)
    return observe(Watched("chat", seconds, first), evidence, verdict, ASSERTIONS)


def tokens(reported: bool, **fields: int | float | None) -> Event:
    return Event("model_call", {"in": 5, "cached": 1, "out": 2, **fields}, seq=9, reported=reported)


def test_calls_on_the_wire_are_observed() -> None:
    found = measures(wire(call(TOOL), call(TOOL, seq=3, request_id="2")), first_ms=250.0)
    assert found["task_success"] == Measure("observed", "by the verdict", 1)
    assert found["tool_correctness"] == Measure("observed", "by tool_called", 1)
    assert (found["efficiency"].seen, found["efficiency"].value) == ("observed", 0.5)
    assert found["trajectory"] == Measure("observed", "2 calls crossed the proxy", 2)
    assert found["latency"].value == 1.5
    assert "first text after 0.250 s" in found["latency"].why


def test_what_nobody_saw_is_null_and_never_0() -> None:
    dark = replace(wire(initialised=[]), trace=Trace(NOTHING))
    found = measures(dark)
    for name in MEASURES:
        if name != "latency":
            assert (found[name].seen, found[name].value) == ("not observable", None), name
            assert found[name].why
    assert found["trajectory"].why == "no connection to ticketing crossed the proxy"
    assert measures(dark, seconds=None)["latency"] == Measure("not observable", "nothing was run")


def test_what_a_target_reports_is_derived() -> None:
    trace = Trace(REPORTED, tool_calls=(call(TOOL),), events=(tokens(True), Event("handoff", {}, reported=True)))
    found = measures(replace(wire(), trace=trace, recorded=True, servers=()))
    seen = {name: found[name].seen for name in MEASURES if name not in ("latency", "cost")}
    assert set(seen.values()) == {"derived"}
    assert (found["tokens"].value, found["handovers"].value) == (8, 1)
    assert found["cost"] == Measure("not observable", "the price of 1 of 1 calls is not known")


def test_tokens_of_our_own_loop_are_observed_and_a_price_makes_a_cost() -> None:
    evidence = wire(call(TOOL), events=[tokens(False, cost=0.25), tokens(False, cost=0.5)])
    found = measures(evidence)
    assert (found["tokens"].seen, found["tokens"].value) == ("observed", 16)
    assert (found["cost"].seen, found["cost"].value) == ("derived", 0.75)
    untold = tokens(False, **{"in": None, "cached": None, "out": None})
    assert measures(wire(call(TOOL), events=[untold]))["tokens"].value is None


def test_a_record_with_gaps_is_derived_at_best() -> None:
    found = measures(wire(call(TOOL), gaps=("a connection to ticketing was lost",)))
    assert found["trajectory"].seen == "derived"
    assert "lost" in found["trajectory"].why


def test_a_trial_that_says_nothing_of_the_agent_shows_nothing_of_it() -> None:
    assert measures(wire(call(TOOL)), "infra_error") == unobserved("the trial ended as infra_error")


def test_a_single_agent_of_steps_hands_nothing_over() -> None:
    evidence = wire(call(TOOL))
    verdict = Verdict("pass", "completed", "")
    found = observe(Watched("scripted", 1.0, alone=True), evidence, verdict, ASSERTIONS)
    assert found["handovers"] == Measure("observed", "its loop is ours, and handed nothing over", 0)


def test_the_matrix_counts_where_trials_differ() -> None:
    seen, dark = measures(wire(call(TOOL))), unobserved("because")
    found = matrix([("b", seen), ("a", dark), ("b", dark), ("", dark), ("c", {})])
    assert list(found) == ["b", "a"]
    assert found["b"]["trajectory"].text == "observed 1/2, not observable 1/2"
    assert found["a"]["tokens"].text == "not observable"
    cell = matrix_as_json(found)["b"]
    assert isinstance(cell, dict)
    assert cell["latency"] == {
        "observed": 1,
        "derived": 0,
        "not observable": 1,
        "why": ["from its start to its end", "because"],
    }
    lines = list(matrix_lines(found))
    assert lines[0].split("  ")[0] == "seen of each target"
    assert [line.split()[0] for line in lines[1:]] == ["b", "a"]
    assert list(matrix_lines({})) == []
    assert "  trajectory       observed 1/2, not observable 1/2: 1 call crossed the proxy; because" in list(
        reasons(found)
    )


@settings(max_examples=25)
@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_a_matrix_has_a_line_a_target_whatever_stands_in_it(target: str, why: str) -> None:
    found = matrix([(target, unobserved(why))])
    assert len(list(matrix_lines(found))) == 2
    for line in (*matrix_lines(found), *reasons(found)):
        assert "\n" not in line
        assert "\x1b" not in line


def test_each_kind_of_target_has_a_row_and_no_two_the_same() -> None:
    names = [sight.name for sight in SIGHTS]
    assert len(set(names)) == len(names)
    for sight in SIGHTS:
        assert list(sight.measures()) == [*MEASURES]
