import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.addresses import AddressError, read_addresses
from servers.seed import parse_seed
from tests.servers.wire import call, changes, content, definitions, exchange, made, refusal, rows

MODES = ["legacy", "2026-07-28"]
OUTBOX = "SELECT id, to_addresses, cc_addresses, bcc_addresses, subject, body FROM outbox ORDER BY id"


@pytest.mark.parametrize("mode", MODES)
def test_the_inbox_is_listed_oldest_first_without_bodies(tmp_path: Path, mode: str) -> None:
    listed = content(call(made(tmp_path, "mail"), "list_messages", {}, mode))
    assert isinstance(listed, dict)
    assert [message["id"] for message in listed["messages"]] == [1, 2, 3]
    assert listed["messages"][1] == {
        "id": 2,
        "from": "billing@papermill.example",
        "received_at": "2026-03-02T09:40:00Z",
        "subject": "Invoice 4471",
    }


def test_a_search_finds_what_was_received_and_what_was_sent(tmp_path: Path) -> None:
    path = made(tmp_path, "mail")
    call(path, "send_email", {"to": "billing@papermill.example", "subject": "Paid", "body": "INVOICE 4471 is paid."})
    assert content(call(path, "search_messages", {"text": "invoice 4471"})) == {
        "messages": [
            {
                "folder": "inbox",
                "id": 2,
                "from": "billing@papermill.example",
                "to": ["assistant@northwind-desk.example"],
                "subject": "Invoice 4471",
            },
            {"folder": "outbox", "id": 1, "from": "", "to": ["billing@papermill.example"], "subject": "Paid"},
        ]
    }
    assert content(call(path, "search_messages", {"text": "nothing of this"})) == {"messages": []}


@pytest.mark.parametrize("mode", MODES)
def test_a_message_is_read_whole_and_reading_changes_nothing(tmp_path: Path, mode: str) -> None:
    path = made(tmp_path, "mail")
    assert content(call(path, "read_message", {"message_id": 2}, mode)) == {
        "id": 2,
        "from": "billing@papermill.example",
        "to": ["assistant@northwind-desk.example"],
        "cc": ["accounts@northwind-desk.example"],
        "received_at": "2026-03-02T09:40:00Z",
        "subject": "Invoice 4471",
        "body": "The invoice for February is 312.50 and due on the 31st.",
    }
    assert changes(path) == []


@pytest.mark.parametrize("number", [0, 4, -1, 2**70])
def test_a_message_that_is_not_there_is_not_found(tmp_path: Path, number: int) -> None:
    assert refusal(call(made(tmp_path, "mail"), "read_message", {"message_id": number})) == "Message not found"


@pytest.mark.parametrize("mode", MODES)
def test_what_is_sent_stands_in_the_outbox_and_in_the_journal(tmp_path: Path, mode: str) -> None:
    path = made(tmp_path, "mail")
    message = {"to": ["a@x.example", "b@y.example"], "cc": "c@z.example", "subject": "é", "body": "one\ntwo"}
    assert content(call(path, "send_email", message, mode)) == {
        "id": 1,
        "sent": True,
        "to": ["a@x.example", "b@y.example"],
        "cc": ["c@z.example"],
        "bcc": [],
        "subject": "é",
    }
    assert rows(path, OUTBOX) == [(1, "a@x.example, b@y.example", "c@z.example", "", "é", "one\ntwo")]
    ((connection, request, table, row, op, before, after),) = changes(path)
    assert (connection, table, row, op, before) == ("wire-1", "outbox", 1, "insert", None)
    assert isinstance(json.loads(str(request)), int)
    assert isinstance(after, dict)
    assert after["to_addresses"] == "a@x.example, b@y.example"


def test_each_of_many_messages_names_its_own_call(tmp_path: Path) -> None:
    path = made(tmp_path, "mail")
    exchange(
        path,
        "wire-9",
        [(n, "send_email", {"to": f"p{n}@x.example", "subject": "s", "body": "b"}) for n in range(1, 6)],
    )
    assert [(row[1], row[6]["to_addresses"]) for row in changes(path) if isinstance(row[6], dict)] == [
        (str(n), f"p{n}@x.example") for n in range(1, 6)
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"to": []}, "to: give at least one address"),
        ({"to": 5}, "to: give a list of addresses, or one address as text"),
        ({"to": [5]}, "to: each address must be text"),
        ({"to": ["a@x.example, b@y.example"]}, "to: 'a@x.example, b@y.example' is no address"),
        ({"to": "a@x.example,b@y.example"}, "to: 'a@x.example,b@y.example' is no address"),
        ({"to": "A <a@x.example>"}, "to: 'A <a@x.example>' is no address"),
        ({"bcc": "a@x.example\nTo: b@y.example"}, "bcc: "),
        ({"cc": ["a@localhost"]}, "cc: "),
        ({"to": ["a@x.example"] * 51}, "to: at most 50 addresses are taken, not 51"),
        ({"subject": "a\r\nBcc: b@y.example"}, "subject must be one line"),
        ({"attachment": "x"}, "send_email takes no argument 'attachment'"),
    ],
)
def test_a_message_that_is_not_plain_is_refused_and_nothing_is_sent(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    path = made(tmp_path, "mail")
    message = {"to": ["a@x.example"], "subject": "s", "body": "b", **changed}
    assert refusal(call(path, "send_email", message)).startswith(said)
    assert rows(path, OUTBOX) == []
    assert changes(path) == []


def test_the_schema_of_recipients_takes_a_list_or_one_text(tmp_path: Path) -> None:
    (send,) = [tool for tool in definitions(made(tmp_path, "mail")) if tool.name == "send_email"]
    assert send.input_schema["properties"]["to"]["anyOf"] == [
        {"type": "array", "items": {"type": "string"}},
        {"type": "string"},
    ]
    assert send.input_schema["required"] == ["to", "subject", "body"]
    assert send.annotations is not None
    assert send.annotations.read_only_hint is False


def test_a_seed_replaces_the_inbox_and_may_fill_the_outbox(tmp_path: Path) -> None:
    seed = parse_seed({"outbox": [{"id": 4, "to_addresses": "a@x.example", "subject": "s", "body": "b"}]}, "s.yaml")
    path = made(tmp_path, "mail", seed)
    assert content(call(path, "list_messages", {})) == {"messages": []}
    call(path, "send_email", {"to": "b@y.example", "subject": "s", "body": "b"})
    assert [row[:2] for row in rows(path, OUTBOX)] == [(4, "a@x.example"), (5, "b@y.example")]


@settings(max_examples=150)
@given(st.text(max_size=30))
def test_what_is_taken_as_an_address_holds_one_at_sign_and_nothing_that_separates(text: str) -> None:
    try:
        (address,) = read_addresses(text)
    except AddressError:
        return
    assert address == text
    assert address.count("@") == 1
    assert not set(address) & set(' ,;:<>()[]"\\\r\n\t\0')


@pytest.mark.parametrize("text", ["a@x.example", "first.last+tag@sub.x-y.example", "o'neil@x.example", "1@2.ab"])
def test_plain_addresses_are_taken_as_they_are(text: str) -> None:
    assert read_addresses(text) == (text,)
    assert read_addresses([text, text]) == (text, text)


@pytest.mark.parametrize("text", ["", "a", "@x.example", "a@", "a@x", ".a@x.example", "a..b@x.example", "a@-x.example"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError, match="is no address"):
        read_addresses(text)
    with pytest.raises(AddressError, match="is no address"):
        read_addresses([f"{'l' * 65}@x.example"])
