"""Whether a server's database holds what it should after the trial, and nothing else changed.

Refuses to know how a database is read: it gets dumps.
"""

import re
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from harness.assertions.spec import AssertionSpec, Part
from harness.evidence import Evidence
from harness.verdict import Finding


class State(AssertionSpec):
    """The rows that `query` gives on the server's database after the trial, in the query's order.

    `equals` is a list of rows of null, integer, real, text or `{"$blob": base64}`, compared by type: numbers by value,
    text never equal to a number. `matches` is a list of rows of regular expressions, each of which must match the whole
    cell: the text itself, or a number as JSON writes it; null there means that the cell is null.
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
                match cell:
                    case bool():
                        raise ValueError("SQLite has no booleans: write 1 or 0, or the text")
                    case None | int() | float() | str():
                        pass
                    case {"$blob": str()} if len(cell) == 1:
                        pass
                    case _:
                        raise ValueError('a cell is null, a number, text or {"$blob": base64}')
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
        """Passes when each row and cell fits; the reason names the first row and column that differs."""
        raise NotImplementedError


class Exemption(BaseModel):
    """A change that is allowed: rows of `table` that `where` fits, by typed equality of columns.

    `where` is matched on the row before, or after for an insert; empty, it fits every row. With `columns` only those
    may differ; without, anything in the row, its insert and delete included.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    server: str
    table: str
    where: dict[str, JsonValue] = Field(default_factory=dict)
    columns: list[str] | None = Field(default=None, min_length=1)


class StateUnchanged(AssertionSpec):
    """No row of any server's database changed, apart from what `except` names; `servers` limits it to some."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    needs: ClassVar[tuple[Part, ...]] = ("state",)

    type: Literal["state_unchanged"]
    except_: list[Exemption] = Field(default_factory=list, alias="except")
    servers: list[str] | None = None

    def find(self, evidence: Evidence) -> Finding:
        """Fails on the first change that nothing exempts, with its row, column, values and call."""
        raise NotImplementedError
