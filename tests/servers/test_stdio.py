"""Real server processes, spoken to by the SDK's own client."""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.servers.wire import changes, content, made, refusal, rows

MODES = ["legacy", "2026-07-28"]


def parameters(path: Path, connection: str | None) -> StdioServerParameters:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WIRETRAP_")}
    if connection is not None:
        environment["WIRETRAP_CONNECTION"] = connection
    return StdioServerParameters(
        command=sys.executable, args=["-P", "-m", f"servers.{path.stem}", "--db", str(path)], env=environment
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_whole_task_over_stdio_leaves_state_and_journal(tmp_path: Path, mode: str) -> None:
    crm, ticketing = made(tmp_path, "crm"), made(tmp_path, "ticketing")

    async def run() -> None:
        async with (
            Client(parameters(crm, "wire-crm"), mode=mode) as customers,
            Client(parameters(ticketing, "wire-tickets"), mode=mode) as tickets,
        ):
            profile = content(await customers.call_tool("get_customer_profile", {"customer_id": "CUST-003"}))
            assert isinstance(profile, dict)
            found = content(await tickets.call_tool("search_tickets", {"customer_id": "CUST-003"}))
            assert isinstance(found, dict)
            (ticket,) = found["tickets"]
            change = {"ticket_id": ticket["id"], "tier": profile["tier"], "status": "escalated"}
            assert content(await tickets.call_tool("update_ticket", change)) == {
                **ticket,
                "tier": "enterprise",
                "status": "escalated",
            }
            assert refusal(await tickets.call_tool("get_ticket", {"ticket_id": "1"})) == "ticket_id must be an integer"
            assert refusal(await customers.call_tool("get_customer_profile", {"customer_id": "?"})) == (
                "Customer not found"
            )

    anyio.run(run)
    # before a reader comes: one that may not write leaves the files of the write-ahead log behind
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "crm.db",
        "crm.db.journal.db",
        "ticketing.db",
        "ticketing.db.journal.db",
    ]
    assert rows(ticketing, "SELECT status, tier FROM tickets ORDER BY id") == [
        ("escalated", "enterprise"),
        ("open", "unknown"),
    ]
    ((connection, request, table, row, op, before, after),) = changes(ticketing)
    assert (connection, table, row, op) == ("wire-tickets", "tickets", 1, "update")
    assert isinstance(json.loads(str(request)), int)
    assert isinstance(before, dict)
    assert after == {**before, "status": "escalated", "tier": "enterprise"}
    assert changes(crm) == []


def test_processes_that_write_one_database_at_once_all_succeed_and_each_owns_its_changes(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    processes, calls = 3, 15

    async def writer(number: int, started: list[anyio.Event]) -> None:
        async with Client(parameters(path, f"wire-{number}"), mode=MODES[number % 2]) as client:
            started[number].set()
            for event in started:
                await event.wait()

            async def create(call: int) -> None:
                ticket = {"customer_id": f"{number}", "description": f"{call}"}
                content(await client.call_tool("create_ticket", ticket))
                change = {"ticket_id": 1, "description": f"{number}/{call}"}
                content(await client.call_tool("update_ticket", change))

            async with anyio.create_task_group() as tasks:
                for call in range(calls):
                    tasks.start_soon(create, call)

    async def run() -> None:
        started = [anyio.Event() for _ in range(processes)]
        async with anyio.create_task_group() as tasks:
            for number in range(processes):
                tasks.start_soon(writer, number, started)

    anyio.run(run)
    created = rows(path, "SELECT id, customer_id, description FROM tickets WHERE id > 2 ORDER BY id")
    assert {row[1:] for row in created} == {(f"{n}", f"{c}") for n in range(processes) for c in range(calls)}
    journal = changes(path)
    inserts = {(row[3], row[0]) for row in journal if row[4] == "insert"}
    assert inserts == {(id_, f"wire-{customer}") for id_, customer, _ in created}
    # The updates of ticket 1 form one chain: each starts from what the one before it left, whoever made it.
    updates = [row for row in journal if row[4] == "update"]
    assert len(updates) == processes * calls
    assert len({row[:2] for row in updates}) == len(updates)
    for earlier, later in pairwise(updates):
        assert later[5] == earlier[6]
    (last,) = rows(path, "SELECT description FROM tickets WHERE id = 1")
    assert isinstance(updates[-1][6], dict)
    assert last == (updates[-1][6]["description"],)


def test_a_server_without_a_wire_connection_works_and_its_changes_name_none(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")

    async def run() -> None:
        async with Client(parameters(path, None)) as client:
            content(await client.call_tool("delete_ticket", {"ticket_id": 2}))

    anyio.run(run)
    assert [row[0] for row in changes(path)] == [None]
