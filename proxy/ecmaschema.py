"""A JSON Schema (draft 2020-12) with its patterns made Python's, for a library that gives them to Python's `re`.

Refuses to know what is held against it. A place that no keyword leads to is no schema, and left as it is.
"""

from urllib.parse import unquote

from proxy.ecmapattern import PatternError, python_pattern
from proxy.spans import JSON

_ONE = frozenset(
    {
        *("not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames", "contentSchema"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAP = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})

Path = tuple[str | int, ...]


class SchemaPatternError(ValueError):
    """A pattern that cannot be used, or a reference to what is no schema; `path` leads to it."""

    def __init__(self, path: Path, message: str) -> None:
        self.path = path
        super().__init__(message)


def python_schema(schema: dict[str, JSON]) -> dict[str, JSON]:
    """The same schema for Python. Raises SchemaPatternError."""
    places: set[Path] = set()
    references: list[tuple[Path, str]] = []
    found = _schema(schema, (), places, references)
    for path, reference in references:
        if reference.startswith("#/") and _place(reference) not in places:
            raise SchemaPatternError(path, f"{reference!r} leads to what no keyword makes a schema; use #/$defs/NAME")
    assert isinstance(found, dict)
    return found


def _place(reference: str) -> Path:
    parts = unquote(reference[2:]).split("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _schema(value: JSON, path: Path, places: set[Path], references: list[tuple[Path, str]]) -> JSON:
    places.add(tuple(map(str, path)))
    if not isinstance(value, dict):
        return value
    found: dict[str, JSON] = {}
    for key, inner in value.items():
        here = (*path, key)
        if key == "pattern" and isinstance(inner, str):
            found[key] = _pattern(inner, here)
        elif key in _ONE:
            found[key] = _schema(inner, here, places, references)
        elif key in _LIST and isinstance(inner, list):
            found[key] = [_schema(one, (*here, at), places, references) for at, one in enumerate(inner)]
        elif key in _MAP and isinstance(inner, dict):
            found[key] = {
                _pattern(name, here) if key == "patternProperties" else name: _schema(
                    one, (*here, name), places, references
                )
                for name, one in inner.items()
            }
        else:
            found[key] = inner
            if key in {"$ref", "$dynamicRef"} and isinstance(inner, str):
                references.append((here, inner))
    return found


def _pattern(text: str, path: Path) -> str:
    try:
        return python_pattern(text)
    except PatternError as error:
        raise SchemaPatternError(path, str(error)) from None
