"""What a folder holds, as rows of one table: the state that a trial's files are judged by.

Does not know who changed a file. The folder itself is the truth; no copy of it is kept.
"""

import hashlib
import os
import stat

from servers.fixture import ToolError
from servers.folder import Folder

TABLE = "files"
SCHEMA = (
    "CREATE TABLE files (path TEXT PRIMARY KEY NOT NULL, kind TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " sha256 TEXT, text TEXT) WITHOUT ROWID"
)
"""`kind` is file, link or other (a pipe, a device). Of a link, bytes, digest and text are those of where it points,
which is not followed. `text` is null where a file is no UTF-8, holds U+0000, or is longer than LONGEST_TEXT. Folders
are no rows."""
LONGEST_TEXT = 1 << 16
"""Bytes of a file whose text stands in its row."""

Row = dict[str, str | int | None]


def read_manifest(folder: Folder) -> dict[int, Row]:
    """The row of every entry by its number, in the order of the paths. Raises ToolError for one that cannot be read."""
    rows: dict[int, Row] = {}
    for path, status in sorted(folder.names(), key=lambda entry: os.fsencode(entry[0])):
        number = row_number(path)
        if number in rows:
            raise ToolError(f"{path!a} and {rows[number]['path']!a} have one number; rename one of them")
        rows[number] = _row(folder, path, status)
    return rows


def read_row(folder: Folder, path: str) -> Row | None:
    """The row of one path; None where nothing is, or the way there is no folder's. Raises ToolError as above."""
    found = folder.status(path)
    return None if found is None or stat.S_ISDIR(found.st_mode) else _row(folder, path, found)


def row_number(path: str) -> int:
    """The number of a path's row, 63 bits: always the same for the path, whatever else is in the folder."""
    return int.from_bytes(hashlib.sha256(os.fsencode(path)).digest()[:8]) >> 1


def _row(folder: Folder, path: str, status: os.stat_result) -> Row:
    parts = tuple(path.split("/"))
    if stat.S_ISLNK(status.st_mode):
        target = folder.read_link(parts)
        return _made(path, "link", len(target), hashlib.sha256(target).hexdigest(), target)
    if not stat.S_ISREG(status.st_mode):
        return _made(path, "other", 0, None, None)
    digest = hashlib.sha256()
    head, size = b"", 0
    with folder.open_file(parts) as file, os.fdopen(file, "rb", closefd=False) as stream:
        while chunk := stream.read(LONGEST_TEXT + 1):
            head = head or chunk
            digest.update(chunk)
            size += len(chunk)
    return _made(path, "file", size, digest.hexdigest(), head if size <= LONGEST_TEXT else None)


def _made(path: str, kind: str, size: int, digest: str | None, data: bytes | None) -> Row:
    text: str | None = None
    if data is not None and b"\0" not in data:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = None
    return {"path": path, "kind": kind, "bytes": size, "sha256": digest, "text": text}
