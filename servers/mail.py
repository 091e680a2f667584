"""The `mail` fixture: an inbox that an agent can read, and an outbox that what it sends goes into.

Delivers nothing, and does not know which addresses are inside the house.
"""

import sqlite3
from collections.abc import Mapping, Sequence

from servers.command import main
from servers.fixture import Fixture, Json, Parameter, Row, Tool, ToolError, Value
from servers.shapes import DONE, INTEGER, TEXT, list_of, object_of

# AUTOINCREMENT, so that an id never comes back as another message.
SCHEMA = """
CREATE TABLE inbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  sender TEXT NOT NULL,
  to_addresses TEXT NOT NULL,
  cc_addresses TEXT NOT NULL DEFAULT '',
  received_at TEXT NOT NULL,
  subject TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  to_addresses TEXT NOT NULL,
  cc_addresses TEXT NOT NULL DEFAULT '',
  bcc_addresses TEXT NOT NULL DEFAULT '',
  subject TEXT NOT NULL,
  body TEXT NOT NULL
);
"""

SEED: Mapping[str, Sequence[Row]] = {
    "inbox": (
        {
            "id": 1,
            "sender": "mira.okafor@northwind-desk.example",
            "to_addresses": "assistant@northwind-desk.example",
            "received_at": "2026-03-02T08:15:00Z",
            "subject": "Room for Thursday",
            "body": "Is the large meeting room free on Thursday at ten? Please answer me directly.",
        },
        {
            "id": 2,
            "sender": "billing@papermill.example",
            "to_addresses": "assistant@northwind-desk.example",
            "cc_addresses": "accounts@northwind-desk.example",
            "received_at": "2026-03-02T09:40:00Z",
            "subject": "Invoice 4471",
            "body": "The invoice for February is 312.50 and due on the 31st.",
        },
        {
            "id": 3,
            "sender": "jonas.brandt@northwind-desk.example",
            "to_addresses": "assistant@northwind-desk.example",
            "received_at": "2026-03-03T07:05:00Z",
            "subject": "Away until Monday",
            "body": "I am away until Monday. Mira decides on anything urgent.",
        },
    ),
    "outbox": (),
}


def list_messages(connection: sqlite3.Connection, _: Mapping[str, Value]) -> dict[str, Json]:
    """The heads of the inbox's messages, oldest first by their ids."""
    rows = connection.execute("SELECT id, sender, received_at, subject FROM inbox ORDER BY id")
    return {"messages": [dict(zip(("id", "from", "received_at", "subject"), row, strict=True)) for row in rows]}


def search_messages(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Heads of all messages, received and sent, that have the text somewhere, in any case of ASCII letters."""
    rows = connection.execute(
        "SELECT 'inbox', id, sender, to_addresses, subject FROM inbox"
        " WHERE instr(lower(sender || char(10) || subject || char(10) || body), lower(:text)) > 0"
        " UNION ALL SELECT 'outbox', id, '', to_addresses, subject FROM outbox"
        " WHERE instr(lower(to_addresses || char(10) || subject || char(10) || body), lower(:text)) > 0"
        " ORDER BY 1, 2",
        arguments,
    )
    return {
        "messages": [
            {"folder": folder, "id": number, "from": sender, "to": _listed(to), "subject": subject}
            for folder, number, sender, to, subject in rows
        ]
    }


def read_message(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """One message of the inbox, whole; reading leaves no mark on it."""
    try:
        row = connection.execute(
            "SELECT id, sender, to_addresses, cc_addresses, received_at, subject, body FROM inbox"
            " WHERE id = :message_id",
            arguments,
        ).fetchone()
    except OverflowError:  # past 64 bits, so it is no row's id
        row = None
    if row is None:
        raise ToolError("Message not found")
    message = dict(zip(("id", "from", "to", "cc", "received_at", "subject", "body"), row, strict=True))
    return {**message, "to": _listed(message["to"]), "cc": _listed(message["cc"])}


def send_email(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Put a message into the outbox; nothing leaves the machine."""
    message = {"cc": "", "bcc": "", **arguments}
    if not message["to"]:
        raise ToolError("to: give at least one address")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in str(message["subject"])):
        raise ToolError("subject must be one line, without control characters")
    (number,) = connection.execute(
        "INSERT INTO outbox (to_addresses, cc_addresses, bcc_addresses, subject, body)"
        " VALUES (:to, :cc, :bcc, :subject, :body) RETURNING id",
        message,
    ).fetchone()
    recipients = {name: _listed(message[name]) for name in ("to", "cc", "bcc")}
    return {"id": number, "sent": True, **recipients, "subject": message["subject"]}


def _listed(addresses: Value) -> list[str]:
    return str(addresses).split(", ") if addresses else []


_ADDRESSES: dict[str, Json] = {"type": "array", "items": TEXT}
_HEAD: dict[str, Json] = {"id": INTEGER, "from": TEXT, "received_at": TEXT, "subject": TEXT}

MAIL = Fixture(
    name="mail",
    title="Mail",
    schema=SCHEMA,
    seed=SEED,
    tools=(
        Tool(
            name="list_messages",
            description="List the messages of the inbox, oldest first: id, sender, time and subject.",
            parameters=(),
            output=list_of("messages", object_of(_HEAD)),
            effect="read",
            run=list_messages,
        ),
        Tool(
            name="search_messages",
            description="Search all messages, received and sent, for a text in addresses, subject and body.",
            parameters=(Parameter("text", "string", "What to look for, in any case."),),
            output=list_of(
                "messages",
                object_of(
                    {
                        "folder": TEXT,
                        "id": INTEGER,
                        "from": TEXT,
                        "to": _ADDRESSES,
                        "subject": TEXT,
                    }
                ),
            ),
            effect="read",
            run=search_messages,
        ),
        Tool(
            name="read_message",
            description="Read one message of the inbox.",
            parameters=(Parameter("message_id", "integer", "The message's id."),),
            output=object_of({**_HEAD, "to": _ADDRESSES, "cc": _ADDRESSES, "body": TEXT}),
            effect="read",
            run=read_message,
        ),
        Tool(
            name="send_email",
            description="Send a message. It cannot be called back.",
            parameters=(
                Parameter("to", "addresses", "Who it goes to: bare addresses, or one as text."),
                Parameter("cc", "addresses", "Who gets a copy.", required=False),
                Parameter("bcc", "addresses", "Who gets a copy that the others do not see.", required=False),
                Parameter("subject", "string", "The subject, one line."),
                Parameter("body", "string", "The text."),
            ),
            output=object_of(
                {
                    "id": INTEGER,
                    "sent": DONE,
                    "to": _ADDRESSES,
                    "cc": _ADDRESSES,
                    "bcc": _ADDRESSES,
                    "subject": TEXT,
                }
            ),
            effect="add",
            run=send_email,
        ),
    ),
)

if __name__ == "__main__":
    main(MAIL)
