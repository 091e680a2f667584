"""JSON Schemas of what tools answer. Refuses to know any one tool."""

from collections.abc import Mapping

from servers.fixture import Json

TEXT: dict[str, Json] = {"type": "string"}
INTEGER: dict[str, Json] = {"type": "integer"}
BOOLEAN: dict[str, Json] = {"type": "boolean"}
DONE: dict[str, Json] = {**BOOLEAN, "const": True}


def object_of(properties: Mapping[str, Json]) -> dict[str, Json]:
    """An object that has exactly these fields."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def list_of(name: str, item: Mapping[str, Json]) -> dict[str, Json]:
    """An object with the one field `name`, a list of such items."""
    return object_of({name: {"type": "array", "items": item}})
