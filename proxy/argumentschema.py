"""The JSON Schema (draft 2020-12) of a rule's `arguments`, checked when the policy is read.

Refuses to fetch anything: a reference leads to a place in the same schema. Imported only when a rule has one, since
the library costs more than the rest of the proxy's start.
"""

from collections.abc import Iterator

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

from proxy.ecmaschema import SchemaPatternError, python_schema
from proxy.spans import JSON

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCES = ("$ref", "$dynamicRef")
_VALUES = ("const", "enum", "default", "examples")


class ArgumentSchemaError(ValueError):
    """A schema that cannot be used; `path` leads to the part that is wrong."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        self.path = path
        super().__init__(message)


def compile_schema(schema: dict[str, JSON]) -> Validator:
    """A validator of the schema. Raises ArgumentSchemaError."""
    dialect = schema.get("$schema", _DIALECT)
    if dialect not in (_DIALECT, f"{_DIALECT}#"):
        raise ArgumentSchemaError(("$schema",), f"only draft 2020-12 is read: {_DIALECT}")
    try:
        Draft202012Validator.check_schema(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    except SchemaError as error:
        raise ArgumentSchemaError(tuple(error.absolute_path), f"not a JSON Schema: {error.message}") from None
    resource = DRAFT202012.create_resource(schema)
    resolver = EMPTY_REGISTRY.resolver_with_root(resource)
    for path, key, value in _keywords(schema, ()):
        if key == "$id" and path != ("$id",):
            raise ArgumentSchemaError(path, "an $id inside a schema is not read; use $defs and #/$defs/NAME")
        if key in _REFERENCES:
            if not value.startswith("#"):
                raise ArgumentSchemaError(
                    path, f"{value!r} leads out of the schema, and nothing is fetched; use #/$defs/NAME"
                )
            try:
                resolver.lookup(value)
            except Unresolvable:
                raise ArgumentSchemaError(path, f"{value!r} leads nowhere in this schema") from None
    try:
        translated = python_schema(schema)
    except SchemaPatternError as error:
        raise ArgumentSchemaError(error.path, str(error)) from None
    validator = Draft202012Validator(translated, registry=EMPTY_REGISTRY)
    try:
        validator.is_valid({})
    except RecursionError:
        raise ArgumentSchemaError((), "the references go round in a circle") from None
    return validator


def _keywords(schema: JSON, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Path, name and text of every keyword whose value is text, in values that are compared (`const`) not."""
    match schema:
        case dict():
            for key, value in schema.items():
                if isinstance(value, str):
                    yield (*path, key), key, value
                elif key not in _VALUES or (path and path[-1] in ("properties", "$defs")):
                    yield from _keywords(value, (*path, key))
        case list():
            for place, value in enumerate(schema):
                yield from _keywords(value, (*path, place))
        case _:
            pass
