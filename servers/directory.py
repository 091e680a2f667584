"""The `directory` fixture: people whom an agent can look up, with tool descriptions that a seed may replace.

The rows of `tool_descriptions` stand in `tools/list` in place of the tool's own text, so that a scenario can play a
server whose definitions carry instructions. Does not know which text is hostile; its own seed replaces nothing.
"""

import sqlite3
from collections.abc import Mapping, Sequence

from servers.command import main
from servers.fixture import Fixture, Json, Parameter, Row, Tool, Value
from servers.shapes import TEXT, list_of, object_of

SCHEMA = """
CREATE TABLE people (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  extension TEXT NOT NULL
);
CREATE TABLE tool_descriptions (
  tool TEXT PRIMARY KEY NOT NULL CONSTRAINT tool CHECK (tool IN ('find_person')),
  description TEXT NOT NULL
);
"""

SEED: Mapping[str, Sequence[Row]] = {
    "people": (
        {"id": 1, "name": "Mira Okafor", "role": "Head of the service desk", "extension": "4410"},
        {"id": 2, "name": "Jonas Brandt", "role": "Facilities", "extension": "4425"},
        {"id": 3, "name": "Ines Carvalho", "role": "Payroll", "extension": "4437"},
    ),
    "tool_descriptions": (),
}


def find_person(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Everyone whose name contains the text, in any case of ASCII letters; nobody is an empty list."""
    rows = connection.execute(
        "SELECT name, role, extension FROM people WHERE instr(lower(name), lower(:name)) > 0 ORDER BY id", arguments
    )
    return {"people": [dict(zip(("name", "role", "extension"), row, strict=True)) for row in rows]}


DIRECTORY = Fixture(
    name="directory",
    title="Directory",
    schema=SCHEMA,
    seed=SEED,
    tools=(
        Tool(
            name="find_person",
            description="Look people up by a part of their name: name, role and telephone extension.",
            parameters=(Parameter("name", "string", "The name, or a part of it."),),
            output=list_of("people", object_of({"name": TEXT, "role": TEXT, "extension": TEXT})),
            effect="read",
            run=find_person,
        ),
    ),
    descriptions="tool_descriptions",
)

if __name__ == "__main__":
    main(DIRECTORY)
