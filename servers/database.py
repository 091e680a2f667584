"""Makes, opens and writes a fixture's SQLite file. Knows no tools, and not what the rows mean.

Every file is in WAL mode without syncs, since a trial's database need not outlive the machine.
"""

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from servers.fixture import Fixture, PlaceError, Scalar
from servers.journal import SCHEMA as JOURNAL_SCHEMA
from servers.seed import Seed, SeedError, parse_seed

BUSY_SECONDS = 20.0
"""How long a transaction waits for another process's; each holds the lock for well under a millisecond."""


class DatabaseError(PlaceError):
    """A database file that cannot be used; the message names it and says what to do."""


def journal_path(path: Path) -> Path:
    """Where the journal of the database at `path` lies."""
    return path.with_name(path.name + ".journal.db")


def init_database(path: Path, fixture: Fixture, seed: Seed | None = None) -> None:
    """Make the database of a fixture and its empty journal; `seed` replaces the fixture's own rows, all of them.

    The file appears whole or not at all. Raises SeedError for rows that do not fit the tables, DatabaseError when the
    file or its journal exists, or cannot be written.
    """
    rows = seed or parse_seed(fixture.seed, f"the own seed of {fixture.name}")
    journal = journal_path(path)
    for file in (path, journal):
        if file.exists():
            raise DatabaseError(f"{file}: exists; remove it, or give another --db")
    try:
        make_journal(path)
        try:
            _make(path, fixture.schema, rows)
        except BaseException:
            journal.unlink(missing_ok=True)
            raise
    except (OSError, sqlite3.OperationalError) as error:
        raise DatabaseError(f"{path}: cannot be made: {error}") from error


def open_database(path: Path, fixture: Fixture) -> sqlite3.Connection:
    """Open a fixture's database with its journal attached as `journal`; it is never seeded here.

    The caller closes it. Raises DatabaseError when the file is absent or is not this fixture's.
    """
    if not path.is_file():
        raise DatabaseError(f"{path}: no such database; make it first with --init")
    try:
        journal = ensure_journal(path)
        connection = sqlite3.connect(_uri(path), uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise DatabaseError(f"{path}: cannot be opened: {error}") from error
    try:
        connection.execute("ATTACH DATABASE ? AS journal", (_uri(journal),))
        connection.executescript(
            "PRAGMA main.synchronous = OFF; PRAGMA journal.synchronous = OFF; PRAGMA temp_store = MEMORY;"
            # without it a row that an INSERT OR REPLACE removes has no delete trigger
            "PRAGMA recursive_triggers = ON;"
        )
        _check_tables(connection, path, fixture)
    except sqlite3.Error as error:
        connection.close()
        raise DatabaseError(f"{path}: cannot be opened: {error}") from error
    except DatabaseError:
        connection.close()
        raise
    return connection


def make_journal(path: Path) -> Path:
    """Make the empty journal of what lies at `path`. Raises OSError and sqlite3.Error."""
    journal = journal_path(path)
    _make(journal, JOURNAL_SCHEMA, Seed("", {}))
    return journal


def ensure_journal(path: Path) -> Path:
    """The journal of what lies at `path`, made where it is absent. Raises OSError and sqlite3.Error."""
    journal = journal_path(path)
    if not journal.exists():
        with suppress(FileExistsError):  # another server of the same place was quicker
            make_journal(path)
    return journal


def open_journal(path: Path) -> sqlite3.Connection:
    """Open the journal of what lies at `path`, by itself; the caller closes it. Raises OSError and sqlite3.Error."""
    journal = ensure_journal(path)
    connection = sqlite3.connect(_uri(journal), uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, *, writes: bool) -> Iterator[None]:
    """One transaction over the database and its journal; an exception inside undoes it.

    With `writes` both files are locked from the start, so it waits for other processes before it reads, not half-way.
    """
    connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _uri(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=rw"


_SMALL = 1024 * 1024
"""Bytes of a new database that is kept, since the next trial of a scenario begins with the same."""
_KEPT = 16
_made: OrderedDict[tuple[str, str], bytes] = OrderedDict()
"""Those that were made last, by their schema and rows."""


def _make(path: Path, schema: str, seed: Seed) -> None:
    """Make a database under a name of our own and link it into place, so that nobody opens half of one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    key = (schema, repr(seed.tables))
    try:
        known = _made.get(key)
        if known is None:
            _build(draft, schema, seed)
            if draft.stat().st_size <= _SMALL:
                _made[key] = draft.read_bytes()
            if len(_made) > _KEPT:
                _made.popitem(last=False)
        else:
            # The mode that SQLite gives.
            with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
                file.write(known)
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _build(draft: Path, schema: str, seed: Seed) -> None:
    with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
        connection.executescript(
            f"PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; BEGIN; {schema}"
        )
        for table, rows in seed.tables.items():
            columns = _columns(connection, seed.source, table)
            for number, row in enumerate(rows, 1):
                where = f"{seed.source}: table {table}, row {number}"
                _insert(connection, table, {name: _fit(columns, where, name, row[name]) for name in row}, where)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")


def _columns(connection: sqlite3.Connection, source: str, table: str) -> dict[str, str]:
    """Declared type by column; raises SeedError for a table that is not there."""
    tables = [name for name in _tables(connection) if not name.startswith("sqlite_")]
    if table not in tables:
        raise SeedError(f"{source}: there is no table {table!a}; there is {', '.join(tables)}")
    return dict(connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall())


def _fit(columns: dict[str, str], where: str, column: str, value: Scalar) -> Scalar:
    match columns.get(column), value:
        case None, _:
            raise SeedError(f"{where}: there is no column {column!a}; there are {', '.join(columns)}")
        case (_, None) | ("TEXT", str()) | ("BOOLEAN", bool() | 0 | 1):
            return value
        case "INTEGER", int() if not isinstance(value, bool) and -(2**63) <= value < 2**63:
            return value
        case kind, _:
            wanted = {"TEXT": "text (in quotes)", "BOOLEAN": "true or false", "INTEGER": "an integer of 64 bits"}
            raise SeedError(f"{where}, column {column}: must be {wanted.get(kind or '', kind)}, not {value!a}")


def _insert(connection: sqlite3.Connection, table: str, row: dict[str, Scalar], where: str) -> None:
    # Names come from pragma_table_info by now, so they are the fixture's own.
    names = ", ".join(f'"{name}"' for name in row)
    values = f"({names}) VALUES ({', '.join('?' * len(row))})" if row else "DEFAULT VALUES"
    try:
        connection.execute(f'INSERT INTO "{table}" {values}', tuple(row.values()))
    except (sqlite3.IntegrityError, UnicodeEncodeError) as error:
        raise SeedError(f"{where}: {error}") from error


def _check_tables(connection: sqlite3.Connection, path: Path, fixture: Fixture) -> None:
    missing = sorted(fixture.seed.keys() - set(_tables(connection)))
    if missing:
        raise DatabaseError(
            f"{path}: has no table {missing[0]}, so it is no {fixture.name} database; make one with --init"
        )


def _tables(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'")]
