"""Faults in whole trials, and what is made of recovery. That each way has them: test_faults_each_way."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.report.table import Style, as_table
from harness.results import TrialResult
from proxy.spans import JSON
from tests.harness.runs import Ran, run, write_scenario

GET: dict[str, JSON] = {"call": "mcp/ticketing/get_ticket", "arguments": {"ticket_id": 1}, "expect_error": True}
AGAIN: dict[str, JSON] = {"call": "mcp/ticketing/get_ticket", "arguments": {"ticket_id": 2}}
OTHER: JSON = {"call": "mcp/ticketing/search_tickets", "arguments": {"customer_id": "CUST-001"}}
WRITE: JSON = {
    "call": "mcp/ticketing/update_ticket",
    "arguments": {"ticket_id": 1, "status": "on_hold"},
    "give_up_after": 1,
    "expect_error": True,
}
HURRY: dict[str, JSON] = {"give_up_after": 1.5}


@dataclass(frozen=True)
class Met:
    """A trial in which a fault falls on the first call, and how that call ends."""

    id: str
    fault: dict[str, JSON]
    outcome: str
    server: str | None = None


MET = [
    Met("error", {"fault": "error"}, "tool_error"),
    Met("timeout", {"fault": "timeout"}, "cancelled"),
    Met("lost", {"fault": "lost"}, "unanswered", "ok"),
    Met("cut", {"fault": "cut", "keep": 3}, "ok", "ok"),
    Met("empty", {"fault": "empty"}, "ok", "ok"),
    Met("delay", {"fault": "delay", "seconds": 0.2}, "ok"),
]


def faulty(folder: Path, name: str, fault: dict[str, JSON], *steps: JSON) -> Path:
    agent = folder / f"{name}.agent.json"
    agent.write_text(json.dumps({"transport": "in_process", "steps": [*steps, {"say": "Done."}]}))
    given: dict[str, JSON] = {
        "id": name,
        "servers": {"ticketing": {"fixture": "ticketing", "trust": "internal"}},
        "assertions": [{"type": "tool_called", "tool": "mcp/ticketing/get_ticket"}],
        "agent": {"scripted": str(agent)},
        "reference": [AGAIN],
        "faults": [{"tool": "mcp/ticketing/get_*", "call": 1, **fault}],
        "limits": {"seconds": 2 if name == "patient" else 60},
    }
    return write_scenario(folder, **given)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All trials of this module in one run."""
    folder = tmp_path_factory.mktemp("faulty")
    paths = [
        faulty(
            folder, met.id, met.fault, {**GET, **(HURRY if met.fault["fault"] in {"timeout", "lost"} else {})}, AGAIN
        )
        for met in MET
    ]
    paths += [
        faulty(folder, "ignored", {"fault": "error"}, GET, OTHER),
        faulty(folder, "written", {"tool": "mcp/ticketing/update_ticket", "fault": "lost"}, WRITE, AGAIN),
        faulty(folder, "patient", {"fault": "timeout"}, GET),
        faulty(folder, "unmet", {"fault": "error", "call": 9}, AGAIN),
    ]
    return run(paths, folder)


def trial(ran: Ran, name: str) -> TrialResult:
    (found,) = [one for one in ran.result.trials if one.scenario == name]
    return found


def listed(ran: Ran, name: str, part: str) -> list[Mapping[str, JSON]]:
    found = ran.document(name, "1", "trace.json")[part]
    assert isinstance(found, list)
    return [one for one in found if isinstance(one, dict)]


@pytest.mark.parametrize("met", MET, ids=lambda met: str(met.id))
def test_a_fault_meets_the_call_and_the_trace_says_so(ran: Ran, met: Met) -> None:
    kind = met.fault["fault"]
    first, second = listed(ran, met.id, "tool_calls")
    assert (first["outcome"], first["fault"], first.get("server_outcome")) == (met.outcome, kind, met.server)
    assert (second["outcome"], second.get("fault")) == ("ok", None)
    (told,) = [event for event in listed(ran, met.id, "events") if event["type"] == "fault"]
    assert (told["fault"], told["call_span_id"], told["agent"]) == (kind, first["span_id"], "agent")
    found = trial(ran, met.id)
    assert (found.verdict.result, found.gaps, found.doubts) == ("pass", (), ())
    faults, spoilt = found.verdict.faults, int(kind != "delay")
    assert faults is not None
    assert (faults.met, faults.spoilt, faults.recovered) == (1, spoilt, spoilt)
    if kind == "delay":
        assert isinstance(first["duration_ms"], float)
        assert first["duration_ms"] >= 200


def test_an_error_that_is_ignored_is_not_recovered(ran: Ran) -> None:
    verdict = trial(ran, "ignored").verdict
    assert (verdict.result, verdict.category) == ("fail", "tool_error_unrecovered")
    assert verdict.faults is not None
    assert (verdict.faults.spoilt, verdict.faults.recovered) == (1, 0)


def test_a_lost_answer_to_a_write_leaves_a_change_that_its_call_explains(ran: Ran) -> None:
    verdict = trial(ran, "written").verdict
    assert [(finding.id, finding.result) for finding in verdict.findings] == [
        ("tool_called", "pass"),
        ("state_unexplained", "pass"),
    ]
    assert listed(ran, "written", "tool_calls")[0]["server_outcome"] == "ok"


def test_an_agent_without_patience_ends_at_its_limit_when_no_answer_comes(ran: Ran) -> None:
    verdict = trial(ran, "patient").verdict
    assert (verdict.status, verdict.category) == ("agent_timeout", "incomplete")


def test_the_report_says_how_many_faults_were_met_and_made_good(ran: Ran) -> None:
    told = as_table(ran.result, Style())
    assert "  injected faults: no call met one\n" in told
    assert "  injected faults: 1 met, 1 of them cost an answer, 0 of those recovered\n" in told
    report = ran.document("ignored", "1", "verdict.json")
    assert report["faults"] == {"met": 1, "spoilt": 1, "recovered": 0}


def test_a_scenario_names_servers_in_its_faults_that_it_has(tmp_path: Path) -> None:
    path = faulty(tmp_path, "small", {"tool": "mcp/crm/get", "fault": "error"}, GET)
    with pytest.raises(ValueError, match=r"faults\[0\]\.tool: the scenario has no server 'crm'"):
        run([path], tmp_path)
