"""Takes a run's secrets out of a folder that a person asked to keep: marks stand for them in texts and in databases.

Refuses to know which files a trial has, and when it has ended. What cannot be looked through is taken away: of a state
the run folder has a dump without secrets.
"""

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from harness.hiding import Hiding, make_hiding
from harness.runfolder import replace
from proxy.plainfile import open_plain, read_at_most

LONGEST = 64 << 20
"""Bytes of a file that are looked through."""
SECONDS = 20.0
"""How long one database may take."""

_TAKEN_OUT = "[redacted]"
_BEGINNING = b"SQLite format 3\0"


def take_secrets_out(folder: Path, hiding: Hiding) -> None:
    """Leave no secret of the run in the folder, nor its key. A second time changes nothing; links are not followed."""
    # What a database has beside it goes into it first.
    for path in sorted(_files(folder), key=lambda path: path.name.endswith(("-wal", "-shm", "-journal"))):
        try:
            _clean(path, hiding)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, sqlite3.Error):
            with suppress(OSError):
                path.unlink()


def take_known_secrets_out(folder: Path) -> None:
    """The same where all that is known of the run is what a context file in the folder says."""
    try:
        with open_plain(folder / "context.json") as file:
            told = json.loads(read_at_most(file, LONGEST))
        match told:
            case {"redact_key": str() as key, "secrets": list() as secrets} if key != _TAKEN_OUT:
                values = {str(place): text for place, text in enumerate(secrets) if isinstance(text, str)}
                take_secrets_out(folder, make_hiding(values, bytes.fromhex(key)))
            case _:
                pass
    except (OSError, ValueError, RecursionError):
        return


def _files(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder):
        yield from (path for name in names if not (path := Path(where, name)).is_symlink())


def _clean(path: Path, hiding: Hiding) -> None:
    with open_plain(path) as file:
        data = read_at_most(file, LONGEST)
    if data.startswith(_BEGINNING):
        _clean_database(path, data, hiding)
        return
    text = _text(data)
    clean = hiding.text(text).replace(hiding.key.hex(), _TAKEN_OUT)
    if clean == text:
        return
    if b"\0" in data:
        raise ValueError("a mark would break it")
    replace(path, clean)


def _clean_database(path: Path, data: bytes, hiding: Hiding) -> None:
    if hiding.redactor is None:
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        end = time.monotonic() + SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > end, 100_000)
        connection.text_factory = _text
        connection.execute("PRAGMA ignore_check_constraints = ON")
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'")
        changed = [_clean_table(connection, table, hiding) for (table,) in tables.fetchall()]
        # Rows that are gone may stand in pages that nobody uses.
        if any(changed) or hiding.finds(_text(data)):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with open_plain(path) as file:
        if hiding.finds(_text(read_at_most(file, LONGEST))):
            raise ValueError("a secret is in it all the same")


def _clean_table(connection: sqlite3.Connection, table: str, hiding: Hiding) -> bool:
    """Whether a cell of the table held a secret; it holds a mark then."""
    changed = False
    every = f"SELECT rowid, * FROM {_quoted(table)}"  # noqa: S608  (a name can be no parameter; it is quoted)
    for rowid, *cells in connection.execute(every).fetchall():
        if any(_is_told(cell, hiding) for cell in cells):
            clean = [_clean_cell(cell, hiding) for cell in cells]
            names = [column[1] for column in connection.execute(f"PRAGMA table_info({_quoted(table)})")]
            sets = ", ".join(f"{_quoted(name)} = ?" for name in names)
            update = f"UPDATE {_quoted(table)} SET {sets} WHERE rowid = ?"  # noqa: S608  (as above)
            connection.execute(update, (*clean, rowid))
            changed = True
    return changed


def _is_told(cell: object, hiding: Hiding) -> bool:
    match cell:
        case str():
            return hiding.finds(cell)
        case bytes():
            return hiding.finds(_text(cell))
        case _:
            return False


def _clean_cell(cell: object, hiding: Hiding) -> object:
    match cell:
        case str():
            return hiding.evidence(cell)
        case bytes():
            return hiding.evidence(_text(cell)).encode("utf-8", "surrogateescape")
        case _:
            return cell


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
