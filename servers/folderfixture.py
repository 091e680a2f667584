"""A fixture over a folder: how the folder is made from a seed, and how each change of a file reaches the journal.

The file is changed first and its journal row committed after, so a process killed between the two leaves a change that
nothing explains, never a row that vouches for a change that is not there. Does not know the tools.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from servers.database import journal_path, make_journal, open_journal, transaction
from servers.fixture import Json, Row, Tool, ToolError
from servers.folder import Folder, FolderError
from servers.journal import note_call, note_connection, request_text
from servers.manifest import TABLE, read_row, row_number
from servers.manifest import Row as FileRow
from servers.seed import Seed, SeedError, parse_seed


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt over one file: `text` comes before the file's content. Its one argument is the file's path."""

    name: str
    description: str
    text: str


@dataclass(frozen=True, slots=True)
class FolderFixture:
    """A fixture server over a folder. `seed` is `{files: [{path, text}]}`.

    A tool that is no `read` changes only the file that its argument `path` names.
    """

    name: str
    title: str
    scheme: str
    """Of the URIs of its resources, `SCHEME:///PATH`."""
    seed: Mapping[str, Sequence[Row]]
    tools: tuple[Tool[Folder], ...]
    prompt: Prompt


def init_folder(path: Path, fixture: FolderFixture, seed: Seed | None = None) -> None:
    """Make the folder of a fixture and its empty journal; `seed` replaces the fixture's own files, all of them.

    The folder appears whole or not at all. Raises SeedError for rows that are no files, FolderError when the folder or
    its journal exists, or cannot be written.
    """
    rows = seed or parse_seed(fixture.seed, f"the own seed of {fixture.name}")
    journal = journal_path(path)
    for place in (path, journal):
        if os.path.lexists(place):
            raise FolderError(f"{place}: exists; remove it, or give another --db")
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        draft.mkdir(mode=0o700)
        _fill(draft, rows)
        make_journal(path)
        draft.rename(path)
    except (OSError, sqlite3.Error) as error:
        raise FolderError(f"{path}: cannot be made: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fill(root: Path, seed: Seed) -> None:
    folder = Folder(root)
    try:
        for table, rows in seed.tables.items():
            if table != TABLE:
                raise SeedError(f"{seed.source}: there is no table {table!a}; there is {TABLE}")
            for number, row in enumerate(rows, 1):
                where = f"{seed.source}: table {table}, row {number}"
                path, text = _file(row, where)
                try:
                    if not folder.write(path, text.encode()):
                        raise SeedError(f"{where}, column path: {path!a} is there already")
                except (ToolError, UnicodeEncodeError) as error:
                    raise SeedError(f"{where}: {error}") from error
    finally:
        folder.close()


def _file(row: Row, where: str) -> tuple[str, str]:
    unknown = [name for name in row if name not in ("path", "text")]
    if unknown:
        raise SeedError(f"{where}: there is no column {unknown[0]!a}; there are path, text")
    match row.get("path"), row.get("text"):
        case str() as path, str() as text:
            return path, text
        case str(), value:
            raise SeedError(f"{where}, column text: must be text (in quotes), not {value!a}")
        case value, _:
            raise SeedError(f"{where}, column path: must be text (in quotes), not {value!a}")


class FolderPlace:
    """An open folder with its journal, and the fixture's tools over it. Close it."""

    def __init__(self, path: Path, fixture: FolderFixture, connection_id: str | None) -> None:
        """Open the folder at `path`; no file is made here. Raises FolderError when there is none."""
        if not path.is_dir():
            raise FolderError(f"{path}: no such folder; make it first with --init")
        self.fixture = fixture
        self.folder = Folder(path)
        self._connection_id = connection_id
        self._tools = {tool.name: tool for tool in fixture.tools}
        try:
            self._journal = open_journal(path)
            note_connection(self._journal, connection_id)
        except (OSError, sqlite3.Error) as error:
            self.folder.close()
            raise FolderError(f"{path}: its journal cannot be opened: {error}") from error

    def close(self) -> None:
        """Let go of both."""
        self._journal.close()
        self.folder.close()

    def signatures(self) -> Sequence[Tool[Folder]]:
        """The tools as `tools/list` shows them."""
        return self.fixture.tools

    def call(self, name: str, given: Mapping[str, object], request_id: int | str | None) -> dict[str, Json]:
        """Run a tool for a JSON-RPC request. Raises KeyError for no tool, ToolError, and sqlite3.Error."""
        tool = self._tools[name]
        arguments = tool.check(given)
        if tool.effect == "read":
            return tool.run(self.folder, arguments)
        if request_id is None:
            raise ToolError("A change needs a request with an id")
        path = str(arguments["path"])
        failure: ToolError | None = None
        content: dict[str, Json] = {}
        # Held from the start, so that another server of the folder changes nothing between the two rows.
        with transaction(self._journal, writes=True):
            number = note_call(self._journal, self._connection_id, request_id, name, given)
            before = read_row(self.folder, path)
            try:
                content = tool.run(self.folder, arguments)
            except ToolError as error:
                failure = error
            self._note(number, request_id, path, before, read_row(self.folder, path))
        if failure is not None:
            raise failure
        return content

    def _note(
        self, call: int | None, request_id: int | str, path: str, before: FileRow | None, after: FileRow | None
    ) -> None:
        if before == after:
            return
        op = "insert" if before is None else "delete" if after is None else "update"
        row = (
            self._connection_id,
            request_text(request_id),
            TABLE,
            row_number(path),
            op,
            *(None if side is None else json.dumps(side, ensure_ascii=False) for side in (before, after)),
            call,
        )
        self._journal.execute("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
