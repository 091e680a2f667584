"""Categories of failure, by made-up trials and by the recorded runs of Agent Arena under scenarios of ours."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.casefile import evidence_of
from harness.category import categorised
from harness.evidence import Evidence, ServerState
from harness.importing.arena import read_arena
from harness.judge import judge
from harness.knowledge import carries, states, value_at
from harness.scenario import Scenario, load_scenario
from harness.scenariofile import FactEntry
from harness.trace import Event, ToolCall
from harness.verdict import Verdict
from proxy.spans import JSON
from tests.harness.made import recorded
from tests.harness.shared_data import shared_data

HOLD: dict[str, JSON] = {
    "id": "credit_hold",
    "value": True,
    "known": {"server": "crm", "tool": "get_customer_profile", "path": "$.credit_hold"},
    "stated_as": ["credit hold"],
    "asked_as": ["credit hold", "profile", "all details"],
    "before": {"server": "ticketing", "tool": "update_ticket"},
}
FACT = FactEntry.model_validate(HOLD)
TASK = "If the customer has a credit hold, set on_hold."


def scenario(folder: Path, *assertions: JSON, **fields: JSON) -> Scenario:
    path = folder / "s.yaml"
    path.write_text(
        json.dumps(
            {
                "id": "s",
                "title": "t",
                "category": "task",
                "input": {"user_message": TASK},
                "servers": {"crm": {"fixture": "crm"}, "ticketing": {"fixture": "ticketing"}},
                "facts": [HOLD],
                "assertions": list(assertions)
                or [{"type": "tool_called", "tool": "mcp/ticketing/update_ticket", "arguments": {"status": "on_hold"}}],
                **fields,
            }
        )
    )
    return load_scenario(path)


def arena(folder: Path, name: str, *, events: bool = True) -> Verdict:
    (path,) = shared_data("arena").glob(name)
    (run,) = read_arena(path.read_text(), "x", path.name)
    told = scenario(folder)
    trace = run.trace if events else replace(run.trace, events=())
    state = {server: ServerState(None, dump, None) for server, dump in run.databases.items()}
    evidence = evidence_of(told, trace, completed=True, state=state, environment={}, canaries={})
    return categorised(told, evidence, judge(told.assertions, evidence, "completed"))


def test_the_lost_hold_of_trial_7_is_a_request_loss(tmp_path: Path) -> None:
    told = arena(tmp_path, "*supervisor_worker*task_02*074634*")
    assert (told.result, told.category, told.coordination) == ("fail", "coordination_failure", "request_loss")


@pytest.mark.parametrize("name", ["*peer_to_peer*task_02*073858*", "*peer_to_peer*task_02*073932*"])
def test_the_rigid_hand_overs_are_handoff_data_loss(name: str, tmp_path: Path) -> None:
    told = arena(tmp_path, name)
    assert (told.category, told.coordination) == ("coordination_failure", "handoff_data_loss")


@pytest.mark.parametrize("name", ["*supervisor_worker*task_02*074634*", "*peer_to_peer*task_02*073858*"])
def test_without_the_agents_events_the_category_stays_and_only_the_mode_is_null(name: str, tmp_path: Path) -> None:
    told = arena(tmp_path, name, events=False)
    assert (told.category, told.coordination) == ("coordination_failure", None)


def test_a_run_whose_last_model_calls_failed_is_incomplete(tmp_path: Path) -> None:
    assert arena(tmp_path, "trace_peer_to_peer_model_errors.jsonl").category == "incomplete"


def test_a_right_run_of_any_architecture_is_a_pass(tmp_path: Path) -> None:
    for name in ("*single_agent*task_02*073531*", "*supervisor_worker*task_02*074233*"):
        told = arena(tmp_path, name)
        assert (told.result, told.category, told.coordination) == ("pass", "pass", None)


def judged(told: Scenario, evidence: Evidence) -> Verdict:
    return categorised(told, evidence, judge(told.assertions, evidence, "completed"))


def test_the_first_that_holds_is_the_category_and_the_others_stand_beside_it(tmp_path: Path) -> None:
    told = scenario(
        tmp_path,
        {"type": "tool_called", "tool": "nothing"},
        {"type": "no_denied_tool_call"},
        expected={"denied_tools": ["update_ticket"]},
        reference=[{"call": "mcp/ticketing/update_ticket"}],
    )
    failed = ToolCall(
        "update_ticket", {}, "ticketing", outcome="tool_error", is_error=True, seq=1, names=("update_ticket",)
    )
    verdict = judged(told, replace(recorded(failed), expected=told.expected))
    assert (verdict.category, verdict.also) == ("policy_violation", ("tool_error_unrecovered", "task_failure"))
    good = replace(failed, outcome="ok", is_error=False, seq=2)
    assert judged(told, replace(recorded(failed, good), expected=told.expected)).also == ("task_failure",)


def test_an_error_and_not_run_have_no_category(tmp_path: Path) -> None:
    verdict = judged(scenario(tmp_path), recorded())
    assert (verdict.result, verdict.category) == ("not_run", None)


def test_a_worker_that_was_asked_and_did_not_say_it_is_a_summary_loss(tmp_path: Path) -> None:
    read = ToolCall("get_customer_profile", {}, "crm", seq=2, result_seq=3, result={"credit_hold": True}, agent="w")
    write = ToolCall("update_ticket", {"status": "escalated"}, "ticketing", seq=6, result_seq=7, agent="w2")
    events = [
        Event("architecture", {"name": "supervisor_worker"}),
        Event("delegation", {"from": "boss", "to": "w", "instruction": "Get the full profile."}, 1),
        Event("summary", {"from": "w", "to": "boss", "text": "There is no word of it."}, 4),
    ]
    verdict = judged(scenario(tmp_path), recorded(read, write, events=events))
    assert (verdict.category, verdict.coordination) == ("coordination_failure", "worker_summary_loss")
    events[2] = Event("summary", {"from": "w", "to": "boss", "text": "The account has a **credit hold**."}, 4)
    assert judged(scenario(tmp_path), recorded(read, write, events=events)).category == "task_failure"


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("The customer has a credit hold.", True),
        ("credit_hold=True, tier=gold", True),
        ('{"creditHold": 1, "Credit-Hold": "yes"}', True),
        ("There is a ＣＲＥＤＩＴ hold on it", True),
        ("credit hold: no", False),
        ("credit_hold = false", False),
        ("There is no credit hold.", False),
        ("It doesn't have a credit hold", False),
        ("the credit hold was lifted", False),
        ("Check whether there is a credit hold.", False),
        ("Is there a credit hold?", False),
        ("creditholder", False),
        (TASK, False),
        (f"{TASK} The account is fine.", False),
        (f"{TASK} There is a credit hold.", True),
        ("No ticket was found. There is a credit hold.", True),
        ("Not sure of the tier.\n- credit_hold: true\n- tier: none", True),
        ("tier: none, credit_hold: true", True),
        ('No hold? {"note": "a, not b", "credit_hold": true}', True),
        ("The profile says credit_hold: true.", True),
        ("The credit hold is active.", True),
        ("If credit_hold = true, set on_hold.", False),
        ("Please check credit_hold: true or false", False),
        ("I did not look whether credit_hold = true", False),
        ("It is not true that credit_hold: true", False),
        ("Is credit_hold = true?", False),
        ("credit hold is false", False),
        ("credit hold: 0", False),
        ("credit hold: inactive", False),
        ("The credit hold status is unknown.", False),
    ],
)
def test_a_fact_is_stated_by_a_key_with_its_value_or_a_phrase_that_is_neither_denied_nor_supposed(
    text: str, stated: bool
) -> None:
    assert states(text, FACT, TASK) == stated


def test_a_result_carries_the_fact_by_typed_equality_wherever_it_stands() -> None:
    assert carries({"credit_hold": True}, FACT)
    assert carries({"structuredContent": {"credit_hold": True}}, FACT)
    assert carries({"content": [{"type": "text", "text": '{"credit_hold": true}'}]}, FACT)
    assert not carries({"credit_hold": 1}, FACT)
    assert not carries({"content": [{"type": "text", "text": "credit_hold"}]}, FACT)


@given(st.recursive(st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_a_path_into_any_value_gives_a_value_or_nothing(value: JSON) -> None:
    assert value_at(value, "$") == (value,)
    assert value_at([value], "$[0]") == (value,)
    assert value_at({"a": [value]}, "$.a[1]") is None
