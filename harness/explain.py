"""Who changed what: joins a server's journal to the recorded calls, and finds the changes that no call explains.

Refuses to know which changes are wanted. A change is explained when the journal's rows lead from the value before to
the value after without a break, and each of them names a recorded call that reached the server: of the same id, tool
and arguments, and no more executions of it than were recorded.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from harness.assertions.arguments import is_same_value
from harness.cells import is_near
from harness.diff import Change, Rows, diff, diff_rows, differing, keyed, row_key, row_keys, schema_changes
from harness.evidence import Dump, Evidence, JournalCall, JournalRow, Row, ServerState
from harness.outcomes import CUT, describe, is_blocked, listed
from harness.trace import ToolCall

CallKey = tuple[str | None, str, str | Decimal | None]
"""Connection, JSON type of the request id, and its value: 1 and "1" are two ids, 1 and 1.0 are one."""

_COUNT = re.compile("[1-9][0-9]{,17}")


@dataclass(frozen=True, slots=True)
class Step:
    """One journal row, and the recorded calls that it may come from (several when a client reused an id)."""

    row: JournalRow
    calls: tuple[ToolCall, ...]


@dataclass(slots=True)
class Explanation:
    """What is known of a server's changes. `problems` are sentences, each one change that no call explains.

    `steps` are the journal's, by (table, row key). `open_calls` are those that a server without a journal may have
    changed something for; None for a server with a journal.
    """

    problems: list[str] = field(default_factory=list)
    steps: dict[tuple[str, str], list[Step]] = field(default_factory=dict)
    open_calls: tuple[ToolCall, ...] | None = None

    def author(self, change: Change | None, column: str | None = None) -> str:
        """The call behind a change (of one column), in words that follow the change: `by …` or `by one of …`.

        None stands for a change of the schema, which no journal tells of.
        """
        if self.open_calls is not None:
            return _one_of(self.open_calls)
        if change is None:
            return _one_of(())
        made = [step for step in self.steps.get((change.table, change.key), []) if _made(step.row, change, column)]
        return _one_of(made[-1].calls if made and _ends_in(made[-1].row, change, column) else ())


def explained(evidence: Evidence, server: str) -> Explanation:
    """The explanation of all that changed in the database of a server of which there is state.

    What a target reports of its calls explains nothing that we did not see.
    """
    seen = evidence.recorded or evidence.trace.coverage.tool_calls == "wire"
    return explain(server, evidence.state[server], evidence.trace.tool_calls if seen else ())


def explain(server: str, state: ServerState, calls: Sequence[ToolCall]) -> Explanation:
    """The explanation of all that changed in one server's database; `calls` are the trial's, of every server."""
    own = [call for call in calls if call.mcp_server_id == server]
    told = Explanation()
    match state:
        case ServerState(before=None):
            # Nothing is known to have changed, and any call may have done it.
            told.open_calls = tuple(call for call in own if not is_blocked(call))
        case ServerState(before=Dump() as before, journal=None):
            _put_to_open_calls(server, state, before, own, told)
        case ServerState(before=Dump() as before, journal=tuple() as journal):
            _follow(server, state, before, journal, own, told)
    return told


def call_key(connection: str | None, request_id: str | None) -> CallKey | None:
    """What joins a journal row to a call. None where the id is missing, null or no JSON."""
    if request_id is not None and _COUNT.fullmatch(request_id):
        # Nearly all are, and a parser takes its time.
        return connection, "number", Decimal(request_id)
    try:
        value = None if request_id is None else json.loads(request_id, parse_int=Decimal, parse_float=Decimal)
    except ValueError:
        return None
    match value:
        case str():
            return connection, "string", value
        case Decimal():
            return connection, "number", value
        case _:
            return None


def _one_of(calls: Sequence[ToolCall]) -> str:
    match len(calls):
        case 0:
            return "by no recorded call"
        case 1:
            return f"by {describe(calls[0])}"
        case _:
            return f"by one of {listed([describe(call) for call in calls], limit=5)}"


def _put_to_open_calls(
    server: str, state: ServerState, before: Dump, own: Sequence[ToolCall], told: Explanation
) -> None:
    after, hide = state.after, state.hide
    told.open_calls = tuple(call for call in own if not is_blocked(call))
    if told.open_calls:
        return
    told.problems += _schema_problems(server, before, after)
    blocked = f"; only blocked calls are recorded: {listed([describe(call) for call in own])}" if own else ""
    told.problems += [
        f"{server}.{change.place}: {change.words()}, and no call was open{blocked}"
        for change in diff(before, after, hide)
    ]


def _made(row: JournalRow, change: Change, column: str | None) -> bool:
    """Whether a journal row may have done what the change did: made the row, took it away, or wrote the column."""
    match change.op:
        case "insert":
            return row.after is not None
        case "delete":
            return row.before is not None
        case "update":
            return column is None or column in differing(row.before, row.after)


def _ends_in(row: JournalRow, change: Change, column: str | None) -> bool:
    """Whether the journal row left what is there now; if not, somebody else wrote after it."""
    if column is None or change.after is None:
        return True
    return row.after is not None and (column not in row.after or is_near(row.after[column], change.after.get(column)))


def _schema_problems(server: str, before: Dump, after: Dump) -> list[str]:
    changes = schema_changes(before, after)
    return [f"{server}: the schema changed, and no recorded call explains it: {text}" for text in changes]


def _follow(
    server: str,
    state: ServerState,
    before: Dump,
    journal: Sequence[JournalRow],
    own: Sequence[ToolCall],
    told: Explanation,
) -> None:
    after = state.after
    told.problems += _schema_problems(server, before, after)
    index: dict[CallKey, list[ToolCall]] = {}
    for call in own:
        for request_id in (call.request_id, *call.rounds):
            key = call_key(call.connection, request_id)
            if key is not None:
                index.setdefault(key, []).append(call)
    keys = row_keys(before, after)
    replay = _Replay(server, keys, before, told, state.hide)
    executions = Executions()
    for row in journal:
        named = call_key(row.connection, row.request_id)
        found = index.get(named, []) if named is not None else []
        reached = [call for call in found if not is_blocked(call)]
        made = executions.calls_behind(row, reached)
        if not made:
            told.problems.append(_unknown(server, row, keys, reached or found, state))
        replay.take(Step(row, made))
    replay.end(after)


class Executions:
    """Which recorded calls the journal's executions may be; two that are alike are two calls."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str | None, str | None], list[JournalCall]] = {}

    def calls_behind(self, row: JournalRow, reached: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """The calls of `reached`, all of the row's id, that may be its execution; none where there are too few."""
        made = row.call
        if made is None:
            return ()
        fitting = tuple(call for call in reached if call.mcp_tool_name == made.tool and _has_arguments(call, made))
        seen = self._seen.setdefault((row.connection, row.request_id), [])
        if made not in seen:
            seen.append(made)
        alike = [other for other in seen if other.tool == made.tool and is_same_value(other.arguments, made.arguments)]
        return fitting if alike.index(made) < len(fitting) else ()


def _has_arguments(call: ToolCall, made: JournalCall) -> bool:
    # Of arguments that were cut nobody can tell; none and {} are the same to a tool.
    given = {} if call.arguments is None else call.arguments
    return not call.arguments_truncated and is_same_value(given, made.arguments)


class _Replay:
    """The database as the journal tells it, from the dump before: what differs on the way, somebody else did."""

    def __init__(
        self,
        server: str,
        keys: Mapping[str, tuple[str, ...]],
        before: Dump,
        told: Explanation,
        hide: Callable[[str], str],
    ) -> None:
        self._server = server
        self._keys = keys
        self._told = told
        self._rows = keyed(before, keys)
        self._hide = hide

    def take(self, step: Step) -> None:
        """One journal row: what it found must be what is there, and what it left is there from now on."""
        row = step.row
        source, target = self._place(row, row.before or row.after), self._place(row, row.after or row.before)
        there = self._rows.pop(source, None)
        expected: dict[tuple[str, str], tuple[int, Row]] = {}
        if there is not None:
            seen = there[1] if row.before is None else {name: there[1][name] for name in row.before if name in there[1]}
            expected[source] = (there[0], seen)
        if target != source and row.after is not None and target in self._rows:
            expected[target] = self._rows[target]
        found = {} if row.before is None else {source: (row.rowid, row.before)}
        self._tell(expected, found, f", before a change {_one_of(step.calls)}, and no recorded call explains it")
        for place in dict.fromkeys((source, target)):
            self._told.steps.setdefault(place, []).append(step)
        if row.after is not None:
            rest = there[1] if there is not None and row.before is not None else {}
            self._rows[target] = (row.rowid, {**rest, **row.after})

    def end(self, after: Dump) -> None:
        """What is there must be what the dump after holds."""
        self._tell(self._rows, keyed(after, self._keys), ", and no recorded call explains it")

    def _place(self, row: JournalRow, values: Row | None) -> tuple[str, str]:
        return row.table, row_key(self._keys.get(row.table, ()), row.rowid, values or {})

    def _tell(self, expected: Rows, found: Rows, tail: str) -> None:
        for change in diff_rows(expected, found, self._hide):
            if change.op != "update" or _is_past_rounding(change):
                self._told.problems.append(f"{self._server}.{change.place}: {change.words()}{tail}")


def _is_past_rounding(change: Change) -> bool:
    """Whether more differs than SQLite's way of writing a real as JSON makes of it."""
    before, after = change.before or {}, change.after or {}
    return any(
        name not in before or name not in after or not is_near(before[name], after[name]) for name in change.columns
    )


def _unknown(
    server: str,
    row: JournalRow,
    keys: Mapping[str, tuple[str, ...]],
    found: Sequence[ToolCall],
    state: ServerState,
) -> str:
    key = row_key(keys.get(row.table, ()), row.rowid, row.before or row.after or {})
    change = Change(row.table, row.rowid, key, row.before, row.after, state.hide)
    what = f"{server}.{change.place}: {change.words() or 'written without a change'}"
    if found and is_blocked(found[0]):
        return f"{what}, by a call that policy denied: {describe(found[0])}"
    request = f"request {row.request_id} of connection {row.connection}"
    if found and row.call is not None:
        given = state.hide(json.dumps(row.call.arguments))
        shown = given if len(given) <= CUT else given[: CUT - 1] + "…"
        calls = listed([describe(call) for call in found])
        return f"{what}, by an execution of {row.call.tool} {shown} as {request}, and recorded of that id is {calls}"
    return f"{what}, by {request}, and no recorded call of {server} has that id"
