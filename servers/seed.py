"""Reads seed files, `{table: [{column: value}]}` in YAML, strictly. Does not know which tables a fixture has.

Text stays text: `no`, `on`, dates, `1:30`, `1_000` and `012` are strings; only JSON's own spellings of numbers,
`true`, `false` and `null` (or nothing) are anything else.
"""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from servers.fixture import Row


class SeedError(ValueError):
    """A seed that cannot be used; the message names the source, the table and the column."""


@dataclass(frozen=True, slots=True)
class Seed:
    """Rows by table, in order, and where they come from (a file's path, for messages)."""

    source: str
    tables: Mapping[str, tuple[Row, ...]]


class _StrictLoader(yaml.SafeLoader):
    """PyYAML's safe loader without repeated keys, merge keys and implicit types beyond JSON's."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - the parent declares it without ClassVar

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"{key!a} is repeated", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_INTEGER = r"-?(?:0|[1-9][0-9]*)"
for _tag, _pattern, _first in (
    ("null", r"null|", ["n", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", _INTEGER, list("-0123456789")),
    ("float", rf"{_INTEGER}(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)", list("-0123456789")),
):
    _StrictLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)


def read_seed(path: Path) -> Seed:
    """The seed in a file; raises SeedError when it cannot be read or has another shape."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SeedError(f"{path}: cannot be read: {error}") from error
    try:
        for event in yaml.parse(text, Loader=_StrictLoader):
            if isinstance(event, yaml.AliasEvent):
                line = f", line {event.start_mark.line + 1}" if event.start_mark else ""
                raise SeedError(f"{path}{line}: an alias is not allowed")
        document = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader, only stricter
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise SeedError(f"{path}{line}: {error.problem}") from error
    except SeedError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SeedError(f"{path}: is not YAML that can be read: {' '.join(str(error).split())}") from error
    return parse_seed(document, str(path))


def parse_seed(document: object, source: str) -> Seed:
    """The seed in a document as YAML or JSON gives it; raises SeedError when it is not `{table: [{column: value}]}`."""
    if not isinstance(document, Mapping):
        raise SeedError(f"{source}: must be a map of tables, {{table: [{{column: value}}]}}")
    tables: dict[str, tuple[Row, ...]] = {}
    for table, rows in document.items():
        if not isinstance(table, str):
            raise SeedError(f"{source}: the table name {table!a} must be text")
        if not isinstance(rows, list | tuple):
            raise SeedError(f"{source}: table {table}: must be a list of rows, each {{column: value}}")
        tables[table] = tuple(_row(row, f"{source}: table {table}, row {n}") for n, row in enumerate(rows, 1))
    return Seed(source, tables)


def _row(row: object, where: str) -> Row:
    if not isinstance(row, Mapping):
        raise SeedError(f"{where}: must be a map {{column: value}}")
    for column, value in row.items():
        if not isinstance(column, str):
            raise SeedError(f"{where}: the column name {column!a} must be text")
        if value is not None and not isinstance(value, bool | int | float | str):
            raise SeedError(f"{where}, column {column}: must be text, a number, true, false or null")
    return dict(row)
