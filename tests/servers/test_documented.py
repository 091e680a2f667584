"""The page about the servers names all that they have."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from servers import manifest
from servers.catalogue import FIXTURES
from servers.fixture import Fixture
from servers.folderfixture import FolderFixture

PAGE = (Path(__file__).parents[2] / "docs" / "servers.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}


def columns(schema: str) -> list[tuple[str, str]]:
    """(table, column) of all tables."""
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.executescript(schema)
        return memory.execute(
            "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c"
            " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'"
        ).fetchall()


def test_there_is_a_section_for_each_fixture_and_no_other() -> None:
    assert set(SECTIONS) == {*FIXTURES, "Seeds", "The journal"}


@pytest.mark.parametrize("name", sorted(FIXTURES))
def test_the_table_of_a_fixture_has_each_tool_with_its_arguments_and_results(name: str) -> None:
    found = {}
    for line in SECTIONS[name].splitlines():
        if match := re.fullmatch(r"\| `(\w+)` \| (.*) \| (.*) \|", line):
            found[match[1]] = (re.findall(r"`(\w+)`", match[2]), re.findall(r"`(\w+)`", match[3]))
    tools = FIXTURES[name].tools
    assert list(found) == [tool.name for tool in tools]
    for tool in tools:
        arguments, results = found[tool.name]
        assert sorted(arguments) == sorted(parameter.name for parameter in tool.parameters)
        properties = tool.output["properties"]
        assert isinstance(properties, dict)
        known = set(re.findall(r"'(\w+)': \{", str(properties)))
        assert set(results) <= known, tool.name


@pytest.mark.parametrize("name", sorted(FIXTURES))
def test_each_table_and_column_of_the_state_is_named(name: str) -> None:
    match FIXTURES[name]:
        case Fixture(schema=schema):
            pass
        case FolderFixture():
            schema = manifest.SCHEMA
    for table, column in columns(schema):
        assert f"`{table}`" in SECTIONS[name]
        assert f"`{column}`" in SECTIONS[name], f"{table}.{column}"


def test_the_prompt_and_the_scheme_of_resources_are_named() -> None:
    files = FIXTURES["files"]
    assert isinstance(files, FolderFixture)
    assert f"`{files.prompt.name}`" in SECTIONS["files"]
    assert f"`{files.scheme}:///`" in SECTIONS["files"]
