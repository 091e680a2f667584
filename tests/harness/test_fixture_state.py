"""The judge over databases and journals that the real fixture servers wrote."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from harness.assertions.assertion import parse_assertion
from harness.evidence import Dump, ServerState
from harness.judge import judge
from harness.state import read_connections, read_dump, read_journal
from harness.trace import ToolCall
from harness.verdict import Verdict
from proxy.spans import JSON
from servers.database import journal_path
from tests.harness.made import call, wire
from tests.servers.wire import exchange, made

SPECS: list[JSON] = [
    {"type": "tool_called", "tool": "mcp/ticketing/update_ticket", "arguments": {"ticket_id": 2.0}},
    {
        "type": "state",
        "server": "ticketing",
        "query": "select status, description from tickets where customer_id = 'CUST-004'",
        "matches": [["on_hold", r"Service degraded ?\[CREDIT_HOLD\]"]],
    },
    {
        "type": "state_unchanged",
        "except": [
            {
                "server": "ticketing",
                "table": "tickets",
                "where": {"customer_id": "CUST-004"},
                "columns": ["status", "description"],
            }
        ],
    },
]
RIGHT: dict[str, object] = {"ticket_id": 2, "status": "on_hold", "description": "Service degraded [CREDIT_HOLD]"}
WRONG = RIGHT | {"status": "escalated"}


def update(arguments: dict[str, object]) -> ToolCall:
    given: JSON = json.loads(json.dumps(arguments))
    return call("mcp/ticketing/update_ticket", given, seq=6, request_id="6")


MADE = update(RIGHT)


def verdict(path: Path, before: Dump, *calls: ToolCall) -> Verdict:
    state = ServerState(before, read_dump(path), read_journal(journal_path(path)))
    return judge([parse_assertion(spec) for spec in SPECS], wire(*calls, state={"ticketing": state}), "completed")


def test_a_right_run_passes(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    before = read_dump(path)
    exchange(path, "c1", [(6, "update_ticket", RIGHT)])
    assert verdict(path, before, MADE).result == "pass"


def test_a_wrong_status_is_named_by_row_and_column(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    before = read_dump(path)
    exchange(path, "c1", [(6, "update_ticket", WRONG)])
    found = verdict(path, before, update(WRONG))
    assert found.result == "fail"
    assert "row 1, column status is 'escalated', wanted to match 'on_hold'" in found.reason


def test_another_ticket_that_was_touched_is_named_with_the_call(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    before = read_dump(path)
    exchange(path, "c1", [(6, "update_ticket", RIGHT), ("7", "update_ticket", {"ticket_id": 1, "status": "closed"})])
    other = call("mcp/ticketing/update_ticket", {"ticket_id": 1, "status": "closed"}, seq=7, request_id='"7"')
    found = verdict(path, before, MADE, other)
    assert found.result == "fail"
    assert found.reason == (
        "state_unchanged: ticketing.tickets row 1: status 'open' → 'closed', "
        'by mcp/ticketing/update_ticket {"ticket_id": 1, "status": "closed"} (seq 7)'
    )


def test_a_call_that_is_not_recorded_is_unexplained(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    before = read_dump(path)
    exchange(path, "c1", [(6, "update_ticket", RIGHT)])
    exchange(path, "c2", [(6, "update_ticket", {"ticket_id": 2, "status": "open"})])
    exchange(path, None, [(6, "update_ticket", {"ticket_id": 2, "status": "on_hold"})])
    found = verdict(path, before, MADE)
    assert found.result == "fail"
    assert [finding.id for finding in found.findings if finding.result == "fail"] == ["state_unexplained"]
    assert "request 6 of connection c2" in found.reason


def test_a_change_behind_the_server_is_unexplained(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    before = read_dump(path)
    exchange(path, "c1", [(6, "update_ticket", WRONG)])
    with closing(sqlite3.connect(path)) as database:
        database.execute("update tickets set status = 'on_hold' where id = 2")
        database.commit()
    found = verdict(path, before, update(WRONG))
    assert found.result == "fail"
    assert found.reason == (
        "state_unexplained: ticketing.tickets row 2: status 'escalated' → 'on_hold', and no recorded call explains it"
    )


def test_another_call_of_the_same_id_past_the_proxy_is_unexplained(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    before = read_dump(path)
    harmless: dict[str, object] = {"ticket_id": 2, "description": "Service degraded"}
    exchange(path, "c1", [(6, "update_ticket", harmless)])
    exchange(path, "c1", [(6, "update_ticket", RIGHT)])
    found = verdict(path, before, update(harmless))
    assert found.result == "fail"
    assert "by an execution of update_ticket" in found.reason
    assert "recorded of that id is mcp/ticketing/update_ticket" in found.reason


def test_a_call_that_is_made_once_through_the_proxy_and_again_past_it_is_unexplained(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    before = read_dump(path)
    opened: dict[str, object] = {"customer_id": "CUST-004", "description": "again"}
    exchange(path, "c1", [(6, "create_ticket", opened)])
    exchange(path, "c1", [(6, "create_ticket", opened)])
    once = call("mcp/ticketing/create_ticket", {"customer_id": "CUST-004", "description": "again"}, request_id="6")
    (unexplained,) = [f for f in verdict(path, before, once).findings if f.id == "state_unexplained"]
    assert unexplained.result == "fail"
    assert "row 4" in unexplained.reason
    (unexplained,) = [f for f in verdict(path, before, once, once).findings if f.id == "state_unexplained"]
    assert unexplained.result == "pass"


def test_each_start_of_a_server_is_read_with_its_connection(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    exchange(path, "c1", [])
    exchange(path, None, [])
    assert read_connections(journal_path(path)) == ("c1", None)
