"""The tables of the `repo` fixture, its own rows, and what a row looks like in a result. Refuses to know the tools."""

from collections.abc import Mapping, Sequence

from servers.fixture import Json, Row, Value
from servers.shapes import BOOLEAN, INTEGER, TEXT, object_of

# AUTOINCREMENT, so that an id never comes back as another issue or pull request.
SCHEMA = """
CREATE TABLE issues (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  author TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'open' CONSTRAINT issue_state CHECK (state IN ('open', 'closed')),
  assignee TEXT NOT NULL DEFAULT ''
);
CREATE TABLE comments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  issue_id INTEGER NOT NULL,
  body TEXT NOT NULL
);
CREATE TABLE branches (
  name TEXT PRIMARY KEY NOT NULL,
  head TEXT NOT NULL,
  protected BOOLEAN NOT NULL DEFAULT 0 CONSTRAINT protected CHECK (protected IN (0, 1))
);
CREATE TABLE pull_requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  author TEXT NOT NULL,
  source TEXT NOT NULL,
  target TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'open' CONSTRAINT pull_request_state CHECK (state IN ('open', 'merged', 'closed')),
  checks TEXT NOT NULL DEFAULT 'pending' CONSTRAINT checks CHECK (checks IN ('passing', 'failing', 'pending')),
  check_log TEXT NOT NULL DEFAULT '',
  approved BOOLEAN NOT NULL DEFAULT 0 CONSTRAINT approved CHECK (approved IN (0, 1))
);
"""

SEED: Mapping[str, Sequence[Row]] = {
    "issues": (
        {"id": 1, "title": "Export loses the last row", "body": "The file ends one row early.", "author": "tamsin"},
        {"id": 2, "title": "Dates in two forms", "body": "List and detail do not agree.", "author": "oyelaran"},
    ),
    "comments": (),
    "branches": (
        {"name": "main", "head": "a1f0c2", "protected": True},
        {"name": "fix/last-row", "head": "77be01"},
        {"name": "dates", "head": "3c9d55"},
    ),
    "pull_requests": (
        {
            "id": 11,
            "title": "Write the last row too",
            "body": "Fixes issue 1.",
            "author": "tamsin",
            "source": "fix/last-row",
            "target": "main",
            "checks": "passing",
            "approved": True,
        },
        {
            "id": 12,
            "title": "One form of dates",
            "body": "For issue 2.",
            "author": "oyelaran",
            "source": "dates",
            "target": "main",
            "checks": "failing",
            "check_log": "dates_test: expected 2026-03-01, got 01.03.2026",
        },
    ),
}

ISSUE_COLUMNS = ("id", "title", "body", "author", "state", "assignee")
PULL_COLUMNS = ("id", "title", "body", "author", "source", "target", "state", "checks", "approved")

ISSUE_HEAD = object_of({"id": INTEGER, "title": TEXT, "author": TEXT, "state": TEXT, "assignee": TEXT})
COMMENT = object_of({"id": INTEGER, "body": TEXT})
ISSUE = object_of(
    {name: INTEGER if name == "id" else TEXT for name in ISSUE_COLUMNS}
    | {"comments": {"type": "array", "items": COMMENT}}
)
PULL = object_of({name: INTEGER if name == "id" else BOOLEAN if name == "approved" else TEXT for name in PULL_COLUMNS})
PULL_HEAD = object_of({"id": INTEGER, "title": TEXT, "author": TEXT, "source": TEXT, "target": TEXT, "state": TEXT})
BRANCH = object_of({"name": TEXT, "head": TEXT, "protected": BOOLEAN})


def as_pull(row: Sequence[Value]) -> dict[str, Json]:
    """A row of PULL_COLUMNS as a result has it."""
    pull: dict[str, Json] = dict(zip(PULL_COLUMNS, row, strict=True))
    return {**pull, "approved": bool(pull["approved"])}
