"""The same faults on every way that the harness puts a proxy between an agent and its servers: the same trace."""

import json
from collections.abc import Iterator, Mapping

import pytest

from harness.targets.client import Client
from harness.targets.deadline import Deadline
from harness.targets.overhttp import HttpChannel
from proxy.spans import JSON
from tests.clients.surroundings import listening, ticketing
from tests.harness.runs import Ran, run, write_scenario
from tests.harness.targets.boxes import Asked, box

GET, SEARCH = "mcp/ticketing/get_ticket", "mcp/ticketing/search_tickets"
FAULTS: list[JSON] = [
    {"tool": GET, "call": 1, "fault": "error", "message": "the database is locked"},
    {"tool": GET, "call": 2, "fault": "error", "as": "error"},
    {"tool": GET, "call": 3, "fault": "timeout"},
    {"tool": GET, "call": 4, "fault": "lost"},
    {"tool": GET, "call": 5, "fault": "empty"},
    {"tool": GET, "call": 6, "fault": "cut", "keep": 3},
    {"tool": GET, "call": 7, "fault": "delay", "seconds": 0.05},
    {"tool": SEARCH, "probability": 0.5, "seed": 5, "fault": "error"},
]
PATIENCE = {3: 0.1, 4: 0.5}
"""Seconds after which a call is given up, by its number: those that nothing ever answers."""
CALLS: list[tuple[str, dict[str, JSON], float | None]] = []
CALLS += [("get_ticket", {"ticket_id": 1}, PATIENCE.get(number)) for number in range(1, 9)]
CALLS += [("search_tickets", {"customer_id": f"CUST-00{number}"}, None) for number in range(1, 6)]
ENDS = [
    ("tool_error", "error", None),
    ("protocol_error", "error", None),
    ("cancelled", "timeout", None),
    ("unanswered", "lost", "ok"),
    ("ok", "empty", "ok"),
    ("ok", "cut", "ok"),
    ("ok", "delay", None),
    ("ok", None, None),
]
"""How each call of `get_ticket` ends: its outcome, the fault that it felt, and the server's own outcome."""
OTHERWISE = frozenset(
    {"seq", "span_id", "call_span_id", "started_at", "duration_ms", "time", "mcp_transport", "connection"}
)
"""What two ways tell differently of the same."""


def steps() -> list[JSON]:
    given: list[dict[str, JSON]] = [{} if patience is None else {"give_up_after": patience} for *_, patience in CALLS]
    return [
        {"call": f"mcp/ticketing/{tool}", "arguments": arguments, "expect_error": True, **more}
        for (tool, arguments, _), more in zip(CALLS, given, strict=True)
    ]


def working(asked: Asked) -> None:
    """An agent over HTTP that does the same, at the address that it is handed."""
    match asked.document():
        case {"mcp_servers": {"ticketing": {"url": str(url)}}}:
            client = Client("ticketing", HttpChannel("ticketing", url, Deadline.after(30)))
            client.initialize()
            client.list_tools()
            for one in CALLS:
                client.call_tool(*one)
            client.channel.close()
            asked.answer(b"{}")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """One run, with a scenario for each way; it has the way's name."""
    folder = tmp_path_factory.mktemp("each_way")
    with listening([*ticketing(folder), "--http", "0"]) as url, box(working) as agent:
        own: JSON = {"fixture": "ticketing", "trust": "internal"}
        ways: dict[str, tuple[JSON, JSON]] = {
            "in_process": (own, {"transport": "in_process", "steps": steps()}),
            "stdio": (own, {"transport": "stdio", "steps": steps()}),
            "url": ({"url": url, "trust": "internal"}, {"steps": steps()}),
            "bridged": (own, {"http": {"url": agent, "hand_over": True}}),
        }
        paths = []
        for way, (server, does) in ways.items():
            file = folder / f"{way}.agent.json"
            file.write_text(json.dumps(does))
            called: JSON = [{"type": "tool_called", "tool": GET}]
            meant: dict[str, JSON] = {"agent": {"scripted": str(file)}, "faults": FAULTS, "assertions": called}
            paths.append(write_scenario(folder, id=way, servers={"ticketing": server}, **meant))
        yield run(paths, folder, jobs=2)


def told(ran: Ran, way: str, part: str) -> list[Mapping[str, JSON]]:
    found = ran.document(way, "1", "trace.json")[part]
    assert isinstance(found, list)
    return [{key: one[key] for key in one if key not in OTHERWISE} for one in found if isinstance(one, dict)]


@pytest.mark.parametrize(
    ("way", "transport"), [("in_process", "in_process"), ("stdio", "stdio"), ("url", "http"), ("bridged", "http")]
)
def test_faults_are_the_same_on_each_way(ran: Ran, way: str, transport: str) -> None:
    calls = told(ran, way, "tool_calls")
    assert [(one["outcome"], one.get("fault"), one.get("server_outcome")) for one in calls[:8]] == ENDS
    assert {one.get("fault") for one in calls[8:]} == {"error", None}
    assert calls == told(ran, "in_process", "tool_calls")
    events = [[one for one in told(ran, name, "events") if one["type"] == "fault"] for name in (way, "in_process")]
    assert events[0] == events[1]
    assert [one["fault"] for one in events[0][:7]] == [end[1] for end in ENDS[:7]]
    document = ran.document(way, "1", "trace.json")["tool_calls"]
    assert isinstance(document, list)
    assert {one["mcp_transport"] for one in document if isinstance(one, dict)} == {transport}
    [trial] = [one for one in ran.result.trials if one.scenario == way]
    assert (trial.verdict.result, trial.gaps, trial.doubts) == ("pass", (), ()), trial.verdict
    assert trial.verdict.faults is not None
    # All are made good by the last call of their tool but what the last search may have met.
    assert trial.verdict.faults.met == len(events[0])
