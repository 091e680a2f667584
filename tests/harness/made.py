"""Made-up evidence for tests of the judge."""

from collections.abc import Mapping, Sequence

from harness.evidence import Dump, Evidence, JournalCall, JournalRow, Row, ServerState
from harness.trace import Coverage, Event, Outcome, ToolCall, Trace
from proxy.spans import JSON

WIRE = Coverage("wire", "wire", "wire", "wire", "wire")
REPORTED = Coverage("reported", "reported", "reported", "reported", "none")


def call(
    name: str = "mcp/ticketing/update_ticket",
    arguments: JSON = None,
    outcome: Outcome | None = "ok",
    *,
    seq: int = 1,
    request_id: str | None = "1",
    connection: str | None = "c1",
) -> ToolCall:
    """A call that crossed the wire, by its canonical name."""
    _, server, tool = name.split("/", 2)
    return ToolCall(
        name,
        arguments,
        mcp_server_id=server,
        mcp_tool_name=tool,
        seq=seq,
        outcome=outcome,
        connection=connection,
        request_id=request_id,
    )


def reported(name: str | None, *names: str, arguments: JSON = None, server: str | None = None) -> ToolCall:
    """A call as a trace from elsewhere tells it."""
    return ToolCall(name, arguments, mcp_server_id=server, names=names)


def wire(
    *calls: ToolCall,
    events: Sequence[Event] = (),
    servers: tuple[str, ...] = ("ticketing",),
    initialised: Sequence[str] | None = None,
    completed: bool = True,
    gaps: tuple[str, ...] = (),
    expected: Mapping[str, JSON] | None = None,
    state: Mapping[str, ServerState] | None = None,
    coverage: Coverage = WIRE,
) -> Evidence:
    """What a run over the wire leaves."""
    return Evidence(
        Trace(coverage, tool_calls=calls, events=tuple(events), gaps=gaps),
        completed,
        servers,
        frozenset(servers if initialised is None else initialised),
        expected=expected or {},
        state=state or {},
    )


def recorded(
    *calls: ToolCall,
    events: Sequence[Event] = (),
    expected: Mapping[str, JSON] | None = None,
    coverage: Coverage = REPORTED,
) -> Evidence:
    """What a trace from elsewhere holds."""
    trace = Trace(coverage, tool_calls=calls, events=tuple(events))
    return Evidence(trace, completed=True, recorded=True, expected=expected or {})


SCHEMA = "CREATE TABLE tickets(id integer primary key, customer_id text, status text, description text)"


def ticket(number: int, status: str = "open", description: str = "down", customer: str = "CUST-004") -> Row:
    """A row of the tickets table."""
    return {"id": number, "customer_id": customer, "status": status, "description": description}


def dump(*rows: Row, schema: str = SCHEMA) -> Dump:
    """A database of tickets."""
    return Dump((schema,), {"tickets": {_number(row): row for row in rows}})


def change(
    before: Row | None,
    after: Row | None,
    request_id: str | None = "1",
    connection: str | None = "c1",
    *,
    tool: str = "update_ticket",
    arguments: JSON = None,
    number: int = 1,
) -> JournalRow:
    """A journal row of the tickets table; by default of an execution of what `call` gives by default."""
    op = "insert" if before is None else "delete" if after is None else "update"
    made = JournalCall(number, tool, {} if arguments is None else arguments)
    return JournalRow(connection, request_id, "tickets", _number(before or after or {}), op, before, after, made)


def _number(row: Row) -> int:
    number = row["id"]
    assert isinstance(number, int)
    return number
