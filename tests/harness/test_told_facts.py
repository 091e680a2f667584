"""Who knew a fact that a server told by something else than the result of a call."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from harness.evidence import Evidence
from harness.knowing import Knowing
from harness.knowledge import carries
from harness.roster import Roster
from harness.scenariofile import FactEntry
from harness.trace import Event, ToolCall, Trace
from proxy.spans import JSON
from tests.harness.architectures import trials
from tests.harness.made import WIRE

FACT = FactEntry.model_validate(trials.FACT)
RECORD: JSON = {"customer_id": "CUST-004", "credit_hold": True}
WRITE = ToolCall("mcp/ticketing/update_ticket", {}, "ticketing", "update_ticket", seq=20, outcome="ok", agent="boss")


def told(method: str, content: JSON, *, agent: str = "worker", server: str = "crm", seq: int = 5, **more: str) -> Event:
    part = "params" if "/message" in method else "result"
    fields: dict[str, JSON] = {"server_id": server, "method": method, "part": part, "content": content, "agent": agent}
    return Event("mcp_server_message", {**fields, **more}, seq)


def text(said: str) -> JSON:
    return {"contents": [{"uri": "crm:///x", "text": said}]}


def knowing(*events: Event) -> Knowing:
    trace = Trace(WIRE, tool_calls=(WRITE,), events=events)
    roster = Roster("supervisor_worker", {"boss": ("ticketing",), "worker": ("crm",)})
    evidence = Evidence(trace, True, servers=("crm", "ticketing"), user_message="Escalate.", roster=roster)
    return Knowing(FACT, evidence, None)


TELLING: Mapping[str, Callable[[], Event]] = {
    "a resource that is the record": lambda: told("resources/read", text(json.dumps(RECORD))),
    "a resource in words": lambda: told("resources/read", text("CUST-004: there is a credit hold.")),
    "a resource named after the customer": lambda: told(
        "resources/read", text("credit_hold: true"), uri="crm:///customers/CUST-004"
    ),
    "a blob": lambda: told("resources/read", {"contents": [{"blob": b64encode(json.dumps(RECORD).encode()).decode()}]}),
    "a prompt": lambda: told(
        "prompts/get", {"messages": [{"role": "user", "content": {"text": "CUST-004 has a credit hold"}}]}
    ),
    "a task's result": lambda: told("tasks/result", {"structuredContent": RECORD}),
    "a log message": lambda: told("notifications/message", {"data": RECORD}),
    "a resource of another server": lambda: told("resources/read", text("CUST-004 has a credit hold"), server="notes"),
}
SILENT: Mapping[str, Callable[[], Event]] = {
    "another customer's record": lambda: told(
        "resources/read", text('{"customer_id": "CUST-003", "credit_hold": true}')
    ),
    "another value": lambda: told("resources/read", text('{"customer_id": "CUST-004", "credit_hold": false}')),
    "a denial": lambda: told("resources/read", text("CUST-004 has no credit hold")),
    "a tool's description": lambda: told("tools/list", {"tools": [{"description": "CUST-004 has a credit hold"}]}),
    "instructions": lambda: told("initialize", {"instructions": "CUST-004 has a credit hold"}),
    "what policy kept back": lambda: told("notifications/message", {"data": RECORD}, outcome="denied"),
}


@pytest.mark.parametrize("name", TELLING)
def test_an_agent_that_was_told_a_fact_by_a_server_knows_it(name: str) -> None:
    assert knowing(TELLING[name]()).readers == {"worker": 5}


@pytest.mark.parametrize("name", SILENT)
def test_what_does_not_tell_the_fact_makes_nobody_know_it(name: str) -> None:
    assert knowing(SILENT[name]()).readers == {}


def test_where_a_fact_that_a_resource_told_was_lost_is_found_as_of_a_call() -> None:
    record = TELLING["a resource that is the record"]()
    asked = Event("delegation", {"from": "boss", "to": "worker", "instruction": "Get the profile."}, 1)
    summary = Event("summary", {"from": "worker", "to": "boss", "text": "Nothing to tell."}, 8)
    architecture = Event("architecture", {"name": "supervisor_worker"})
    loss = knowing(architecture, asked, record, summary).loss()
    assert loss is not None
    assert loss.mode == "worker_summary_loss"
    said = replace(summary, fields={**summary.fields, "text": "There is a credit hold."})
    assert knowing(architecture, asked, record, said).loss() is None
    handed = Event("handoff", {"from": "worker", "to": "boss", "text": "Nothing."}, 8)
    handing = knowing(architecture, record, handed).loss()
    assert handing is not None
    assert handing.mode == "handoff_data_loss"
    own = replace(record, fields={**record.fields, "agent": "boss"})
    assert knowing(architecture, own).loss() is None


def test_a_result_carries_what_is_embedded_in_it() -> None:
    said = json.dumps(RECORD)
    blocks: list[JSON] = [
        {"type": "resource", "resource": {"uri": "x:", "text": said}},
        {"type": "resource", "resource": {"uri": "x:", "blob": b64encode(said.encode()).decode()}},
    ]
    assert [carries({"content": [block]}, FACT) for block in blocks] == [True, True]
    assert not carries({"content": [{"type": "resource", "resource": {"blob": "no base64"}}]}, FACT)
