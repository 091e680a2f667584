"""The one door to the fixture servers: which there are, how their databases are made, and how each is started.

Refuses to know what their tools do. The MCP SDK is imported only when a server is built in this process.
"""

import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.spans import JSON
from servers import catalogue, database, seed

if TYPE_CHECKING:
    from mcp.server import Server

NAMES = frozenset(catalogue.FIXTURES)
"""Every fixture that a scenario may name."""


class FixtureError(ValueError):
    """A fixture's database that cannot be made or opened; the message names the file."""


def init_fixture(name: str, path: Path, seed_file: Path | None, rows_by_table: Mapping[str, JSON] | None) -> None:
    """Make and seed the database of a fixture, as `--init` does; without rows by its own seed. Raises FixtureError.

    `seed_file` is where the rows were read from.
    """
    try:
        rows = None if rows_by_table is None else seed.parse_seed(dict(rows_by_table), str(seed_file))
        database.init_database(path, catalogue.FIXTURES[name], rows)
    except (database.DatabaseError, seed.SeedError, OSError, sqlite3.Error) as error:
        raise FixtureError(f"fixture {name}: {error}") from error


def journal_path(path: Path) -> Path:
    """Where the journal of the database at `path` lies."""
    return database.journal_path(path)


def fixture_command(name: str, path: Path) -> tuple[str, ...]:
    """The command that serves the database at `path` over stdio."""
    return (sys.executable, "-P", "-m", f"servers.{name}", "--db", str(path))


@contextmanager
def build_fixture(name: str, path: Path, connection_id: str) -> "Iterator[Server]":
    """The fixture's server in this process; the database is closed afterwards. Raises FixtureError."""
    # The SDK takes a second to import, and a run over stdio needs none of it here.
    from proxy.spans import JSON
from servers import serving  # noqa: PLC0415

    fixture = catalogue.FIXTURES[name]
    try:
        connection = database.open_database(path, fixture)
    except database.DatabaseError as error:
        raise FixtureError(f"fixture {name}: {error}") from error
    with closing(connection):
        yield serving.build_server(fixture, connection, connection_id)
