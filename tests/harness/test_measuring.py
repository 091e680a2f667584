"""The numbers of a trial, and the tables that are made of many."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.measuring import Had, Measured, measure
from harness.report.swept import as_markdown, as_text
from harness.results import TrialResult
from harness.scenario import Scenario, load_scenario
from harness.sweepresult import ArmResult, SweepResult, Tried
from harness.targets.fixtures import fixture_offers
from harness.trace import Coverage, Event, ToolCall, Trace
from harness.verdict import FailureCategory, Mode, Result, Status, Verdict
from proxy.spans import JSON
from tests.harness.runs import write_scenario

WIRE = Coverage("wire", "wire", "wire", "wire", "wire")
FACT: JSON = {
    "id": "hold",
    "value": True,
    "known": {
        "server": "crm",
        "tool": "get_customer_profile",
        "arguments": {"customer_id": "C"},
        "path": "$.credit_hold",
    },
    "stated_as": ["credit hold"],
    "asked_as": ["profile"],
    "before": {"server": "ticketing", "tool": "update_ticket"},
}


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    servers: JSON = {"crm": {"fixture": "crm"}, "ticketing": {"fixture": "ticketing"}}
    path = write_scenario(
        tmp_path,
        servers=servers,
        facts=[FACT],
        assertions=[{"type": "tool_called", "tool": "mcp/crm/get_customer_profile"}],
    )
    return load_scenario(path, fixture_offers())


def call(seq: int, server: str, tool: str, agent: str, result: JSON, **arguments: JSON) -> ToolCall:
    return ToolCall(
        f"mcp/{server}/{tool}",
        arguments,
        server,
        tool,
        seq=seq,
        result_seq=seq,
        outcome="ok",
        result=result,
        agent=agent,
    )


def model_call(**fields: JSON) -> Event:
    return Event("model_call", {"in": None, "cached": None, "out": None, "error": False, **fields})


def test_tokens_and_cost_are_sums_and_a_failed_call_that_names_none_is_left_out(scenario: Scenario) -> None:
    events = (
        model_call(**{"in": 10, "cached": 4, "out": 2, "cost": 0.01}),
        model_call(error=True),
        model_call(**{"in": 20, "cached": 0, "out": 3, "cost": 0.02}),
    )
    found = measure(scenario, Trace(WIRE, events=events))
    assert (found.model_calls, found.tokens_in, found.tokens_cached, found.tokens_out, found.tokens) == (
        3,
        30,
        4,
        5,
        39,
    )
    assert found.cost == pytest.approx(0.03)


def test_what_one_call_does_not_say_is_not_known_of_the_trial(scenario: Scenario) -> None:
    events = (model_call(**{"in": 10, "out": 2, "cost": None}), model_call(**{"in": 20, "out": True, "cost": 0.5}))
    found = measure(scenario, Trace(WIRE, events=events))
    assert (found.tokens_in, found.tokens_out, found.cost) == (30, None, None)
    nothing = measure(scenario, Trace(Coverage(), events=()))
    assert replace(nothing, facts=()) == Measured()


def test_who_had_a_fact_is_told_agent_by_agent(scenario: Scenario) -> None:
    hold: JSON = {"structuredContent": {"credit_hold": True}}
    calls = (
        call(1, "crm", "get_customer_profile", "crm_peer", hold, customer_id="C"),
        call(3, "ticketing", "update_ticket", "ticketing_peer", {}, ticket_id=2),
    )
    silent = Event("handoff", {"from": "crm_peer", "to": "ticketing_peer", "text": "tier: gold"}, 2)
    told = Event("handoff", {"from": "crm_peer", "to": "ticketing_peer", "text": "There is a credit hold."}, 2)
    architecture = Event("architecture", {"name": "peer_to_peer"})
    (lost,) = measure(scenario, Trace(WIRE, tool_calls=calls, events=(architecture, silent))).facts
    (kept,) = measure(scenario, Trace(WIRE, tool_calls=calls, events=(architecture, told))).facts
    assert (lost, lost.decider_knew) == (Had("hold", ("crm_peer",), ("crm_peer",), "ticketing_peer"), False)
    assert (kept.knowers, kept.decider_knew) == (("crm_peer", "ticketing_peer"), True)


def test_who_read_a_fact_after_what_it_decides_had_it_not_and_a_critic_that_was_shown_it_had_it(
    scenario: Scenario,
) -> None:
    hold: JSON = {"structuredContent": {"credit_hold": True}}
    write = call(1, "ticketing", "update_ticket", "proposer", {}, ticket_id=2)
    late = call(3, "crm", "get_customer_profile", "proposer", hold, customer_id="C")
    again = call(5, "ticketing", "update_ticket", "proposer", {}, ticket_id=2)
    critique = Event("critique", {"accepted": True, "draft": "done", "input": '{"credit_hold": true}'}, 4)
    (alone,) = measure(scenario, Trace(WIRE, tool_calls=(write, late))).facts
    (shown,) = measure(scenario, Trace(WIRE, tool_calls=(write, late), events=(critique,))).facts
    (mended,) = measure(scenario, Trace(WIRE, tool_calls=(write, late, again))).facts
    assert (alone.readers, alone.knowers, alone.decider_knew) == (("proposer",), (), False)
    assert (shown.knowers, shown.decider_knew) == (("critic",), False)
    assert mended.decider_knew is True


def tried(
    result: Result,
    status: Status = "completed",
    category: FailureCategory | None = None,
    mode: Mode | None = None,
    measured: Measured | None = None,
    task: str = "t",
) -> Tried:
    verdict = Verdict(result, status, "so", category=category, coordination=mode)
    return Tried("a", task, TrialResult("a.t", 1, verdict, 2.0, "scripted"), measured or Measured())


def test_the_adjusted_rate_leaves_out_what_is_incomplete_or_lost_and_what_never_began_is_nowhere() -> None:
    arm = ArmResult(
        "a",
        (
            tried("pass"),
            tried("fail", category="task_failure"),
            tried("fail", "agent_timeout", "incomplete"),
            tried("error", "infra_error"),
            tried("error", "cancelled"),
        ),
    )
    assert (arm.raw.passed, arm.raw.trials, arm.adjusted.trials, arm.not_done) == (1, 4, 2, 1)
    assert arm.categories == {"task_failure": 1, "incomplete": 1, "error": 1}


def test_the_means_are_those_of_the_trials_that_passed_and_unknown_where_one_is() -> None:
    known, unknown = Measured(calls=3, cost=0.5, tokens_in=7), Measured(calls=5)
    arm = ArmResult("a", (tried("pass", measured=known), tried("fail", measured=unknown, category="task_failure")))
    assert arm.mean(lambda one: one.measured.calls) == 3
    assert (arm.mean(lambda one: one.measured.cost), arm.total(lambda one: one.cost)) == (0.5, None)
    both = ArmResult("a", (tried("pass", measured=known), tried("pass", measured=unknown)))
    assert (both.mean(lambda one: one.measured.calls), both.mean(lambda one: one.measured.cost)) == (4, None)


def test_the_tables_show_rates_reasons_facts_and_a_dash_for_what_is_not_known() -> None:
    had = Had("hold", ("crm_peer",), ("crm_peer",), "ticketing_peer")
    lost = tried("fail", category="coordination_failure", mode="handoff_data_loss", measured=Measured(facts=(had,)))
    arm = ArmResult("pair|rigid", (lost, tried("pass", task="other")))
    sweep = SweepResult("r", (arm,), "limits.cost: 2 of 1 dollars are used")
    text = as_text(sweep)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "pair|rigid 2 1/2 (50 %) 1/2 (50 %) 0..100 % 9..91 %" in lines
    assert "pair|rigid coordination_failure / handoff_data_loss 1" in lines
    assert "other pair|rigid 1/1 (100 %) 21..100 %" in lines
    assert "pair|rigid t hold 1 1 0 1 crm_peer 1" in lines
    assert "pair|rigid - - - - 2.00 2.00" in lines
    assert text.endswith("Not finished: limits.cost: 2 of 1 dollars are used\n")
    marked = as_markdown(sweep)
    assert "| pair\\|rigid | t | hold | 1 | 1 | 0 | 1 | crm_peer 1 |" in marked
    assert sweep.exit_code == 1
    found = arm.as_json()
    assert isinstance(found, dict)
    assert (found["cost"], found["failures"]) == (None, {"coordination_failure / handoff_data_loss": 1})
    assert "bootstrap" in str(found["repeats"])
