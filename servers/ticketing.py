"""The `ticketing` fixture: tickets that an agent can open, read, change and delete.

Does not know the customers: a ticket may name any customer id, since customers live in another system.
"""

import sqlite3
from collections.abc import Mapping, Sequence

from servers.command import main
from servers.fixture import Fixture, Json, Parameter, Row, Tool, ToolError, Value
from servers.shapes import DONE, INTEGER, TEXT, list_of, object_of

STATUSES = ("open", "closed", "escalated", "on_hold")
TIERS = ("standard", "premium", "enterprise")

# AUTOINCREMENT, so that the id of a deleted ticket never comes back as another ticket.
SCHEMA = """
CREATE TABLE tickets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  customer_id TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'open'
    CONSTRAINT status CHECK (status IN ('open', 'closed', 'escalated', 'on_hold')),
  tier TEXT NOT NULL DEFAULT 'unknown'
    CONSTRAINT tier CHECK (tier IN ('standard', 'premium', 'enterprise', 'unknown')),
  description TEXT NOT NULL
);
"""

SEED: Mapping[str, Sequence[Row]] = {
    "tickets": (
        {"id": 1, "customer_id": "CUST-003", "status": "open", "tier": "unknown", "description": "Server is down!"},
        {"id": 2, "customer_id": "CUST-004", "status": "open", "tier": "unknown", "description": "Service degraded"},
    )
}

TICKET = object_of(
    {
        "id": INTEGER,
        "customer_id": TEXT,
        "status": {**TEXT, "enum": list(STATUSES)},
        "tier": {**TEXT, "enum": [*TIERS, "unknown"]},
        "description": TEXT,
    }
)
COLUMNS = ("id", "customer_id", "status", "tier", "description")


def create_ticket(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Open a ticket and give it whole, with its new id."""
    row = connection.execute(
        "INSERT INTO tickets (customer_id, status, tier, description)"
        " VALUES (:customer_id, :status, :tier, :description) RETURNING id, customer_id, status, tier, description",
        {"status": "open", "tier": "unknown", **arguments},
    ).fetchone()
    return dict(zip(COLUMNS, row, strict=True))


def get_ticket(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """One ticket by its id."""
    try:
        row = connection.execute(
            "SELECT id, customer_id, status, tier, description FROM tickets WHERE id = :ticket_id", arguments
        ).fetchone()
    except OverflowError:  # past 64 bits, so it is no row's id
        row = None
    if row is None:
        raise ToolError("Ticket not found")
    return dict(zip(COLUMNS, row, strict=True))


def search_tickets(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """A customer's tickets, oldest first; none is an empty list."""
    rows = connection.execute(
        "SELECT id, customer_id, status, tier, description FROM tickets WHERE customer_id = :customer_id ORDER BY id",
        arguments,
    )
    return {"tickets": [dict(zip(COLUMNS, row, strict=True)) for row in rows]}


def update_ticket(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Replace the given fields of a ticket and give it whole."""
    if arguments.keys() == {"ticket_id"}:
        raise ToolError("Nothing to update: give status, tier or description")
    get_ticket(connection, arguments)
    connection.execute(
        "UPDATE tickets SET status = coalesce(:status, status), tier = coalesce(:tier, tier),"
        " description = coalesce(:description, description) WHERE id = :ticket_id",
        {"status": None, "tier": None, "description": None, **arguments},
    )
    return get_ticket(connection, arguments)


def delete_ticket(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Delete a ticket; its id is not used again."""
    ticket = get_ticket(connection, arguments)
    connection.execute("DELETE FROM tickets WHERE id = :ticket_id", arguments)
    return {"id": ticket["id"], "deleted": True}


CUSTOMER_ID = Parameter("customer_id", "string", "The customer's id, such as CUST-001.")
TICKET_ID = Parameter("ticket_id", "integer", "The ticket's id.")
OPTIONAL_TIER = Parameter("tier", "string", "The customer's tier.", required=False, choices=TIERS)

TICKETING = Fixture(
    name="ticketing",
    title="Tickets",
    schema=SCHEMA,
    seed=SEED,
    tools=(
        Tool(
            name="create_ticket",
            description="Open a ticket for a customer.",
            parameters=(
                CUSTOMER_ID,
                Parameter("description", "string", "What the ticket is about."),
                Parameter("status", "string", "The ticket's status.", required=False, choices=STATUSES, default="open"),
                OPTIONAL_TIER,
            ),
            output=TICKET,
            effect="add",
            run=create_ticket,
        ),
        Tool(
            name="get_ticket",
            description="Read one ticket.",
            parameters=(TICKET_ID,),
            output=TICKET,
            effect="read",
            run=get_ticket,
        ),
        Tool(
            name="search_tickets",
            description="List all tickets of a customer, oldest first.",
            parameters=(CUSTOMER_ID,),
            output=list_of("tickets", TICKET),
            effect="read",
            run=search_tickets,
        ),
        Tool(
            name="update_ticket",
            description=(
                "Change a ticket's status, tier or description; what is not given stays."
                " A description replaces the old one."
            ),
            parameters=(
                TICKET_ID,
                Parameter("status", "string", "The new status.", required=False, choices=STATUSES),
                OPTIONAL_TIER,
                Parameter("description", "string", "The whole new description.", required=False),
            ),
            output=TICKET,
            effect="change",
            run=update_ticket,
        ),
        Tool(
            name="delete_ticket",
            description="Delete a ticket for good.",
            parameters=(TICKET_ID,),
            output=object_of({"id": INTEGER, "deleted": DONE}),
            effect="remove",
            run=delete_ticket,
        ),
    ),
)

if __name__ == "__main__":
    main(TICKETING)
