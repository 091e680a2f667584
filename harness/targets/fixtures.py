"""The one door to the fixture servers: which there are, how their databases are made, and how each is started.

Refuses to know what their tools do. The MCP SDK is imported only when a server is built in this process.
"""

import json
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.evidence import Dump
from harness.offer import Offer, Offers
from harness.othervalues import Takes
from harness.state import StateError, read_dump
from proxy.spans import JSON
from servers import catalogue, database, fixture, folder, folderfixture, manifest, places, seed

if TYPE_CHECKING:
    from mcp.server import Server


class FixtureError(ValueError):
    """A fixture's database or folder that cannot be made or opened; the message names it."""


@cache
def fixture_offers() -> Offers:
    """Every fixture that a scenario may name, and what it offers. No seed adds a tool or a table."""
    return MappingProxyType(
        {
            name: Offer(tuple(tool.name for tool in made.tools), _schema(made))
            for name, made in catalogue.FIXTURES.items()
        }
    )


def fixture_takes(name: str) -> dict[str, Takes]:
    """What each tool of a fixture takes, by its bare name, as the server's tools/list says it."""
    return {
        tool.name: Takes(json.loads(json.dumps(tool.input_schema())), tool.effect == "read")
        for tool in catalogue.FIXTURES[name].tools
    }


def _schema(made: places.AnyFixture) -> tuple[str, ...]:
    match made:
        case fixture.Fixture():
            with closing(sqlite3.connect(":memory:")) as memory:
                memory.executescript(made.schema)
                rows = memory.execute(
                    "select sql from sqlite_schema where sql is not null and name not like 'sqlite@_%' escape '@'"
                )
                return tuple(sql for (sql,) in rows.fetchall())
        case folderfixture.FolderFixture():
            return (manifest.SCHEMA,)


def init_fixture(name: str, path: Path, seed_file: Path | None, rows_by_table: Mapping[str, JSON] | None) -> None:
    """Make and seed what a fixture works on, as `--init` does; without rows by its own seed. Raises FixtureError.

    `seed_file` is where the rows were read from.
    """
    try:
        rows = None if rows_by_table is None else seed.parse_seed(dict(rows_by_table), str(seed_file))
        places.init_place(path, catalogue.FIXTURES[name], rows)
    except (fixture.PlaceError, seed.SeedError, OSError, sqlite3.Error) as error:
        raise FixtureError(f"fixture {name}: {error}") from error


def journal_path(path: Path) -> Path:
    """Where the journal of the database or folder at `path` lies."""
    return database.journal_path(path)


def dump_fixture(name: str, path: Path) -> Dump:
    """What a fixture's database or folder holds now, read in place. Read it after its server ended. Raises StateError.

    A folder is one table `files`, made from the files themselves (docs/servers.md).
    """
    match catalogue.FIXTURES[name]:
        case fixture.Fixture():
            return read_dump(path)
        case folderfixture.FolderFixture():
            return _dump_folder(path)


def _dump_folder(path: Path) -> Dump:
    try:
        root = folder.Folder(path)
        try:
            rows = manifest.read_manifest(root)
        finally:
            root.close()
    except (fixture.PlaceError, fixture.ToolError) as error:
        raise StateError(f"{path}: {error}") from error
    return Dump((manifest.SCHEMA,), {manifest.TABLE: {number: {**row} for number, row in rows.items()}})


def fixture_command(name: str, path: Path) -> tuple[str, ...]:
    """The command that serves the database or folder at `path` over stdio."""
    return (sys.executable, "-P", "-m", f"servers.{name}", "--db", str(path))


@contextmanager
def build_fixture(name: str, path: Path, connection_id: str) -> "Iterator[Server]":
    """The fixture's server in this process; what it works on is closed afterwards. Raises FixtureError."""
    # The SDK takes a second to import, and a run over stdio needs none of it here.
    from servers import serving  # noqa: PLC0415  (it loads the SDK)

    with ExitStack() as stack:
        try:
            place = stack.enter_context(places.open_place(path, catalogue.FIXTURES[name], connection_id))
        except fixture.PlaceError as error:
            raise FixtureError(f"fixture {name}: {error}") from error
        yield serving.build_server(place)
