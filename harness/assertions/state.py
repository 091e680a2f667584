"""Whether a server's database holds what it should after the trial, and nothing else changed.

Refuses to know how a database is read: it gets dumps.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from harness.assertions.spec import AssertionSpec, Part
from harness.cells import from_cell, is_same, show_cell
from harness.diff import Change, diff, schema_changes
from harness.evidence import Evidence, ServerState
from harness.explain import explained
from harness.outcomes import listed
from harness.query import Answer, QueryError, run_query
from harness.verdict import Finding
from proxy.spans import JSON


class State(AssertionSpec):
    """The rows that `query` gives on the server's database after the trial, in the query's order.

    `equals` is a list of rows of null, integer, real, text or `{"$blob": base64}`, compared by type: numbers by value,
    text never equal to a number. `matches` is a list of rows of regular expressions, each of which must match the whole
    cell: the text itself, a number as JSON writes it, a blob's base64; null there means that the cell is null.
    """

    needs: ClassVar[tuple[Part, ...]] = ("state",)

    type: Literal["state"]
    server: str
    query: str
    equals: list[list[JsonValue]] | None = None
    matches: list[list[str | None]] | None = None

    @field_validator("equals")
    @classmethod
    def _cells(cls, rows: list[list[JsonValue]] | None) -> list[list[JsonValue]] | None:
        for row in rows or []:
            for cell in row:
                from_cell(cell)
        return rows

    @field_validator("matches")
    @classmethod
    def _patterns(cls, rows: list[list[str | None]] | None) -> list[list[str | None]] | None:
        for pattern in (cell for row in rows or [] for cell in row if cell is not None):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return rows

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.equals is None) == (self.matches is None):
            raise ValueError("give exactly one of equals and matches")
        return self

    def find(self, evidence: Evidence) -> Finding:
        """Passes when each row and cell fits; the reason names the first row and column that differs.

        A query that cannot be run on the state, or whose columns are not those of the rows wanted, is an error.
        """
        state = evidence.state.get(self.server)
        if state is None:
            return self.not_run(f"nothing is known of the state of {self.server}")
        try:
            answer = run_query(state.after, self.query)
        except QueryError as error:
            return self.error(f"{self.server}: {error}")
        wanted: Sequence[Sequence[JSON]] = self.equals if self.equals is not None else self.matches or []
        for number, row in enumerate(wanted, 1):
            if len(row) != len(answer.columns):
                return self.error(
                    f"row {number} wants {len(row)} cells, and the query gives {len(answer.columns)}: "
                    + ", ".join(answer.columns)
                )
        reason = self._difference(answer, wanted, state.hide)
        if reason is not None:
            return Finding(self.name, "fail", f"{self.server}: {reason}, in {self.query!r}", "state")
        return Finding(self.name, "pass", f"{self.server}: {_rows(len(wanted))} as wanted", "state")

    def _difference(self, answer: Answer, wanted: Sequence[Sequence[JSON]], hide: Callable[[str], str]) -> str | None:
        counts = f"{_rows(len(answer.rows))} where {len(wanted)} wanted"
        for number, (row, want) in enumerate(zip(answer.rows, wanted, strict=False), 1):
            for column, cell, cell_wanted in zip(answer.columns, row, want, strict=True):
                if not self._fits(cell, cell_wanted):
                    how = "" if self.matches is None or cell_wanted is None else "to match "
                    shown, shown_wanted = show_cell(cell, hide), show_cell(cell_wanted, hide)
                    first = f"row {number}, column {column} is {shown}, wanted {how}{shown_wanted}"
                    return first if len(answer.rows) == len(wanted) else f"{first}; {counts}"
        if len(answer.rows) > len(wanted):
            cells = zip(answer.columns, answer.rows[len(wanted)], strict=True)
            extra = ", ".join(f"{column} {show_cell(cell, hide)}" for column, cell in cells)
            return f"{counts}; the first that is too much, row {len(wanted) + 1}, has {extra}"
        if len(answer.rows) < len(wanted):
            missing = ", ".join(show_cell(cell, hide) for cell in wanted[len(answer.rows)])
            return f"{counts}; the first that is missing, row {len(answer.rows) + 1}, is {missing}"
        return None

    def _fits(self, cell: JSON, wanted: JSON) -> bool:
        if self.matches is None or not isinstance(wanted, str):
            return is_same(cell, wanted)
        match cell:
            case None:
                return False
            case {"$blob": str() as text} | (str() as text):
                return re.fullmatch(wanted, text) is not None
            case _:
                return re.fullmatch(wanted, json.dumps(cell)) is not None


class Exemption(BaseModel):
    """A change that is allowed: rows of `table` that `where` fits, by typed equality of columns.

    `where` is matched on the row before, or after for an insert; empty, it fits every row. With `columns` only those
    may differ; without, anything in the row, its insert and delete included.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    server: str
    table: str
    where: dict[str, JsonValue] = Field(default_factory=dict)
    columns: list[str] | None = Field(default=None, min_length=1)

    @field_validator("where")
    @classmethod
    def _cells(cls, where: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for cell in where.values():
            from_cell(cell)
        return where

    def fits(self, server: str, change: Change) -> bool:
        """Whether the change is in a row that this exempts, whatever its columns."""
        row = change.before if change.before is not None else change.after or {}
        return (server, change.table) == (self.server, self.table) and all(
            name in row and is_same(row[name], cell) for name, cell in self.where.items()
        )

    def misnamed(self, state: ServerState) -> str | None:
        """What this names that the database has not: a table or a column."""
        dumps = [dump for dump in (state.before, state.after) if dump is not None]
        tables = [dump.tables[self.table] for dump in dumps if self.table in dump.tables]
        if not tables:
            return f"{self.server} has no table {self.table}"
        columns = {name for rows in tables for row in rows.values() for name in row}
        unknown = [name for name in (*self.where, *(self.columns or ())) if name not in columns]
        return f"{self.server}.{self.table} has no column {unknown[0]}" if columns and unknown else None


class StateUnchanged(AssertionSpec):
    """No row of any server's database changed, apart from what `except` names; `servers` limits it to some."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    needs: ClassVar[tuple[Part, ...]] = ("state",)

    type: Literal["state_unchanged"]
    except_: list[Exemption] = Field(default_factory=list, alias="except")
    servers: list[str] | None = Field(default=None, min_length=1)

    def find(self, evidence: Evidence) -> Finding:
        """Fails on each change that nothing exempts, with its row, column, values and call.

        An exemption that names a server, table or column that is not there is an error.
        """
        unknown = [name for name in self.servers or () if name not in evidence.state]
        if unknown or not evidence.state:
            return self.not_run(f"nothing is known of the state of {', '.join(unknown) or 'any server'}")
        for exemption in self.except_:
            state = evidence.state.get(exemption.server)
            wrong = f"no server has state as {exemption.server}" if state is None else exemption.misnamed(state)
            if wrong is not None:
                return self.error(f"except: {wrong}")
        names = sorted(self.servers if self.servers is not None else evidence.state)
        started = [name for name in names if evidence.state[name].before is None]
        if started:
            return self.not_run(f"what {', '.join(started)} held before is not known")
        reasons = [reason for name in names for reason in self._changes(name, evidence)]
        if reasons:
            return Finding(self.name, "fail", listed(reasons), "state")
        exempt = ", apart from what is exempt" if self.except_ else ""
        unseen = [name for name in evidence.servers if name not in evidence.state] if self.servers is None else []
        rest = f"; nothing is known of the state of {', '.join(unseen)}" if unseen else ""
        return Finding(self.name, "pass", f"nothing changed in {', '.join(names)}{exempt}{rest}", "state")

    def _changes(self, server: str, evidence: Evidence) -> Iterator[str]:
        state = evidence.state[server]
        if state.before is None:
            return
        told = evidence.once(explained, server)
        for text in schema_changes(state.before, state.after):
            yield f"{server}: the schema changed, {told.author(None)}: {text}"
        for change in diff(state.before, state.after, state.hide):
            exemptions = [exemption for exemption in self.except_ if exemption.fits(server, change)]
            if any(exemption.columns is None for exemption in exemptions):
                continue
            if change.op != "update":
                yield f"{server}.{change.place} was {change.words()}, {told.author(change)}"
                continue
            free = {name for exemption in exemptions for name in exemption.columns or ()}
            for column in change.columns:
                if column not in free:
                    yield f"{server}.{change.place}: {change.words((column,))}, {told.author(change, column)}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
