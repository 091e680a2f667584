"""A server's database as evidence: read in place, written to the run folder and read from there again.

Refuses to know what should stand in it, and who wrote it.
"""

import json
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

from harness.cells import Value, decode_text, row_text, to_cell
from harness.evidence import Dump, JournalCall, JournalRow, Row, ServerState
from harness.jsontext import load_json
from harness.query import key_columns, quote, rowid_name, table_keys
from proxy.plainfile import open_plain
from proxy.spans import JSON

_CHANGES = """
select changes.connection, changes.request_id, table_name, row_id, op, before, after, calls.rowid, tool, arguments
from changes left join calls
on calls.rowid = call and calls.connection is changes.connection and calls.request_id is changes.request_id
order by changes.rowid
"""
_MOST_TABLES = 1000
_rowids: dict[str, str] = {}
_ORDER = {"table": 0, "index": 1, "view": 2, "trigger": 3}


class StateError(ValueError):
    """A database, dump or journal that cannot be read: which file, which line, and what is wrong."""


def read_dump(path: Path) -> Dump:
    """The database at `path` with what its write-ahead log holds, in one read transaction, never written to.

    Read it after its server has ended. Tables of SQLite's own are left out. A table without rowid has its rows numbered
    from 1 in the order of its primary key. Raises StateError.
    """
    with _reading(path) as database:
        schema = database.execute(
            "select type, name, sql from sqlite_master where sql is not null and name not like 'sqlite@_%' escape '@'"
        ).fetchall()
        schema.sort(key=lambda row: (_ORDER.get(row[0], 4), row[1]))
        tables = [(name, sql) for kind, name, sql in schema if kind == "table" and not _is_virtual(sql)]
        return Dump(
            tuple(sql for _, _, sql in schema),
            {table: dict(_read_rows(database, table, sql)) for table, sql in tables},
        )


def read_journal(path: Path) -> tuple[JournalRow, ...]:
    """The journal that a fixture kept beside its database, in the order of its rows. Raises StateError.

    `path` is FILE.journal.db; its tables are those of docs/servers.md.
    """
    with _reading(path) as database:
        rows = database.execute(_CHANGES).fetchall()
        return tuple(_journal_row(row, f"{path}: change {number}") for number, row in enumerate(rows, 1))


def read_connections(path: Path) -> tuple[str | None, ...]:
    """For each start of a fixture's server the wire connection that it was given, from its journal. Raises StateError.

    None stands for a start without one.
    """
    with _reading(path) as database:
        rows = database.execute("select connection from connections order by rowid").fetchall()
        return tuple(said if isinstance(said, str) else None for (said,) in rows)


def write_dump(path: Path, dump: Dump) -> None:
    """Write the dump as JSON lines: `{schema}`, then `{table, rowid, row}` for each row, tables and rows in order."""
    lines = [json.dumps({"schema": list(dump.schema)})]
    for table in sorted(dump.tables):
        for rowid, row in sorted(dump.tables[table].items()):
            lines.append(f'{{"table": {json.dumps(table)}, "rowid": {rowid}, "row": {row_text(row)}}}')
    _write(path, lines)


def load_dump(path: Path) -> Dump:
    """The dump that `write_dump` wrote. Tables without rows are known from the schema. Raises StateError."""
    lines = _read(path)
    where, head = next(lines, (str(path), None))
    schema = head.get("schema") if isinstance(head, dict) else None
    if not isinstance(schema, list):
        raise StateError(f"{where}: the first line of a dump is {{schema: [CREATE statements]}}")
    statements = tuple(text for text in schema if isinstance(text, str))
    tables: dict[str, dict[int, Row]] = {name: {} for name in table_keys(statements)}
    for where, line in lines:
        match line:
            case {"table": str() as table, "rowid": int() as rowid, "row": dict() as row}:
                tables.setdefault(table, {})[rowid] = row
            case _:
                raise StateError(f"{where}: a line of a dump is {{table, rowid, row}}")
    return Dump(statements, tables)


def write_journal(path: Path, journal: Sequence[JournalRow]) -> None:
    """Write the journal as JSON lines, one change a line, fields as in JournalRow."""
    _write(path, [_journal_line(row) for row in journal])


def load_journal(path: Path) -> tuple[JournalRow, ...]:
    """The journal that `write_journal` wrote. Raises StateError."""
    rows = []
    for where, line in _read(path):
        match line:
            case {
                "connection": str() | None as connection,
                "request_id": str() | None as request_id,
                "table": str() as table,
                "rowid": int() as rowid,
                "op": str() as op,
                "before": dict() | None as before,
                "after": dict() | None as after,
            }:
                rows.append(JournalRow(connection, request_id, table, rowid, op, before, after, _call_of(line)))
            case _:
                raise StateError(f"{where}: not a change of a journal")
    return tuple(rows)


def write_state(folder: Path, server: str, state: ServerState) -> None:
    """Write `<server>.after.jsonl` and, where they are known, `.before.jsonl` and `.journal.jsonl`."""
    if state.before is not None:
        write_dump(folder / f"{server}.before.jsonl", state.before)
    write_dump(folder / f"{server}.after.jsonl", state.after)
    if state.journal is not None:
        write_journal(folder / f"{server}.journal.jsonl", state.journal)


def load_state(folder: Path, server: str) -> ServerState:
    """What `write_state` wrote; without a journal file the server kept none. Raises StateError."""
    before = folder / f"{server}.before.jsonl"
    journal = folder / f"{server}.journal.jsonl"
    return ServerState(
        load_dump(before) if before.exists() else None,
        load_dump(folder / f"{server}.after.jsonl"),
        load_journal(journal) if journal.exists() else None,
    )


def _journal_line(row: JournalRow) -> str:
    head = {"connection": row.connection, "request_id": row.request_id, "table": row.table, "rowid": row.rowid}
    before, after = ("null" if side is None else row_text(side) for side in (row.before, row.after))
    call = json.dumps(None if row.call is None else asdict(row.call))
    return f'{json.dumps(head | {"op": row.op})[:-1]}, "before": {before}, "after": {after}, "call": {call}}}'


def _call_of(value: JSON) -> JournalCall | None:
    match value:
        case {"call": {"number": int() as number, "tool": str() as tool, "arguments": arguments}}:
            return JournalCall(number, tool, arguments)
        case _:
            return None


def _journal_row(row: tuple[Value, ...], where: str) -> JournalRow:
    connection, request_id, table, rowid, op, before, after, number, tool, given = row
    if not isinstance(table, str) or not isinstance(rowid, int) or not isinstance(op, str):
        raise StateError(f"{where} names no table, row and operation")
    return JournalRow(
        connection if isinstance(connection, str) else None,
        request_id if isinstance(request_id, str) else None if request_id is None else json.dumps(to_cell(request_id)),
        table,
        rowid,
        op,
        _object(before, where),
        _object(after, where),
        _journal_call(number, tool, _object(given, where)),
    )


def _journal_call(number: Value, tool: Value, arguments: Row | None) -> JournalCall | None:
    if not isinstance(number, int) or not isinstance(tool, str) or arguments is None:
        return None
    return JournalCall(number, tool, dict(arguments))


def _object(text: Value, where: str) -> Row | None:
    if text is None:
        return None
    try:
        value: JSON = load_json(text) if isinstance(text, str) else None
    except ValueError as error:
        raise StateError(f"{where} holds a row that is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise StateError(f"{where} holds a row that is no JSON object")
    return value


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    for part in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
        # SQLite waits for a writer of a named pipe, and for the end of a device.
        if os.path.lexists(part) and not stat.S_ISREG(part.lstat().st_mode):
            raise StateError(f"{part}: is no regular file; something other than the server put it there")
    # A read-only connection still sees the write-ahead log; `immutable` would not.
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        ) as database:
            database.text_factory = decode_text
            database.execute("begin")
            yield database
    except sqlite3.Error as error:
        raise StateError(f"{path}: {error}") from error


def _rowid_of(database: sqlite3.Connection, table: str, sql: str) -> str | None:
    """As `rowid_name`, asked once for each CREATE statement: each trial has the same tables."""
    word = _rowids.get(sql)
    if word is None:
        word = rowid_name(database, table)
        if word is not None and len(_rowids) < _MOST_TABLES:
            _rowids[sql] = word
    return word


def _read_rows(database: sqlite3.Connection, table: str, sql: str) -> Iterator[tuple[int, Row]]:
    name, rowid = quote(table), _rowid_of(database, table, sql)
    if rowid is not None:
        cursor = database.execute(f"select {rowid}, * from {name} order by {rowid}")  # noqa: S608 - quoted
        columns = [column[0] for column in cursor.description[1:]]
        for number, *values in cursor:
            yield number, dict(zip(columns, map(to_cell, values), strict=True))
        return
    keys = ", ".join(map(quote, key_columns(database, table))) or "1"
    cursor = database.execute(f"select * from {name} order by {keys}")  # noqa: S608 - quoted
    columns = [column[0] for column in cursor.description]
    for number, values in enumerate(cursor, 1):
        yield number, dict(zip(columns, map(to_cell, values), strict=True))


def _is_virtual(sql: str) -> bool:
    return sql.casefold().startswith("create virtual table")


def _write(path: Path, lines: Iterable[str]) -> None:
    """Write the lines to a file that only its owner may read, in a new file so that a looser one lends no mode."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.writelines(f"{line}\n" for line in lines)


def _read(path: Path) -> Iterator[tuple[str, JSON]]:
    """Each line's place and its value."""
    try:
        with open_plain(path) as file:
            text = file.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StateError(f"{path}: {error}") from error
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        try:
            yield f"{path}: line {number}", load_json(line)
        except ValueError as error:
            raise StateError(f"{path}: line {number}: {error}") from error
