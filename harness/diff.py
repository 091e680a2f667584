"""What changed between two dumps of one database, row by row.

Refuses to know who changed it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.cells import is_same, show_cell
from harness.evidence import Dump, Row
from harness.query import table_keys
from proxy.spans import JSON


@dataclass(frozen=True, slots=True)
class Change:
    """One row that differs. `rowid` is the row's before, or after for an insert. `key` tells it apart in its table.

    The words show what `hide` makes of a value's text.
    """

    table: str
    rowid: int
    key: str
    before: Row | None
    after: Row | None
    hide: Callable[[str], str] = field(default=str, compare=False, repr=False)

    @property
    def op(self) -> Literal["insert", "update", "delete"]:
        """What happened to the row."""
        return "insert" if self.before is None else "delete" if self.after is None else "update"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values differ, in the row's order; all of a row that came or went."""
        return differing(self.before, self.after)

    @property
    def place(self) -> str:
        """The row in a reason: its table, its rowid and its id if it has one; a row without rowid by its key."""
        row = (self.before if self.before is not None else self.after) or {}
        cells: list[JSON] = json.loads(self.key) if self.key else [self.rowid]
        if cells != [self.rowid] and "id" not in row:
            return f"{self.table} row {', '.join(map(self._show, cells))}"
        return f"{self.table} row {self.rowid}" + (f" (id {self._show(row['id'])})" if "id" in row else "")

    def words(self, columns: tuple[str, ...] | None = None) -> str:
        """What changed, in words: the columns (all that differ, or those given) with their values before and after."""
        shown = self.columns if columns is None else columns
        match self.op:
            case "insert":
                return "inserted with " + ", ".join(f"{name} {self._show((self.after or {})[name])}" for name in shown)
            case "delete":
                return "deleted, it had " + ", ".join(
                    f"{name} {self._show((self.before or {})[name])}" for name in shown
                )
            case "update":
                before, after = self.before or {}, self.after or {}
                return ", ".join(
                    f"{name} {self._show_in(before, name)} → {self._show_in(after, name)}" for name in shown
                )

    def _show(self, cell: JSON) -> str:
        return show_cell(cell, self.hide)

    def _show_in(self, row: Row, name: str) -> str:
        return self._show(row[name]) if name in row else "absent"


Rows = Mapping[tuple[str, str], tuple[int, Row]]
"""(table, key) to (rowid, row)."""


def diff(before: Dump, after: Dump, hide: Callable[[str], str] = str) -> tuple[Change, ...]:
    """Each row that came, went or differs, by table and rowid."""
    keys = row_keys(before, after)
    return diff_rows(keyed(before, keys), keyed(after, keys), hide)


def diff_rows(before: Rows, after: Rows, hide: Callable[[str], str] = str) -> tuple[Change, ...]:
    """As `diff`, of rows that are keyed already."""
    changes = []
    for table, key in dict.fromkeys([*before, *after]):
        old, new = before.get((table, key)), after.get((table, key))
        rowid = (old or new or (0, {}))[0]
        change = Change(table, rowid, key, old and old[1], new and new[1], hide)
        if change.op != "update" or change.columns:
            changes.append(change)
    return tuple(sorted(changes, key=lambda change: (change.table, change.rowid, change.key)))


def schema_changes(before: Dump, after: Dump) -> tuple[str, ...]:
    """The CREATE statements that only one of the two has."""
    return tuple(sorted(set(before.schema) ^ set(after.schema)))


def row_keys(before: Dump, after: Dump) -> Mapping[str, tuple[str, ...]]:
    """For each table the columns that tell its rows apart, by the schema before where it has the table."""
    return {**table_keys(after.schema), **table_keys(before.schema)}


def keyed(dump: Dump, keys: Mapping[str, tuple[str, ...]]) -> dict[tuple[str, str], tuple[int, Row]]:
    """A dump's rows by table and key."""
    return {
        (table, row_key(keys.get(table, ()), rowid, row)): (rowid, row)
        for table, rows in dump.tables.items()
        for rowid, row in rows.items()
    }


def row_key(columns: tuple[str, ...], rowid: int, row: Row) -> str:
    """What tells a row apart in its table: the values of the key's columns, or the rowid where it has none of them."""
    known = columns and all(name in row for name in columns)
    return json.dumps([row[name] for name in columns] if known else [rowid])


def differing(before: Row | None, after: Row | None) -> tuple[str, ...]:
    """The columns in which two rows differ; all of the one that is there when the other is not."""
    if before is None or after is None:
        return tuple(before if before is not None else after or {})
    names = dict.fromkeys([*before, *after])
    return tuple(
        name for name in names if name not in before or name not in after or not is_same(before[name], after[name])
    )
