"""Writes down which call changed which row, in a file beside the judged database (verdicts.md section 2).

TEMP triggers of our own connection write into the attached `FILE.journal.db`; the judged database gets nothing.
Knows no tools, and not what a change means.

The rows and their journal rows are one transaction, but SQLite makes a commit over two write-ahead logs atomic for each
file alone. It commits the main database first and attached ones after it: a process killed between the two leaves a
change without its journal row, which is judged as unexplained, never a journal row that vouches for a change that is
not there.
"""

import base64
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

SCHEMA = """
CREATE TABLE connections (connection TEXT);
CREATE TABLE calls (
  connection TEXT,
  request_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments TEXT NOT NULL
);
CREATE TABLE changes (
  connection TEXT,
  request_id TEXT NOT NULL,
  table_name TEXT NOT NULL,
  row_id INTEGER NOT NULL,
  op TEXT NOT NULL,
  before TEXT,
  after TEXT,
  call INTEGER NOT NULL
);
"""
"""`connections` has a row for each server that was started here, null where it was given no connection; `calls` one for
each execution of a tool that may change something, also where it changed nothing; `call` is the rowid there.

`request_id` is JSON text, so that 1 and "1" differ; `before` is null for an insert, `after` for a delete; `rowid` is
the order of the changes. Text, integers, reals and nulls are JSON's own; a blob is `{"$blob": base64}`."""


def note_connection(connection: sqlite3.Connection, connection_id: str | None) -> None:
    """Write down that a server was started for a wire connection. Raises sqlite3.Error."""
    connection.execute("INSERT INTO connections VALUES (?)", (connection_id,))


def note_call(
    connection: sqlite3.Connection,
    connection_id: str | None,
    request_id: int | str | None,
    tool: str,
    arguments: Mapping[str, object],
) -> int | None:
    """Write down an execution, inside its transaction; its number. Raises sqlite3.Error, also for a request without id.

    `arguments` are those that the caller gave.
    """
    row = (connection_id, request_text(request_id), tool, json.dumps(dict(arguments)))
    return connection.execute("INSERT INTO calls VALUES (?, ?, ?, ?)", row).lastrowid


def request_text(request_id: int | str | None) -> str | None:
    """The id as JSON text; None for a request without one."""
    return None if request_id is None else json.dumps(request_id, ensure_ascii=False)


class Journal:
    """The journal of one server over one connection; calls outside `call` cannot change a row."""

    def __init__(self, connection: sqlite3.Connection, connection_id: str | None) -> None:
        """Set up the triggers on every table of `connection`, which has the journal attached as `journal`.

        `connection_id` is the id of the wire connection (WIRETRAP_CONNECTION); None when nobody gave one, and then no
        recorded call explains the changes.
        """
        self._connection = connection
        self._connection_id = connection_id
        self._request_id: str | None = None
        self._call: int | None = None
        connection.create_function("wiretrap_connection", 0, lambda: connection_id)
        connection.create_function("wiretrap_request", 0, lambda: self._request_id)
        connection.create_function("wiretrap_call", 0, lambda: self._call)
        connection.create_function("wiretrap_row", -1, _row_text, deterministic=True)
        tables = connection.execute(
            "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        ).fetchall()
        connection.executescript("\n".join(_triggers(connection, name) for (name,) in tables))
        note_connection(connection, connection_id)

    @contextmanager
    def call(self, request_id: int | str | None, tool: str, arguments: Mapping[str, object]) -> Iterator[None]:
        """Attribute what changes inside to this execution for a JSON-RPC request; None makes every change fail.

        Use it inside the transaction of the call, so that the two stand or fall together.
        """
        self._call = note_call(self._connection, self._connection_id, request_id, tool, arguments)
        self._request_id = request_text(request_id)
        try:
            yield
        finally:
            self._request_id = self._call = None


def _row_text(*pairs: int | float | str | bytes | None) -> str:
    """The JSON object of alternating column names and values; raises ValueError for an infinite real."""
    row = {
        str(name): {"$blob": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
        for name, value in zip(pairs[::2], pairs[1::2], strict=True)
    }
    return json.dumps(row, ensure_ascii=False, allow_nan=False)


def _triggers(connection: sqlite3.Connection, table: str) -> str:
    columns = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?, 'main')", (table,))]
    before, after = (
        f"wiretrap_row({', '.join(f'{_text(column)}, {row}.{_name(column)}' for column in columns)})"
        for row in ("OLD", "NEW")
    )

    def trigger(label: str, event: str, when: str, *writes: tuple[str, str, str, str]) -> str:
        # An unqualified name is all that a trigger may write to; `changes` is no fixture's table, so it is the journal.
        inserts = "".join(
            "INSERT INTO changes VALUES"  # noqa: S608 - names of the fixture's own schema, quoted; a trigger binds nothing
            f" (wiretrap_connection(), wiretrap_request(), {_text(table)}, {row_id}, '{op}', {old}, {new},"
            " wiretrap_call()); "
            for row_id, op, old, new in writes
        )
        name = _name(f"journal {label} {table}")
        return f"CREATE TEMP TRIGGER {name} AFTER {event} ON main.{_name(table)} {when} BEGIN {inserts}END;"

    insert = ("NEW.rowid", "insert", "NULL", after)
    update = ("NEW.rowid", "update", before, after)
    delete = ("OLD.rowid", "delete", before, "NULL")
    return "\n".join(
        (
            trigger("insert", "INSERT", "", insert),
            trigger("update", "UPDATE", f"WHEN OLD.rowid = NEW.rowid AND {before} <> {after}", update),
            trigger("move", "UPDATE", "WHEN OLD.rowid <> NEW.rowid", delete, insert),
            trigger("delete", "DELETE", "", delete),
        )
    )


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
