"""What a fixture server is: its tables, its own rows, and its tools with the arguments they take.

Knows neither the MCP SDK, so that a database is made without importing it, nor where the database lies.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from servers.addresses import AddressError, read_addresses

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Value = str | int
Scalar = None | bool | int | float | str
Row = Mapping[str, Scalar]
Place = TypeVar("Place")
"""What a tool works on: an open database or an open folder."""


class PlaceError(ValueError):
    """A database or folder that cannot be made or used; the message names it and says what to do."""


class ToolError(ValueError):
    """A call that the tool refuses; the message is the sentence that the caller reads in an `isError` result."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool: its JSON Schema and its check come from the same fields.

    `choices` (strings only) is the enum; `default` is what the tool takes when an optional argument is absent. The
    kind `addresses` is a list of mail addresses, or one address as a string.
    """

    name: str
    kind: Literal["string", "integer", "addresses"]
    description: str
    required: bool = True
    choices: tuple[str, ...] = ()
    default: str | None = None

    def schema(self) -> dict[str, Json]:
        """The JSON Schema of this argument."""
        if self.kind == "addresses":
            forms: list[Json] = [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]
            return {"anyOf": forms, "description": self.description}
        schema: dict[str, Json] = {"type": self.kind, "description": self.description}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.default is not None:
            schema["default"] = self.default
        return schema

    def check(self, given: object) -> Value:
        """`given` as the tool takes it; a number with a zero fraction is the integer (JSON Schema says so).

        Addresses come as one text, parted by a comma and a blank.

        Raises ToolError for another type (a boolean is no integer), text that is not Unicode, and a value outside
        the enum.
        """
        if self.kind == "addresses":
            try:
                return ", ".join(read_addresses(given))
            except AddressError as error:
                raise ToolError(f"{self.name}: {error}") from error
        match given:
            case str() if self.kind == "string":
                return self._check_text(given)
            case int() if self.kind == "integer" and not isinstance(given, bool):
                return given
            case float() if self.kind == "integer" and given.is_integer():
                return int(given)
            case _:
                raise ToolError(f"{self.name} must be {'text' if self.kind == 'string' else 'an integer'}")

    def _check_text(self, given: str) -> str:
        if self.choices and given not in self.choices:
            raise ToolError(f"{self.name} must be one of {', '.join(self.choices)}")
        try:
            given.encode()
        except UnicodeEncodeError:
            raise ToolError(f"{self.name} must be text in Unicode, without half of a surrogate pair") from None
        return given


@dataclass(frozen=True, slots=True)
class Signature:
    """What a caller sees of a tool. `effect` says what it does to rows or files: a `read` changes nothing."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    output: Mapping[str, Json]
    effect: Literal["read", "add", "change", "remove"]

    def input_schema(self) -> dict[str, Json]:
        """The JSON Schema of all arguments; no other argument is allowed."""
        return {
            "type": "object",
            "properties": {parameter.name: parameter.schema() for parameter in self.parameters},
            "required": [parameter.name for parameter in self.parameters if parameter.required],
            "additionalProperties": False,
        }

    def check(self, given: Mapping[str, object]) -> dict[str, Value]:
        """The arguments of one call, checked; raises ToolError for the first one that does not fit."""
        known = {parameter.name for parameter in self.parameters}
        unknown = sorted(given.keys() - known)
        if unknown:
            takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise ToolError(f"{self.name} takes no argument {unknown[0]!a}; {takes}")
        missing = [p.name for p in self.parameters if p.required and p.name not in given]
        if missing:
            raise ToolError(f"{self.name} needs the argument {missing[0]}")
        return {p.name: p.check(given[p.name]) for p in self.parameters if p.name in given}


@dataclass(frozen=True, slots=True)
class Tool(Signature, Generic[Place]):
    """One tool of a fixture, over an open place.

    `run` gets the place and checked arguments (absent optional ones are not in the map) and gives the structured
    content, or raises ToolError. Over a database, all but a `read` run in a write transaction.
    """

    run: Callable[[Place, Mapping[str, Value]], dict[str, Json]]


@dataclass(frozen=True, slots=True)
class Fixture:
    """A fixture server over a database: `schema` is SQL that makes its tables, `seed` its own rows by table.

    `descriptions` is the table (columns tool and description), if any, whose rows replace the tools' own descriptions.
    """

    name: str
    title: str
    schema: str
    seed: Mapping[str, Sequence[Row]]
    tools: tuple[Tool[sqlite3.Connection], ...]
    descriptions: str | None = None
