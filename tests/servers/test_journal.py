import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mcp.types import JSONRPCResponse

from servers.database import init_database, journal_path, open_database, transaction
from servers.fixture import Fixture
from servers.journal import Journal
from servers.seed import Seed
from servers.ticketing import TICKETING
from tests.servers.wire import changes, exchange, made, rows

EMPTY = Seed("test", {})
PARTS = Fixture(
    name="parts",
    title="Parts",
    schema='CREATE TABLE "odd ""table\'" (id INTEGER PRIMARY KEY, "the value\'s" ANY, other INTEGER UNIQUE);',
    seed={},
    tools=(),
)
TABLE = '"odd ""table\'"'
NAME = "odd \"table'"


def first(**changed: object) -> dict[str, object]:
    whole = {
        "id": 1,
        "customer_id": "CUST-003",
        "status": "open",
        "tier": "unknown",
        "description": "Server is down!",
    }
    return {**whole, **changed}


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[tuple[sqlite3.Connection, Journal, Path]]:
    path = tmp_path / "parts.db"
    init_database(path, PARTS, EMPTY)
    with closing(open_database(path, PARTS)) as connection:
        yield connection, Journal(connection, "wire-7"), path


def test_each_kind_of_change_has_a_row_with_its_call_and_both_states(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    exchange(path, "wire-1", [(5, "create_ticket", {"customer_id": "CUST-001", "description": "é"})])
    exchange(path, "wire-2", [("five", "update_ticket", {"ticket_id": 1, "status": "escalated"})])
    exchange(path, None, [(0, "delete_ticket", {"ticket_id": 1})])
    created = {"id": 3, "customer_id": "CUST-001", "status": "open", "tier": "unknown", "description": "é"}
    assert changes(path) == [
        ("wire-1", "5", "tickets", 3, "insert", None, created),
        ("wire-2", '"five"', "tickets", 1, "update", first(), first(status="escalated")),
        (None, "0", "tickets", 1, "delete", first(status="escalated"), None),
    ]


def test_calls_open_at_once_each_own_their_changes_and_1_is_not_the_text_1(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    calls: list[tuple[int | str, str, dict[str, object]]] = []
    for number in range(1, 9):
        calls.append((number, "create_ticket", {"customer_id": f"int {number}", "description": "x"}))
        calls.append((str(number), "create_ticket", {"customer_id": f"text {number}", "description": "x"}))
    answers = exchange(path, "wire-1", calls)
    assert all(isinstance(answer, JSONRPCResponse) and not answer.result.get("isError") for answer in answers)
    made_by = {}
    for row in changes(path):
        after = row[6]
        assert isinstance(after, dict)
        made_by[row[1]] = after["customer_id"]
    assert made_by == {json.dumps(id_): arguments["customer_id"] for id_, _, arguments in calls}


def test_a_refused_call_and_one_that_changes_nothing_leave_no_row(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    exchange(
        path,
        "wire-1",
        [
            (1, "update_ticket", {"ticket_id": 1, "status": "wrong"}),
            (2, "update_ticket", {"ticket_id": 9, "status": "open"}),
            (3, "update_ticket", {"ticket_id": 1, "status": "open"}),
            (4, "delete_ticket", {"ticket_id": 9}),
            (5, "get_ticket", {"ticket_id": 1}),
        ],
    )
    assert changes(path) == []


def test_the_judged_database_gets_no_table_trigger_view_or_index(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    query = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    before = rows(path, query)
    exchange(path, "wire-1", [(1, "update_ticket", {"ticket_id": 1, "status": "closed"})])
    assert rows(path, query) == before
    assert [row[:2] for row in before] == [("table", "tickets")]


def test_a_change_outside_a_call_does_not_happen(tmp_path: Path) -> None:
    fixture = TICKETING
    path = made(tmp_path, "ticketing")
    with closing(open_database(path, fixture)) as connection:
        journal = Journal(connection, "wire-1")
        with pytest.raises(sqlite3.IntegrityError), transaction(connection, writes=True):
            connection.execute("DELETE FROM tickets")
        with (
            pytest.raises(sqlite3.IntegrityError),
            transaction(connection, writes=True),
            journal.call(None, "tool", {}),
        ):
            connection.execute("DELETE FROM tickets")
    assert rows(path, "SELECT count(*) FROM tickets") == [(2,)]
    assert changes(path) == []


def test_a_call_that_fails_half_way_leaves_neither_change_nor_row(
    parts: tuple[sqlite3.Connection, Journal, Path],
) -> None:
    connection, journal, path = parts

    def half_way() -> None:
        with transaction(connection, writes=True):
            connection.execute(f"INSERT INTO {TABLE} VALUES (1, 2, 3)")
            raise ZeroDivisionError

    with journal.call(1, "tool", {}), pytest.raises(ZeroDivisionError):
        half_way()
    assert rows(path, f"SELECT * FROM {TABLE}") == []
    assert changes(path) == []


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, None),
        ("no", "no"),
        ("a\0'\"\u2028\U0001f600", "a\0'\"\u2028\U0001f600"),
        (0, 0),
        (2**63 - 1, 2**63 - 1),
        (0.1 + 0.2, 0.1 + 0.2),
        (5e-324, 5e-324),
        (b"", {"$blob": ""}),
        (b"\xff\x00", {"$blob": "/wA="}),
    ],
)
def test_every_kind_of_value_is_written_exactly(
    parts: tuple[sqlite3.Connection, Journal, Path], value: object, written: object
) -> None:
    connection, journal, path = parts
    with transaction(connection, writes=True), journal.call("x", "tool", {}):
        connection.execute(f"INSERT INTO {TABLE} VALUES (1, ?, NULL)", (value,))
    ((*_, after),) = changes(path)
    assert after == {"id": 1, "the value's": written, "other": None}
    assert isinstance(after, dict)
    assert type(after["the value's"]) is type(written)


def test_a_value_that_json_does_not_have_fails_the_change(parts: tuple[sqlite3.Connection, Journal, Path]) -> None:
    connection, journal, path = parts
    with pytest.raises(sqlite3.Error), transaction(connection, writes=True), journal.call(1, "tool", {}):
        connection.execute(f"INSERT INTO {TABLE} VALUES (1, 9e999, NULL)")
    assert rows(path, f"SELECT * FROM {TABLE}") == []


def test_an_integer_that_becomes_the_same_real_is_a_change(parts: tuple[sqlite3.Connection, Journal, Path]) -> None:
    connection, journal, path = parts
    with transaction(connection, writes=True), journal.call(1, "tool", {}):
        connection.execute(f"INSERT INTO {TABLE} VALUES (1, '1', NULL)")
        connection.execute(f"UPDATE {TABLE} SET \"the value's\" = X'31'")
    assert [row[4] for row in changes(path)] == ["insert", "update"]


def test_a_row_that_moves_or_is_replaced_is_deleted_and_inserted(
    parts: tuple[sqlite3.Connection, Journal, Path],
) -> None:
    connection, journal, path = parts
    with transaction(connection, writes=True), journal.call(1, "tool", {}):
        connection.execute(f"INSERT INTO {TABLE} VALUES (1, 'a', 10)")
    with transaction(connection, writes=True), journal.call(2, "tool", {}):
        connection.execute(f"UPDATE {TABLE} SET id = 2")
    with transaction(connection, writes=True), journal.call(3, "tool", {}):
        connection.execute(f"REPLACE INTO {TABLE} VALUES (3, 'b', 10)")
    assert [row[1:5] for row in changes(path)] == [
        ("1", NAME, 1, "insert"),
        ("2", NAME, 1, "delete"),
        ("2", NAME, 2, "insert"),
        ("3", NAME, 2, "delete"),
        ("3", NAME, 3, "insert"),
    ]


def test_a_journal_that_cannot_be_written_undoes_the_call_and_says_so(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    with closing(sqlite3.connect(journal_path(path), isolation_level=None)) as other:
        other.execute("CREATE TRIGGER broken BEFORE INSERT ON changes BEGIN SELECT RAISE(ABORT, 'disk is gone'); END")
    (answer,) = exchange(path, "wire-1", [(1, "delete_ticket", {"ticket_id": 1})])
    assert isinstance(answer, JSONRPCResponse)
    assert answer.result["isError"] is True
    assert answer.result["content"][0]["text"] == "The database refused the call: disk is gone"
    assert rows(path, "SELECT count(*) FROM tickets") == [(2,)]


def test_each_start_of_a_server_is_noted_with_its_connection_or_without_one(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    exchange(path, "wire-1", [])
    exchange(path, "wire-1", [])
    exchange(path, None, [])
    assert rows(journal_path(path), "SELECT connection FROM connections") == [("wire-1",), ("wire-1",), (None,)]


def test_each_change_names_the_execution_that_made_it_with_its_tool_and_arguments(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    one: dict[str, object] = {"ticket_id": 1, "status": "on_hold"}
    exchange(path, "wire-1", [(7, "get_ticket", {"ticket_id": 1}), (7, "update_ticket", one)])
    exchange(path, "wire-1", [(7, "update_ticket", one), (7, "delete_ticket", {"ticket_id": 2})])
    told = (
        "SELECT calls.rowid, tool, arguments, op FROM changes JOIN calls ON calls.rowid = call ORDER BY changes.rowid"
    )
    assert [
        (number, tool, json.loads(str(given)), op) for number, tool, given, op in rows(journal_path(path), told)
    ] == [
        (1, "update_ticket", one, "update"),
        (3, "delete_ticket", {"ticket_id": 2}, "delete"),
    ]


def test_a_call_that_the_tool_refuses_leaves_no_execution(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    exchange(path, "wire-1", [(1, "delete_ticket", {"ticket_id": 99})])
    assert rows(journal_path(path), "SELECT * FROM calls") == []
