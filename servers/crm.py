"""The `crm` fixture: customers that an agent can look up. Knows no tickets, and no tool of it writes."""

import sqlite3
from collections.abc import Mapping, Sequence

from servers.command import main
from servers.fixture import Fixture, Json, Parameter, Row, Tool, ToolError, Value
from servers.shapes import BOOLEAN, TEXT, object_of

SCHEMA = """
CREATE TABLE customers (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  tier TEXT NOT NULL,
  status TEXT NOT NULL,
  credit_hold BOOLEAN NOT NULL DEFAULT 0 CONSTRAINT credit_hold CHECK (credit_hold IN (0, 1))
);
"""

SEED: Mapping[str, Sequence[Row]] = {
    "customers": (
        {"id": "CUST-001", "name": "Alice Smith", "tier": "premium", "status": "active", "credit_hold": False},
        {"id": "CUST-002", "name": "Bob Jones", "tier": "standard", "status": "inactive", "credit_hold": False},
        {"id": "CUST-003", "name": "Charlie Brown", "tier": "enterprise", "status": "active", "credit_hold": False},
        {"id": "CUST-004", "name": "Diana Prince", "tier": "enterprise", "status": "active", "credit_hold": True},
    )
}


def get_customer_profile(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Name, tier, status and credit hold of one customer; the id is matched exactly."""
    row = connection.execute(
        "SELECT name, tier, status, credit_hold FROM customers WHERE id = :customer_id", arguments
    ).fetchone()
    if row is None:
        raise ToolError("Customer not found")
    name, tier, status, credit_hold = row
    return {"name": name, "tier": tier, "status": status, "credit_hold": bool(credit_hold)}


CRM = Fixture(
    name="crm",
    title="Customers",
    schema=SCHEMA,
    seed=SEED,
    tools=(
        Tool(
            name="get_customer_profile",
            description="Look up a customer: name, tier, status, and whether there is a credit hold.",
            parameters=(Parameter("customer_id", "string", "The customer's id, such as CUST-001."),),
            output=object_of({"name": TEXT, "tier": TEXT, "status": TEXT, "credit_hold": BOOLEAN}),
            effect="read",
            run=get_customer_profile,
        ),
    ),
)

if __name__ == "__main__":
    main(CRM)
