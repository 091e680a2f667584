"""Makes and opens the place that a fixture works on, a database or a folder. Knows no tools and no MCP."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from servers.database import init_database, open_database, transaction
from servers.fixture import Fixture, Json, Signature
from servers.folderfixture import FolderFixture, FolderPlace, init_folder
from servers.journal import Journal
from servers.seed import Seed

AnyFixture: TypeAlias = Fixture | FolderFixture


class DatabasePlace:
    """An open database with its journal, and the fixture's tools over it."""

    def __init__(self, fixture: Fixture, connection: sqlite3.Connection, connection_id: str | None) -> None:
        """`connection` is one of `servers.database.open_database`; one place to a connection, the caller closes it."""
        self.fixture = fixture
        self._connection = connection
        self._journal = Journal(connection, connection_id)
        self._tools = {tool.name: tool for tool in fixture.tools}

    def signatures(self) -> Sequence[Signature]:
        """The tools as `tools/list` shows them, with the descriptions that the database has for them now."""
        if self.fixture.descriptions is None:
            return self.fixture.tools
        query = f'SELECT tool, description FROM "{self.fixture.descriptions}"'  # noqa: S608 - the fixture's own name
        said = dict(self._connection.execute(query).fetchall())
        return [replace(tool, description=said.get(tool.name, tool.description)) for tool in self.fixture.tools]

    def call(self, name: str, given: Mapping[str, object], request_id: int | str | None) -> dict[str, Json]:
        """Run a tool for a JSON-RPC request in one transaction. Raises KeyError (no tool), ToolError, sqlite3.Error."""
        tool = self._tools[name]
        arguments = tool.check(given)
        if tool.effect == "read":
            with transaction(self._connection, writes=False):
                return tool.run(self._connection, arguments)
        with transaction(self._connection, writes=True), self._journal.call(request_id, name, given):
            return tool.run(self._connection, arguments)


Place: TypeAlias = DatabasePlace | FolderPlace


def init_place(path: Path, fixture: AnyFixture, seed: Seed | None = None) -> None:
    """Make what a fixture works on at `path`, and its journal. Raises SeedError and PlaceError."""
    match fixture:
        case Fixture():
            init_database(path, fixture, seed)
        case FolderFixture():
            init_folder(path, fixture, seed)


@contextmanager
def open_place(path: Path, fixture: AnyFixture, connection_id: str | None) -> Iterator[Place]:
    """What a fixture works on at `path`, open inside; it is never seeded here. Raises PlaceError.

    `connection_id` is the wire connection's id, for the journal.
    """
    match fixture:
        case Fixture():
            with closing(open_database(path, fixture)) as connection:
                yield DatabasePlace(fixture, connection, connection_id)
        case FolderFixture():
            with closing(FolderPlace(path, fixture, connection_id)) as place:
                yield place
