"""Other values that an argument may have: another row's, another of its enum, a number beside it, the other boolean.

Refuses to know what is done with them, and where schemas and rows come from.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from harness.evidence import Row
from proxy.spans import JSON

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

ADDRESS = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
"""A mail address as it stands in rows; what is none by RFC 5322 does no harm here."""
STRANGER = "somebody@elsewhere.example"
"""An address that no scenario knows, and a text like any other."""

Rows = Mapping[str, Mapping[str, Mapping[int, Row]]]
"""Of each server the rows of each table, by rowid."""


@dataclass(frozen=True)
class Takes:
    """What a tool takes: the JSON Schema of its arguments, and whether it says that it only reads."""

    schema: Mapping[str, JSON]
    reads: bool

    @cached_property
    def _validator(self) -> "Draft202012Validator":
        return _validator(self.schema)

    @property
    def properties(self) -> dict[str, JSON]:
        """The schema of each argument, by name."""
        found = self.schema.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that have to be there."""
        found = self.schema.get("required")
        return tuple(name for name in found if isinstance(name, str)) if isinstance(found, list) else ()

    def allows(self, arguments: Mapping[str, JSON]) -> bool:
        """Whether the arguments fit."""
        return self._validator.is_valid(dict(arguments))


@dataclass(frozen=True, slots=True)
class Other:
    """Another value, and in words what it is; `row` is true where it names another row."""

    value: JSON
    why: str
    row: bool = False


def other_values(name: str, value: JSON, schema: JSON, server: str, rows: Rows) -> Iterator[Other]:
    """Other values for the argument `name` of a tool of `server`; whether they fit is not looked at.

    Of a list each item in turn is another, then missing; of a map each member.
    """
    choices = _choices(schema)
    if value in choices:
        yield from (Other(choice, "another of its enum") for choice in choices if not same(choice, value))
        return
    match value:
        case bool():
            yield Other(not value, "flipped")
        case int() | float():
            yield from _of_another_row(name, value, server, rows)
            yield Other(value + 1, "one more")
            yield Other(value - 1, "one less")
        case str():
            yield from _of_another_row(name, value, server, rows)
        case list():
            for place, item in enumerate(value):
                for other in other_values(name, item, _items(schema), server, rows):
                    yield Other([*value[:place], other.value, *value[place + 1 :]], other.why, other.row)
            if len(value) > 1:
                yield Other(value[:-1], "its last item left out")
        case dict():
            for key, item in value.items():
                for other in other_values(key, item, _member(schema, key), server, rows):
                    yield Other({**value, key: other.value}, f"{key}: {other.why}", other.row)
        case _:
            pass


def made_arguments(takes: Takes, server: str, rows: Rows, given: Mapping[str, JSON]) -> dict[str, JSON]:
    """Arguments for a call nobody has written: `given`, what else is required, and each optional one with an enum."""
    made = dict(given)
    for name, schema in takes.properties.items():
        choices = _choices(schema)
        if name in made or (name not in takes.required and not choices):
            continue
        made[name] = next(_candidates(name, schema, server, rows), None)
    return made


def added_value(name: str, schema: JSON, arguments: Mapping[str, JSON], server: str, rows: Rows) -> Iterator[Other]:
    """A value for an optional argument that a call leaves out: at most one, and none that its row has anyway."""
    default = schema.get("default") if isinstance(schema, dict) else None
    has = [default, *(row[name] for row in _rows_of(arguments, server, rows) if name in row)]
    for value in _candidates(name, schema, server, rows):
        if not any(same(value, one) for one in has):
            yield Other(value, "added")
            return


def _rows_of(arguments: Mapping[str, JSON], server: str, rows: Rows) -> Iterator[Row]:
    """The rows of a server in which the value of any of the arguments stands."""
    for by_id in rows.get(server, {}).values():
        for row in by_id.values():
            if any(same(cell, value) for cell in row.values() for value in arguments.values()):
                yield row


def _candidates(name: str, schema: JSON, server: str, rows: Rows) -> Iterator[JSON]:
    """Valid values for an argument, likely ones first."""
    cells = [cell for cells in _named(name, server, rows) for cell in cells if isinstance(cell, str | int)]
    candidates: list[JSON] = [*_choices(schema), *cells, STRANGER, 1, 1.5, True, None, [], {}]
    alone = _validator(schema if isinstance(schema, dict) else {})
    yield from (one for one in candidates if alone.is_valid(one))


def _validator(schema: Mapping[str, JSON]) -> "Draft202012Validator":
    # What every trial's worker would load through its fixtures, and only mutants need.
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (it costs each start of a command)

    return Draft202012Validator(dict(schema))


def same(one: JSON, other: JSON) -> bool:
    """Equality in which a boolean is no number."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _choices(schema: JSON) -> list[JSON]:
    match schema:
        case {"enum": list(choices)}:
            return choices
        case {"anyOf": list(forms)} | {"oneOf": list(forms)}:
            return [choice for form in forms for choice in _choices(form)]
        case _:
            return []


def _items(schema: JSON) -> JSON:
    match schema:
        case {"items": dict(items)}:
            return items
        case {"anyOf": list(forms)} | {"oneOf": list(forms)}:
            found = [_items(form) for form in forms]
            return next((items for items in found if items is not None), None)
        case _:
            return None


def _member(schema: JSON, key: str) -> JSON:
    match schema:
        case {"properties": dict(properties)}:
            return properties.get(key)
        case _:
            return None


def _of_another_row(name: str, value: int | float | str, server: str, rows: Rows) -> Iterator[Other]:
    """The value that another row has where this one's stands: at most one."""
    order = [server, *(one for one in rows if one != server)]
    columns = [*_named(name, server, rows), *(cells for one in order for cells in _holding(value, one, rows))]
    for cells in columns:
        for cell in cells:
            if type(cell) is type(value) and cell != value:
                yield Other(cell, "another row's", row=True)
                return
    if isinstance(value, str) and ADDRESS.fullmatch(value):
        texts = (text for one in order for cells in _columns(one, rows) for text in cells if isinstance(text, str))
        found = (address for text in texts for address in ADDRESS.findall(text) if address != value)
        yield Other(next(found, STRANGER if value != STRANGER else f"other.{STRANGER}"), "another address", row=True)


def _columns(server: str, rows: Rows) -> Iterator[list[JSON]]:
    for _, _, cells in _all_columns(server, rows):
        yield cells


def _all_columns(server: str, rows: Rows) -> Iterator[tuple[str, str, list[JSON]]]:
    for table, by_id in rows.get(server, {}).items():
        found = [by_id[number] for number in sorted(by_id)]
        for column in found[0] if found else ():
            yield table, column, [row.get(column) for row in found]


def _named(name: str, server: str, rows: Rows) -> Iterator[list[JSON]]:
    """The columns that an argument's name means: of that name, or `id` of the table for `ticket_id`."""
    stem = name.removesuffix("_id")
    for table, column, cells in _all_columns(server, rows):
        if column == name or (stem != name and column == "id" and table.startswith(stem)):
            yield cells


def _holding(value: int | float | str, server: str, rows: Rows) -> Iterator[list[JSON]]:
    """The columns in which the value stands; those called id first."""
    columns = sorted(_all_columns(server, rows), key=lambda found: found[1] != "id")
    yield from (cells for _, _, cells in columns if any(type(cell) is type(value) and cell == value for cell in cells))
