"""A SQL query on a dump, read-only and bounded: the dump is rebuilt in memory, so a judged database is never touched.

Refuses to know what the answer should be.
"""

import re
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from harness.cells import Value, decode_text, from_cell, to_cell
from harness.evidence import Dump, Row
from proxy.spans import JSON

MAX_STEPS = 50_000_000
"""Instructions of SQLite's virtual machine that one query may take: about a second, the same on every machine."""
MAX_ROWS = 10_000
MAX_CELL = 16 * 1024 * 1024

_STEP = 100_000
_SURROGATE = re.compile("[\ud800-\udfff]")
_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_FICKLE = frozenset({"load_extension", "random", "randomblob"})


class QueryError(ValueError):
    """A query that cannot be run on a dump: what SQLite says of it, or the bound that it passed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The columns of a query's answer and its rows, in the query's order, cells as in a dump."""

    columns: tuple[str, ...]
    rows: tuple[tuple[JSON, ...], ...]


def run_query(dump: Dump, sql: str, parameters: Mapping[str, str] | None = None) -> Answer:
    """The answer of one reading statement; `parameters` are the texts of its `:name`s.

    Raises QueryError where it writes, attaches, runs on, or is no query.
    """
    with closing(_connect()) as memory:
        try:
            _rebuild(memory, dump)
            return _ask(memory, sql, parameters or {})
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            raise QueryError(f"{error} in the query {sql!r}") from error


def write_database(path: Path, dump: Dump) -> None:
    """Write a new database file that holds what a dump does. Raises QueryError; a file that is there stays."""
    if path.exists():
        raise QueryError(f"{path}: is there already")
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            _rebuild(database, dump)
    except (sqlite3.Error, ValueError, OverflowError) as error:
        raise QueryError(f"{path}: {error}") from error


def table_keys(schema: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Each table of the CREATE statements with the columns that tell its rows apart.

    Empty where only the rowid does. A statement that cannot be run gives no table.
    """
    return _table_keys(tuple(statement for statement in schema if _is_table(statement)))


@lru_cache(maxsize=64)
def _table_keys(statements: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    # One trial asks ten times, and the next ones ask the same.
    with closing(_connect()) as memory:
        _create(memory, statements)
        names = memory.execute(
            "select name from sqlite_master where type = 'table' and name not like 'sqlite@_%' escape '@'"
        )
        return MappingProxyType({name: key_columns(memory, name) for (name,) in names.fetchall()})


def table_columns(schema: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Each table of the CREATE statements with all its columns. A statement that cannot be run gives no table."""
    statements = tuple(schema)
    with closing(_connect()) as memory:
        _create(memory, [statement for statement in statements if _is_table(statement)])
        query = "select name from pragma_table_xinfo(?)"
        return {table: tuple(name for (name,) in memory.execute(query, (table,))) for table in table_keys(statements)}


def key_columns(database: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """The primary key of a table without rowid, the alias of the rowid in another, or nothing."""
    info = database.execute("select name, type, pk from pragma_table_xinfo(?) where pk > 0 order by pk", (table,))
    keys = info.fetchall()
    if rowid_name(database, table) is None:
        return tuple(name for name, _, _ in keys)
    return (keys[0][0],) if len(keys) == 1 and keys[0][1].casefold() == "integer" else ()


def rowid_name(database: sqlite3.Connection, table: str) -> str | None:
    """The word that means the rowid in a table; None where it has none, or columns hide all three."""
    columns = {name.casefold() for (name,) in database.execute("select name from pragma_table_xinfo(?)", (table,))}
    word = next((word for word in ("rowid", "_rowid_", "oid") if word not in columns), None)
    if word is None:
        return None
    try:
        database.execute(f"select {word} from {quote(table)} limit 0")  # noqa: S608 - the name is quoted
    except sqlite3.OperationalError:
        return None
    return word


def quote(name: str) -> str:
    """The name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _connect() -> sqlite3.Connection:
    memory = sqlite3.connect(":memory:", isolation_level=None)
    memory.text_factory = decode_text
    return memory


def _is_table(statement: str) -> bool:
    return statement.lstrip().casefold().startswith("create table")


def _rebuild(memory: sqlite3.Connection, dump: Dump) -> None:
    # Rows were legal where they come from; a check that calls an unknown function would stop them here.
    memory.execute("pragma ignore_check_constraints = on")
    memory.execute("begin")
    _create(memory, [statement for statement in dump.schema if _is_table(statement)])
    for table, rows in dump.tables.items():
        _fill(memory, table, rows)
    later = [
        text
        for text in dump.schema
        if text.lstrip().casefold().startswith(("create view", "create index", "create unique"))
    ]
    _create(memory, later)
    memory.execute("commit")


def _create(memory: sqlite3.Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        try:
            memory.execute(statement)
        except sqlite3.OperationalError:
            # It needs a module or function that only the server has; a query that uses it says so itself.
            continue


def _fill(memory: sqlite3.Connection, table: str, rows: Mapping[int, Row]) -> None:
    info = memory.execute("select name, hidden from pragma_table_xinfo(?)", (table,)).fetchall()
    stored = [name for name, hidden in info if not hidden]
    rowid = rowid_name(memory, table) if stored else None
    if not stored:
        return
    names = ", ".join([*([rowid] if rowid else []), *map(quote, stored)])
    for number, row in rows.items():
        values: list[Value] = [*([number] if rowid else []), *(from_cell(row.get(name)) for name in stored)]
        places, bound = zip(*map(_bind, values), strict=True)
        memory.execute(f"insert into {quote(table)} ({names}) values ({', '.join(places)})", bound)  # noqa: S608 - quoted


def _bind(value: Value) -> tuple[str, Value]:
    """The place of a value in an insert, and what is bound there: text that is not UTF-8 goes in as its bytes."""
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogateescape")
        return ("?", value) if _is_utf8(value) else ("cast(? as text)", raw)
    return "?", value


def _is_utf8(text: str) -> bool:
    return text.isascii() or _SURROGATE.search(text) is None


def _ask(memory: sqlite3.Connection, sql: str, parameters: Mapping[str, str]) -> Answer:
    memory.execute("pragma query_only = on")
    memory.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL)
    steps = iter(range(MAX_STEPS // _STEP))
    memory.set_progress_handler(lambda: int(next(steps, None) is None), _STEP)
    memory.set_authorizer(_authorize)
    cursor = memory.execute(sql, parameters)
    if cursor.description is None:
        raise QueryError("no query")
    rows = cursor.fetchmany(MAX_ROWS + 1)
    if len(rows) > MAX_ROWS:
        raise QueryError(f"more than {MAX_ROWS} rows")
    columns = tuple(column[0] for column in cursor.description)
    return Answer(columns, tuple(tuple(to_cell(value) for value in row) for row in rows))


def _authorize(action: int, _one: str | None, name: str | None, _database: str | None, _source: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (name or "").casefold() in _FICKLE:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY
