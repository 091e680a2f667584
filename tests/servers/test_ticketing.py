from pathlib import Path

import pytest

from tests.servers.wire import call, content, definitions, made, refusal, rows

FIRST = {
    "id": 1,
    "customer_id": "CUST-003",
    "status": "open",
    "tier": "unknown",
    "description": "Server is down!",
}
SECOND = {
    "id": 2,
    "customer_id": "CUST-004",
    "status": "open",
    "tier": "unknown",
    "description": "Service degraded",
}
ALL = "SELECT * FROM tickets ORDER BY id"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return made(tmp_path, "ticketing")


def test_the_seed_has_two_open_tickets_of_unknown_tier(path: Path) -> None:
    assert content(call(path, "get_ticket", {"ticket_id": 1})) == FIRST
    assert content(call(path, "get_ticket", {"ticket_id": 2})) == SECOND
    assert len(rows(path, ALL)) == 2


def test_a_ticket_is_created_open_and_of_unknown_tier_unless_told(path: Path) -> None:
    plain = content(call(path, "create_ticket", {"customer_id": "CUST-001", "description": "Slow"}))
    assert plain == {
        "id": 3,
        "customer_id": "CUST-001",
        "status": "open",
        "tier": "unknown",
        "description": "Slow",
    }
    told = {"customer_id": "NOBODY", "description": "", "status": "on_hold", "tier": "premium"}
    assert content(call(path, "create_ticket", told)) == {"id": 4, **told}
    assert rows(path, ALL)[2:] == [
        (3, "CUST-001", "open", "unknown", "Slow"),
        (4, "NOBODY", "on_hold", "premium", ""),
    ]


def test_a_search_gives_all_tickets_of_one_customer_oldest_first(path: Path) -> None:
    call(path, "create_ticket", {"customer_id": "CUST-003", "description": "Again"})
    found = content(call(path, "search_tickets", {"customer_id": "CUST-003"}))
    again = {**FIRST, "id": 3, "description": "Again"}
    assert found == {"tickets": [FIRST, again]}
    assert content(call(path, "search_tickets", {"customer_id": "CUST-999"})) == {"tickets": []}


@pytest.mark.parametrize("status", ["open", "closed", "escalated", "on_hold"])
def test_an_update_changes_only_what_is_given(path: Path, status: str) -> None:
    assert content(call(path, "update_ticket", {"ticket_id": 1, "status": status})) == {**FIRST, "status": status}
    assert rows(path, ALL) == [
        (1, "CUST-003", status, "unknown", "Server is down!"),
        (2, "CUST-004", "open", "unknown", "Service degraded"),
    ]


@pytest.mark.parametrize("tier", ["standard", "premium", "enterprise"])
def test_an_update_sets_the_tier(path: Path, tier: str) -> None:
    assert content(call(path, "update_ticket", {"ticket_id": 2, "tier": tier})) == {**SECOND, "tier": tier}


@pytest.mark.parametrize("description", ["", "New", "a\0b", "é\u2028\U0001f600", "x" * 100_000])
def test_a_description_replaces_the_old_one(path: Path, description: str) -> None:
    updated = content(call(path, "update_ticket", {"ticket_id": 2, "description": description}))
    assert updated == {**SECOND, "description": description}
    assert rows(path, "SELECT description FROM tickets WHERE id = 2") == [(description,)]


def test_an_id_with_a_zero_fraction_is_the_integer(path: Path) -> None:
    assert content(call(path, "get_ticket", {"ticket_id": 1.0})) == FIRST


def test_a_deleted_ticket_is_gone_and_its_id_does_not_come_back(path: Path) -> None:
    assert content(call(path, "delete_ticket", {"ticket_id": 2})) == {"id": 2, "deleted": True}
    assert refusal(call(path, "get_ticket", {"ticket_id": 2})) == "Ticket not found"
    assert refusal(call(path, "delete_ticket", {"ticket_id": 2})) == "Ticket not found"
    new = content(call(path, "create_ticket", {"customer_id": "CUST-004", "description": "Service degraded"}))
    assert new == {**SECOND, "id": 3}


@pytest.mark.parametrize("ticket", [0, 3, -1, 2**63, -(2**63) - 1, 10**30, 1e300])
@pytest.mark.parametrize("tool", ["get_ticket", "update_ticket", "delete_ticket"])
def test_an_unknown_ticket_is_an_error_and_changes_nothing(path: Path, tool: str, ticket: float) -> None:
    before = rows(path, ALL)
    more = {"status": "closed"} if tool == "update_ticket" else {}
    assert refusal(call(path, tool, {"ticket_id": ticket, **more})) == "Ticket not found"
    assert rows(path, ALL) == before


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("update_ticket", {"ticket_id": 1}, "Nothing to update: give status, tier or description"),
        ("update_ticket", {}, "update_ticket needs the argument ticket_id"),
        ("update_ticket", {"ticket_id": 1, "status": "Open"}, "status must be one of open, closed, escalated, on_hold"),
        ("update_ticket", {"ticket_id": 1, "status": ""}, "status must be one of open, closed, escalated, on_hold"),
        ("update_ticket", {"ticket_id": 1, "status": None}, "status must be text"),
        ("update_ticket", {"ticket_id": 1, "tier": "unknown"}, "tier must be one of standard, premium, enterprise"),
        ("update_ticket", {"ticket_id": 1, "tier": 1}, "tier must be text"),
        ("update_ticket", {"ticket_id": 1, "description": {}}, "description must be text"),
        (
            "update_ticket",
            {"ticket_id": 1, "customer_id": "CUST-001"},
            "update_ticket takes no argument 'customer_id'; it takes description, status, ticket_id, tier",
        ),
        ("get_ticket", {"ticket_id": "1"}, "ticket_id must be an integer"),
        ("get_ticket", {"ticket_id": True}, "ticket_id must be an integer"),
        ("get_ticket", {"ticket_id": 1.5}, "ticket_id must be an integer"),
        ("get_ticket", {"ticket_id": None}, "ticket_id must be an integer"),
        ("get_ticket", {"ticket_id": [1]}, "ticket_id must be an integer"),
        ("delete_ticket", {"ticket_id": True}, "ticket_id must be an integer"),
        ("delete_ticket", {"id": 1}, "delete_ticket takes no argument 'id'; it takes ticket_id"),
        ("search_tickets", {"customer_id": 3}, "customer_id must be text"),
        ("create_ticket", {"customer_id": "CUST-001"}, "create_ticket needs the argument description"),
        (
            "create_ticket",
            {"customer_id": "CUST-001", "description": "x", "tier": "unknown"},
            "tier must be one of standard, premium, enterprise",
        ),
        (
            "create_ticket",
            {"customer_id": "CUST-001", "description": "x", "status": "new"},
            "status must be one of open, closed, escalated, on_hold",
        ),
        (
            "create_ticket",
            {"customer_id": "CUST-001", "description": "x", "status": "Open\n"},
            "status must be one of open, closed, escalated, on_hold",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_a_sentence_and_change_nothing(
    path: Path, tool: str, arguments: dict[str, object], sentence: str, mode: str
) -> None:
    before = rows(path, ALL)
    assert refusal(call(path, tool, arguments, mode)) == sentence
    assert rows(path, ALL) == before


def test_half_a_surrogate_pair_is_refused_with_a_sentence(path: Path) -> None:
    # Over the wire the SDK refuses it before; in process nothing else stands before the database.
    arguments = {"ticket_id": 1, "description": "\ud800"}
    assert refusal(call(path, "update_ticket", arguments, "2026-07-28")).startswith("description must be text in")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_definitions_are_closed_carry_the_enums_and_never_change(path: Path, mode: str) -> None:
    tools = definitions(path, mode)
    assert [tool.name for tool in tools] == [
        "create_ticket",
        "get_ticket",
        "search_tickets",
        "update_ticket",
        "delete_ticket",
    ]
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
    assert all(tool.output_schema and tool.output_schema["type"] == "object" for tool in tools)
    for tool in (tools[0], tools[3]):
        assert tool.input_schema["properties"]["status"]["enum"] == ["open", "closed", "escalated", "on_hold"]
        assert tool.input_schema["properties"]["tier"]["enum"] == ["standard", "premium", "enterprise"]
    assert tools[0].input_schema["required"] == ["customer_id", "description"]
    assert definitions(path, mode) == tools
