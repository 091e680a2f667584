"""How the arguments of a call are held against expected ones: by equality, as a subset, or by a matcher for a value.

Refuses to know names, outcomes and how many calls there are.
"""

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from harness.assertions.arguments import Held, is_scalar_equal, readings
from harness.trace import ToolCall
from proxy.ecmaschema import python_schema
from proxy.spans import JSON

Compare: TypeAlias = Literal["equal", "subset"]
"""equal: the same keys everywhere. subset: a map has at least the expected ones."""

MATCHERS = ("$any", "$approx", "$one_of", "$regex", "$schema")
"""The one key of a map that stands for a value and says what it must be like."""


def check_expected(value: JSON) -> None:
    """Raises ValueError for a matcher that cannot be used."""
    match value:
        case list():
            for item in value:
                check_expected(item)
        case dict() if len(value) == 1 and next(iter(value)) in MATCHERS:
            _check_matcher(*next(iter(value.items())))
        case dict():
            odd = [key for key in value if key in MATCHERS]
            if odd:
                raise ValueError(f"{odd[0]} stands alone in its map")
            for item in value.values():
                check_expected(item)
        case _:
            pass


def check_schema(schema: JSON) -> None:
    """Raises ValueError for what is no JSON Schema."""
    if not isinstance(schema, dict):
        raise ValueError("a JSON Schema is a map")
    # What every trial's worker would load, and hardly one needs.
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (it costs each start of a command)
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415  (it costs each start of a command)

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"this is no JSON Schema: {error.message}") from error
    python_schema(schema)


def _is_valid(schema: Mapping[str, JSON], value: JSON) -> bool:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (as above)

    return Draft202012Validator(python_schema(dict(schema))).is_valid(value)


def _check_matcher(name: str, told: JSON) -> None:
    match name, told:
        case "$any", True:
            pass
        case "$regex", str():
            try:
                re.compile(told)
            except re.error as error:
                raise ValueError(f"{told!r} is not a regular expression: {error}") from error
        case "$one_of", [_, *_]:
            for item in told:
                check_expected(item)
        case "$schema", _:
            check_schema(told)
        case "$approx", {"value": int() | float() as value, "within": int() | float() as within, **rest}:
            if rest or within < 0 or isinstance(value, bool) or isinstance(within, bool):
                raise ValueError("$approx is {value: NUMBER, within: NUMBER}, and within is not negative")
        case "$approx", _:
            raise ValueError("$approx is {value: NUMBER, within: NUMBER}")
        case _:
            raise ValueError(f"{name} cannot be {told!r}")


def fits(wanted: JSON, found: JSON, compare: Compare) -> bool:
    """Whether a value is what is wanted. Numbers are equal by value, booleans are no numbers."""
    if isinstance(wanted, dict) and len(wanted) == 1 and not wanted.keys().isdisjoint(MATCHERS):
        return _matches(*next(iter(wanted.items())), found, compare)
    match wanted, found:
        case dict(), dict():
            if compare == "equal" and wanted.keys() != found.keys():
                return False
            return all(key in found and fits(value, found[key], compare) for key, value in wanted.items())
        case list(), list():
            return len(wanted) == len(found) and all(
                fits(one, other, compare) for one, other in zip(wanted, found, strict=True)
            )
        case _:
            return is_scalar_equal(wanted, found)


def _matches(name: str, told: JSON, found: JSON, compare: Compare) -> bool:
    match name, told:
        case "$any", _:
            return True
        case "$regex", str():
            return isinstance(found, str) and re.fullmatch(told, found) is not None
        case "$one_of", list():
            return any(fits(option, found, compare) for option in told)
        case "$schema", dict():
            return _is_valid(told, found)
        case "$approx", {"value": int() | float() as value, "within": int() | float() as within}:
            return isinstance(found, int | float) and not isinstance(found, bool) and abs(found - value) <= within
        case _:
            return False


def arguments_fit(
    call: ToolCall, wanted: Mapping[str, JSON] | None, schema: Mapping[str, JSON] | None, compare: Compare
) -> Held:
    """Whether the call's arguments are what is wanted, in every reading of them; anything fits None."""
    if wanted is None and schema is None:
        return "yes"
    if call.arguments_truncated:
        return "unknown"
    answers = {
        (wanted is None or fits(dict(wanted), reading, compare)) and (schema is None or _is_valid(schema, reading))
        for reading in readings(call)
    }
    return "either" if len(answers) > 1 else "yes" if answers == {True} else "no"
