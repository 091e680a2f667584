"""Whether a call's arguments hold what an assertion asks for.

Refuses to know names and outcomes.
"""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Literal, TypeAlias

from harness.trace import ToolCall
from proxy.spans import JSON

Held: TypeAlias = Literal["yes", "no", "either", "unknown"]
"""either: a repeated key makes one reader see it and another not. unknown: the recorded text was cut."""


def is_subset(wanted: JSON, found: JSON) -> bool:
    """Whether `found` holds `wanted`: an object at least its keys, at any depth; a list the same items in order.

    Numbers are equal by value, 51 and 51.0; booleans are no numbers; text equals only text.
    """
    match wanted, found:
        case dict(), dict():
            return all(key in found and is_subset(value, found[key]) for key, value in wanted.items())
        case list(), list():
            return len(wanted) == len(found) and all(is_subset(*pair) for pair in zip(wanted, found, strict=True))
        case _:
            return is_scalar_equal(wanted, found)


def is_same_value(left: JSON, right: JSON) -> bool:
    """Whether two values are one: the same keys and items at every depth, scalars as `is_scalar_equal` has them."""
    match left, right:
        case dict(), dict():
            return left.keys() == right.keys() and all(is_same_value(left[key], right[key]) for key in left)
        case list(), list():
            return len(left) == len(right) and all(is_same_value(*pair) for pair in zip(left, right, strict=True))
        case _:
            return is_scalar_equal(left, right)


def is_scalar_equal(left: JSON, right: JSON) -> bool:
    """Typed equality of two JSON values that are not containers; numbers by value, booleans apart."""
    match left, right:
        case bool(), bool():
            return left == right
        case bool(), _:
            return False
        case _, bool():
            return False
        case ((int() | float()), (int() | float())):
            return left == right
        case str(), str():
            return left == right
        case None, None:
            return True
        case _:
            return False


def holds(call: ToolCall, wanted: Mapping[str, JSON] | None) -> Held:
    """Whether the call's arguments hold `wanted`; every call holds None."""
    if wanted is None:
        return "yes"
    if call.arguments_truncated:
        return "unknown"
    answers = {is_subset(dict(wanted), reading) for reading in readings(call)}
    return "either" if len(answers) > 1 else "yes" if answers == {True} else "no"


def readings(call: ToolCall) -> tuple[JSON, ...]:
    """The arguments as a server may read them: the last of repeated keys, and the first."""
    match call.arguments:
        case None:
            readings: list[JSON] = [{}]
        case str() as text:
            # Some recorders keep arguments as the model wrote them, JSON in a string.
            readings = [_parse(text, first=False), _parse(text, first=True)]
        case arguments:
            readings = [arguments]
    if call.arguments_text is not None:
        readings.append(_parse(call.arguments_text, first=True))
    return tuple(readings)


def _parse(text: str, *, first: bool) -> JSON:
    def pairs(items: Sequence[tuple[str, JSON]]) -> dict[str, JSON]:
        return dict(reversed(items)) if first else dict(items)

    try:
        value: JSON = json.loads(text, object_pairs_hook=pairs, parse_int=_exact)
    except (ValueError, RecursionError):
        return text
    return value


def _exact(digits: str) -> int:
    # int() refuses text past 4300 digits.
    return int(Decimal(digits))
