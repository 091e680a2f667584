from pathlib import Path

import pytest
from mcp.types import JSONRPCError

from tests.servers.wire import call, changes, content, definitions, exchange, made, refusal


@pytest.mark.parametrize(
    ("customer", "profile"),
    [
        ("CUST-001", {"name": "Alice Smith", "tier": "premium", "status": "active", "credit_hold": False}),
        ("CUST-002", {"name": "Bob Jones", "tier": "standard", "status": "inactive", "credit_hold": False}),
        ("CUST-003", {"name": "Charlie Brown", "tier": "enterprise", "status": "active", "credit_hold": False}),
        ("CUST-004", {"name": "Diana Prince", "tier": "enterprise", "status": "active", "credit_hold": True}),
    ],
)
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_seeded_customer_is_found_with_name_tier_status_and_hold(
    tmp_path: Path, customer: str, profile: dict[str, object], mode: str
) -> None:
    assert content(call(made(tmp_path, "crm"), "get_customer_profile", {"customer_id": customer}, mode)) == profile


@pytest.mark.parametrize("customer", ["CUST-999", "", "cust-001", "CUST-001 ", "' OR 1=1 --", "CUST-001\0"])
def test_an_unknown_id_is_an_error_that_says_customer_not_found(tmp_path: Path, customer: str) -> None:
    assert refusal(call(made(tmp_path, "crm"), "get_customer_profile", {"customer_id": customer})) == (
        "Customer not found"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "get_customer_profile needs the argument customer_id"),
        ({"customer_id": 1}, "customer_id must be text"),
        ({"customer_id": None}, "customer_id must be text"),
        ({"customer_id": ["CUST-001"]}, "customer_id must be text"),
        ({"customer_id": "CUST-001", "x": 1}, "get_customer_profile takes no argument 'x'; it takes customer_id"),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_with_a_sentence(
    tmp_path: Path, arguments: dict[str, object], sentence: str
) -> None:
    assert refusal(call(made(tmp_path, "crm"), "get_customer_profile", arguments)) == sentence


def test_an_unknown_tool_is_a_protocol_error(tmp_path: Path) -> None:
    (answer,) = exchange(made(tmp_path, "crm"), "wire-1", [(1, "drop_tables", {})])
    assert isinstance(answer, JSONRPCError)
    assert (answer.error.code, answer.error.message) == (-32602, "Unknown tool: drop_tables")


def test_a_look_up_leaves_no_journal_row(tmp_path: Path) -> None:
    path = made(tmp_path, "crm")
    call(path, "get_customer_profile", {"customer_id": "CUST-001"})
    assert changes(path) == []


def test_the_definition_is_closed_and_says_it_only_reads(tmp_path: Path) -> None:
    (tool,) = definitions(made(tmp_path, "crm"))
    assert tool.name == "get_customer_profile"
    assert tool.input_schema["required"] == ["customer_id"]
    assert tool.input_schema["additionalProperties"] is False
    assert tool.annotations is not None
    assert tool.annotations.read_only_hint is True
